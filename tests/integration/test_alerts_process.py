"""Alerts as the timers process sends them: one that is killed while it sends costs one repeat."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from tests.alerts import Desk, opened_desk
from tests.processes import end, started
from tests.waiting import poll

DEADLINE_S = 60.0


def variables(desk: Desk, database_url: str, redis_url: str, folder: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "KNOCKON_DATA_DIR": str(folder),
        "SMTP_HOST": "127.0.0.1",
        "SMTP_PORT": str(desk.settings.smtp_port),
        "SMTP_FROM": "robot@knockon.test",
        "SMTP_TLS": "none",
    }


def test_a_killed_process_is_followed_by_one_that_repeats_one_mail(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    with opened_desk(database_url, redis_url) as desk:
        desk.clock.advance(datetime.now(UTC) - desk.clock.now())
        environment = variables(desk, database_url, redis_url, tmp_path)
        desk.die(5)
        with started("timers", tmp_path / "log", **environment) as process:
            desk.office.after = process.kill
            assert process.wait(DEADLINE_S) == -9
        desk.office.after = None
        sends = desk.rows("SELECT status, attempts FROM alert_sends ORDER BY attempts")
        assert [tuple(row) for row in sends] == [("pending", 0), ("pending", 1)]
        with desk.backends.database.begin() as conn:  # as if the dead one's claim had run out
            conn.exec_driver_sql("UPDATE alert_sends SET due_at = created_at")
        with started("timers", tmp_path / "log", **environment) as process:
            poll(lambda: desk.rows("SELECT id FROM alert_sends WHERE status = 'pending'") == [], DEADLINE_S)
            assert end(process) == 0
    assert sorted(Counter(mail["Message-ID"] for mail in desk.office.mails).values()) == [1, 2]
    assert {mail["Subject"] for mail in desk.office.mails} == {
        "[knockon] dead.example: WEBHOOK_HTTP_RETRIABLE (5x)"
    }
