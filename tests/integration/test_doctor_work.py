"""What the doctor says of work that stands still, of the servers behind it, and of what nobody has set up."""

import resource
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from knockon.doctor import examine
from knockon.doctor_server import _file_system, _postgres, open_files
from knockon.findings import Finding, Level
from shared.db.server_facts import ServerFacts
from shared.db.tables_idle import IDLE_STEPS
from shared.db.types import write_instant
from shared.keys import GROUP
from shared.settings import Settings
from tests.any_rows import add_row
from tests.pending_rows import add_pending
from tests.rooms import Room

GOOD = ServerFacts(version=18, encoding="UTF8", zone="UTC", is_standby=False, connections=100)


def hour_ago() -> datetime:
    """Give an instant a little more than an hour before this one, however long the tests have run already."""
    return datetime.now(UTC) - timedelta(hours=1, seconds=10)


@pytest.fixture
def settings(redis_url: str, database_url: str, tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", redis_url=redis_url, database_url=database_url)


def found(settings: Settings, *subjects: str) -> Sequence[Finding]:
    by_subject = {finding.subject: finding for finding in examine(settings)}
    return [by_subject[subject] for subject in subjects]


def test_nothing_stands_still_at_first(settings: Settings, room: Room) -> None:
    room.run(room.automation())
    subjects = ("stream", "sql server", "runs", "delayed", "idle steps", "outbox", "actions")
    assert [each.level for each in found(settings, *subjects)] == [Level.OK] * len(subjects)


def test_a_run_that_waits_for_long_is_told(settings: Settings, room: Room) -> None:
    room.run(room.automation(), at=hour_ago())
    (runs,) = found(settings, "runs")
    assert (runs.level, runs.text) == (Level.WARN, "1 wait, the first that could start for 60 minutes")


def test_what_is_overdue_is_told_and_how_many_wait(settings: Settings, room: Room) -> None:
    with room.database.begin() as conn:
        add_pending(conn, "p1", "a1", due_at=datetime.now(UTC) + timedelta(hours=1))
    (delayed,) = found(settings, "delayed")
    assert (delayed.level, delayed.text) == (Level.OK, "1 wait for their hour, none is overdue")
    with room.database.begin() as conn:
        add_pending(conn, "p2", "a1", due_at=hour_ago())
    (delayed,) = found(settings, "delayed")
    assert (delayed.level, delayed.text) == (Level.WARN, "1 are due, the first for 60 minutes")
    with room.database.begin() as conn:
        add_row(conn, IDLE_STEPS, status="pending", due_at=hour_ago())
    (steps,) = found(settings, "idle steps")
    assert (steps.level, steps.text) == (Level.WARN, "1 are due, the first for 60 minutes")


def test_an_event_that_is_not_sent_is_told(settings: Settings, room: Room) -> None:
    room.change(
        "INSERT INTO outbox (id, workspace_id, fields, created_at) VALUES ('o', 'w1', '{}', :at)",
        at=write_instant(hour_ago()),
    )
    (outbox,) = found(settings, "outbox")
    assert (outbox.level, outbox.text) == (
        Level.WARN,
        "1 emitted events are not sent, the first for 60 minutes",
    )


def test_actions_that_nothing_is_set_up_for_are_told(settings: Settings, room: Room) -> None:
    mail = {"type": "SEND_EMAIL", "config": {"to": "ada@example.org", "subject": "s", "body": "b"}}
    room.automation(mail, key="mails")
    room.automation(mail, key="sleeps", status="PAUSED")
    (actions,) = found(settings, "actions")
    assert (actions.level, actions.text) == (Level.WARN, "SEND_EMAIL is used by mails (w1)")
    assert actions.fix == "set SMTP_HOST: their runs fail"
    able = settings.model_copy(update={"smtp_host": "127.0.0.1", "smtp_port": 1})
    assert found(able, "actions")[0].level is Level.OK


def test_entries_that_wait_for_long_are_told(settings: Settings, room: Room) -> None:
    redis, keys = room.parts.redis, room.parts.keys
    redis.xgroup_create(keys.stream, GROUP, id="0", mkstream=True)
    redis.xadd(keys.stream, {"type": "a.b"}, id=f"{int(hour_ago().timestamp() * 1000)}-0")
    (stream,) = found(settings, "stream")
    assert stream.level is Level.WARN
    assert "the oldest for 3,6" in stream.text


def test_entries_that_were_trimmed_before_they_were_read_are_told(settings: Settings, room: Room) -> None:
    redis, keys = room.parts.redis, room.parts.keys
    redis.xgroup_create(keys.stream, GROUP, id="0", mkstream=True)
    first = redis.xadd(keys.stream, {"type": "a.b"})
    redis.xreadgroup(GROUP, "c1", {keys.stream: ">"})
    redis.xack(keys.stream, GROUP, first.decode())
    for _ in range(3):
        redis.xadd(keys.stream, {"type": "a.b"})
    assert found(settings, "stream")[0].level is Level.OK
    redis.xtrim(keys.stream, maxlen=1, approximate=False)
    (stream,) = found(settings, "stream")
    assert stream.level is Level.WARN
    assert "entries that nobody had read were trimmed" in stream.text


def test_the_tables_of_a_later_version_are_told(settings: Settings, room: Room) -> None:
    with room.database.begin() as conn:
        conn.execute(text("UPDATE alembic_version SET version_num = '9999_later'"))
    (sql,) = found(settings, "sql")
    assert sql.level is Level.WARN
    assert "a later version" in sql.text


@pytest.mark.parametrize(
    ("facts", "level", "words"),
    [
        ({}, Level.OK, "PostgreSQL 18, UTF8, 100 connections"),
        ({"version": 12}, Level.FAIL, "PostgreSQL 12"),
        ({"is_standby": True}, Level.FAIL, "takes no writes"),
        ({"encoding": "LATIN1"}, Level.FAIL, "stores texts as LATIN1"),
        ({"zone": "Europe/Berlin"}, Level.WARN, "a pooler drops their options"),
        ({"connections": 20}, Level.WARN, "takes 20 connections"),
    ],
)
def test_a_postgresql_that_does_not_fit_is_told(facts: dict, level: Level, words: str) -> None:
    given = {name: getattr(GOOD, name) for name in GOOD.__slots__}
    finding = _postgres(ServerFacts(**{**given, **facts}))
    assert finding.level is level
    assert words in finding.text
    assert bool(finding.fix) == (level is not Level.OK)


@pytest.mark.parametrize(
    ("kind", "level"),
    [("ext4", Level.OK), ("nfs4", Level.FAIL), ("cifs", Level.FAIL), ("fuse.sshfs", Level.FAIL)],
)
def test_a_sqlite_file_on_a_network_is_told(tmp_path: Path, kind: str, level: Level) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/a / ext4 rw 0 0\nhost:/b {tmp_path} {kind} rw 0 0\nproc /proc proc rw 0 0\n")
    assert _file_system(tmp_path / "knockon.db", mounts).level is level
    assert _file_system(Path("/elsewhere/knockon.db"), mounts).text == "SQLite, on ext4"
    assert _file_system(tmp_path / "knockon.db", tmp_path / "none").level is Level.OK


@pytest.mark.parametrize(
    ("limit", "level"), [(256, Level.WARN), (1024, Level.OK), (resource.RLIM_INFINITY, Level.OK)]
)
def test_a_low_limit_of_open_files_is_told(monkeypatch: pytest.MonkeyPatch, limit: int, level: Level) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit, limit))
    assert open_files().level is level
