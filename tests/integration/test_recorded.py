"""What counts as written by ourselves after a COMMIT whose answer was lost."""

from datetime import UTC, datetime

from shared.db.engine import open_database
from shared.db.history import Attempt, insert_attempts, recorded
from shared.model.runs import Claim

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_crash_that_somebody_else_wrote_is_no_outcome_of_ours(database_url: str) -> None:
    database = open_database(database_url)
    ours, theirs = Claim("run-1", 1), Claim("run-2", 1)
    with database.begin() as conn:
        insert_attempts(
            conn,
            [
                Attempt(ours, "succeeded", None, "worker-1", NOW, NOW),
                Attempt(theirs, "crashed", None, "worker-1", NOW, NOW),
            ],
        )
        assert recorded(conn, [ours, theirs], []).attempts == {ours}
    database.dispose()
