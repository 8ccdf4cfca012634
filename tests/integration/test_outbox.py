"""Events on their way out: each is relayed by one process at a time, and forgotten only once it was sent."""

from datetime import UTC, datetime, timedelta

from shared.db.outbox import OutboxEntry, delete_sent, insert_outbox, lock_unsent, mark_sent
from tests.rooms import Room

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def entries(count: int) -> list[OutboxEntry]:
    return [
        OutboxEntry(f"e{n:02}", "w1", None, {"type": "order.seen", "payload": "{}"}) for n in range(count)
    ]


def store(room: Room, count: int, at: datetime = NOW) -> list[OutboxEntry]:
    made = entries(count)
    with room.database.begin() as conn:
        insert_outbox(conn, made, now=at)
    return made


def unsent(room: Room, before: datetime = LATER, most: int = 100) -> list[str]:
    with room.database.begin() as conn:
        return [entry.id for entry in lock_unsent(conn, before=before, most=most)]


def test_what_was_written_is_read_back_as_it_was(room: Room) -> None:
    made = store(room, 3)
    with room.database.begin() as conn:
        assert sorted(lock_unsent(conn, before=LATER, most=100), key=lambda entry: entry.id) == made
        insert_outbox(conn, [], now=NOW)


def test_only_what_is_older_is_given_and_the_oldest_first(room: Room) -> None:
    first, second, third = entries(3)
    with room.database.begin() as conn:
        insert_outbox(conn, [third], now=NOW)
        insert_outbox(conn, [first], now=NOW + timedelta(seconds=1))
        insert_outbox(conn, [second], now=LATER)
    assert unsent(room) == ["e02", "e00"]
    assert unsent(room, most=1) == ["e02"]


def test_what_was_sent_is_not_given_again_and_keeps_its_time(room: Room) -> None:
    store(room, 2)
    with room.database.begin() as conn:
        mark_sent(conn, ["e00"], now=NOW)
        mark_sent(conn, ["e00"], now=LATER)
        mark_sent(conn, [], now=LATER)
    assert unsent(room) == ["e01"]
    with room.database.begin() as conn:
        assert delete_sent(conn, before=LATER, most=10) == 1


def test_two_relays_at_once_share_the_events_out(room: Room) -> None:
    store(room, 4)
    if room.database.dialect == "sqlite":
        assert len(unsent(room)) == 4  # there is one writer only
        return
    with room.database.begin() as one, room.database.begin() as two:
        mine = {entry.id for entry in lock_unsent(one, before=LATER, most=2)}
        yours = {entry.id for entry in lock_unsent(two, before=LATER, most=100)}
    assert (len(mine), len(yours), mine & yours) == (2, 2, set())


def test_only_what_was_sent_long_ago_is_forgotten_and_no_more_than_asked(room: Room) -> None:
    store(room, 5)
    with room.database.begin() as conn:
        mark_sent(conn, ["e00", "e01", "e02"], now=NOW)
        mark_sent(conn, ["e03"], now=LATER)
        assert delete_sent(conn, before=LATER, most=2) == 2
        assert delete_sent(conn, before=LATER, most=2) == 1
        assert delete_sent(conn, before=LATER, most=2) == 0
    assert [row.id for row in room.all("SELECT id FROM outbox ORDER BY id")] == ["e03", "e04"]
