"""What the doctor finds: a folder that cannot be used, a server that refuses, parts that are silent."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import mkdtemp

import pytest

from knockon.doctor import examine
from knockon.embedded import start_redis
from knockon.findings import Finding, Level
from knockon.keeping import LOCK_FILE, only_one
from matcher.service import build_loop
from matcher.stream import Stream
from shared.beats import SILENT_AFTER, Pulse
from shared.db.engine import open_database
from shared.db.locks import WATCHDOG, take_lock
from shared.db.migrating import migrate
from shared.ports import free_port
from shared.presence import STANDING_TTL_S
from shared.process import StopFlag
from shared.redis_port import RedisPort, open_redis
from shared.services.backends import Backends
from shared.settings import Settings
from shared.time.clock import SystemClock
from tests.full_disk import refusing_writes
from tests.waiting import poll
from tests.worker_stage import KEYS, Recorder, make_link, working
from worker.scheduler import RetryScheduler

PARTS = ("matcher", "worker", "timers", "scheduler", "watchdog")
NOW = timedelta(0)


@pytest.fixture
def settings(sqlite_url: str, redis_url: str, tmp_path: Path) -> Settings:
    return Settings(
        data_dir=tmp_path / "data", redis_url=redis_url, database_url=sqlite_url, prefix=KEYS.prefix
    )


@pytest.fixture
def client(redis_url: str) -> Iterator[RedisPort]:
    with closing(open_redis(redis_url)) as opened:
        yield opened


def findings(settings: Settings) -> dict[str, Finding]:
    """Give what is found by its subject; each has one."""
    found = list(examine(settings))
    by_subject = {finding.subject: finding for finding in found}
    assert len(by_subject) == len(found)
    return by_subject


def levels(settings: Settings) -> list[Level]:
    """Give the level of each part."""
    found = findings(settings)
    return [found[part].level for part in PARTS]


def show_matcher(client: RedisPort) -> None:
    Stream(client, KEYS, "m1").beat(datetime.now(UTC))


def show_beat(client: RedisPort, part: str, ago: timedelta = NOW) -> None:
    with client.pipeline(transaction=True) as pipe:
        Pulse(KEYS, part, "p1").beat(pipe, datetime.now(UTC) - ago)
        pipe.execute()


def show_watchdog(settings: Settings, ago: timedelta = NOW) -> None:
    database = open_database(settings.database_url or "")
    with database.begin() as conn:
        take_lock(conn, WATCHDOG, "d1", now=datetime.now(UTC) - ago, hold=timedelta(seconds=15))
    database.dispose()


def test_a_misspelt_setting_is_a_warning_that_names_the_one_that_is_meant(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert findings(settings)["settings"].level is Level.OK
    (tmp_path / ".env").write_text("RUN_LEASE=5\n")
    monkeypatch.setenv("KNOCKON_DATADIR", "x")
    found = findings(settings)["settings"]
    assert (found.level, found.text) == (Level.WARN, "nothing reads KNOCKON_DATADIR, RUN_LEASE")
    assert found.fix == "write KNOCKON_DATA_DIR, RUN_LEASE_S, if that is meant"


def test_that_nothing_runs_is_a_warning_that_says_how_to_start(settings: Settings) -> None:
    found = findings(settings)
    assert {found[part].level for part in PARTS} == {Level.WARN}
    assert found["worker"].fix == "knockon up, or knockon run worker"


def test_that_some_parts_run_and_others_do_not_is_a_failure(settings: Settings, client: RedisPort) -> None:
    show_matcher(client)
    assert levels(settings) == [Level.OK, *[Level.FAIL] * 4]
    show_beat(client, "timers")
    show_beat(client, "scheduler")
    show_watchdog(settings)
    assert levels(settings) == [Level.OK, Level.FAIL, *[Level.OK] * 3]


def test_a_worker_is_known_until_it_ends_or_falls_silent(settings: Settings, client: RedisPort) -> None:
    with working(settings.redis_url or "", Recorder()) as running:
        poll(lambda: findings(settings)["worker"].text == "1 at work")
        left_s = STANDING_TTL_S - int(SILENT_AFTER.total_seconds())
        with client.pipeline(transaction=False) as pipe:
            pipe.expire(running.worker.key, left_s)
            pipe.execute()
        assert findings(settings)["worker"].level is not Level.OK
    assert findings(settings)["worker"].level is Level.WARN


def test_what_was_left_behind_is_no_sign_of_life(settings: Settings, client: RedisPort) -> None:
    show_beat(client, "timers", SILENT_AFTER + timedelta(seconds=1))
    show_beat(client, "scheduler", SILENT_AFTER + timedelta(seconds=1))
    show_watchdog(settings, timedelta(seconds=16))
    assert levels(settings) == [Level.WARN] * len(PARTS)


def test_a_scheduler_is_known_until_it_ends(settings: Settings) -> None:
    stop = StopFlag()
    thread = threading.Thread(
        target=RetryScheduler(make_link(settings.redis_url or ""), stop).run, daemon=True
    )
    thread.start()
    poll(lambda: findings(settings)["scheduler"].level is Level.OK)
    stop.raise_()
    thread.join(10)
    assert findings(settings)["scheduler"].level is Level.WARN


def test_a_matcher_is_known_until_it_ends(backends: Backends, redis_url: str, database_url: str) -> None:
    settings = Settings(redis_url=redis_url, database_url=database_url)
    stop = StopFlag()
    loop = build_loop(settings, replace(backends, clock=SystemClock()), "m1")
    thread = threading.Thread(target=loop.run, args=(stop,), daemon=True)
    thread.start()
    poll(lambda: findings(settings)["matcher"].level is Level.OK)
    stop.raise_()
    thread.join(10)
    assert findings(settings)["matcher"].level is Level.WARN


def test_that_nothing_runs_under_an_up_is_a_failure(settings: Settings) -> None:
    with only_one(settings.data_dir):
        lock = settings.data_dir / LOCK_FILE
        os.utime(lock, (lock.stat().st_mtime - 31,) * 2)
        found = findings(settings)
    assert {found[part].level for part in PARTS} == {Level.FAIL}
    assert found["matcher"].fix == "see what knockon up prints"


def test_an_up_has_the_time_to_start_what_it_keeps(settings: Settings) -> None:
    settings.data_dir.mkdir(mode=0o700, exist_ok=True)
    lock = settings.data_dir / LOCK_FILE
    lock.touch()
    os.utime(lock, (0, 0))
    with only_one(settings.data_dir):
        found = findings(settings)
    assert {found[part].level for part in PARTS} == {Level.WARN}
    assert found["matcher"].text.startswith("still starting: knockon up has run for ")
    assert findings(settings)["matcher"].fix.startswith("knockon up")


def test_a_redis_that_takes_no_writes_is_named(settings: Settings) -> None:
    folder = Path(mkdtemp(prefix="knockon-"))
    server = start_redis(folder)
    with refusing_writes(server):
        found = findings(settings.model_copy(update={"redis_url": server.url}))
    server.stop()
    shutil.rmtree(folder)
    assert found["redis writes"].level is Level.FAIL
    assert "are refused: " in found["redis writes"].text
    assert found["redis"].level is Level.OK


def test_a_data_folder_that_is_a_file_is_a_row_for_each_check(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    port = free_port("127.0.0.1", 0)
    given = Settings(data_dir=tmp_path / "data", redis_url=None, database_url=None, api_port=port)
    found = findings(given)
    failed = {subject for subject, finding in found.items() if finding.level is Level.FAIL}
    assert failed == {"data folder", "redis", "sql", "api"}
    assert "Not a directory" in found["redis"].text
    assert found["python"].level is Level.OK


@pytest.fixture
def forbidden(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, int], None]:
    """Forbid a path what its mode forbids, to whoever runs the tests: the superuser may do anything."""
    access = os.access
    paths: dict[str, int] = {}

    def allowed(path: os.PathLike[str], mode: int) -> bool:
        return not mode & paths.get(os.fspath(path), 0) and access(path, mode)

    monkeypatch.setattr(os, "access", allowed)
    return lambda path, mode: paths.update({os.fspath(path): mode})


@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_database_that_cannot_be_written_is_named(
    which: str, tmp_path: Path, redis_url: str, forbidden: Callable[[Path, int], None]
) -> None:
    file = tmp_path / "sql" / "a.db"
    migrate(f"sqlite:///{file}")
    forbidden(file if which == "file" else file.parent, os.W_OK)
    settings = Settings(data_dir=tmp_path, redis_url=redis_url, database_url=f"sqlite:///{file}")
    found = findings(settings)["sql"]
    assert (found.level, found.text) == (Level.FAIL, f"{file} cannot be written")


def test_a_database_that_is_not_there_is_named_and_not_made(tmp_path: Path, redis_url: str) -> None:
    file = tmp_path / "a.db"
    settings = Settings(data_dir=tmp_path, redis_url=redis_url, database_url=f"sqlite:///{file}")
    found = findings(settings)["sql"]
    assert (found.level, found.fix) == (Level.FAIL, "knockon migrate")
    assert not file.exists()
