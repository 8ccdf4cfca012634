"""How far our clock is from the SQL server's."""

from datetime import UTC, datetime, timedelta

from shared.db.server_clock import clock_skew
from tests.rooms import Room


def test_a_clock_is_compared_where_the_server_has_its_own(room: Room) -> None:
    with room.database.read() as conn:
        skew = clock_skew(conn, datetime.now(UTC) + timedelta(hours=1))
    if room.database.dialect == "sqlite":
        assert skew is None
    else:
        assert skew is not None
        assert abs(skew - timedelta(hours=1)) < timedelta(seconds=5)
