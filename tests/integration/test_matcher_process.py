"""A matcher as a process: killed at every place, left without its servers, asked to end."""

import shutil
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest

from knockon.embedded import start_redis
from matcher.service import build_loop, serve
from shared.db.engine import open_database
from shared.errors import SettingsError
from shared.faults import FaultPoint
from shared.keys import Keys
from shared.process import StopFlag
from shared.queue import HandleQueue
from shared.redis_port import open_redis
from shared.services.backends import Backends
from shared.settings import Settings
from shared.time.clock import SystemClock
from tests.matching import Post, open_post
from tests.people import opened_backends
from tests.processes import end, started
from tests.waiting import poll

EVENTS = 60
POINTS = [
    FaultPoint.MATCH_AFTER_READ,
    FaultPoint.MATCH_AFTER_DEDUPE,
    FaultPoint.MATCH_BEFORE_COMMIT,
    FaultPoint.MATCH_AFTER_COMMIT,
    FaultPoint.ENQUEUE_BEFORE,
    FaultPoint.MATCH_BEFORE_ACK,
    FaultPoint.ENQUEUE_AFTER,
]


@pytest.fixture
def post(backends: Backends) -> Post:
    """Give the test's own eyes and hands; its matcher never reads."""
    return open_post(replace(backends, clock=SystemClock()), consumer="test")


@pytest.fixture
def environment(redis_url: str, database_url: str) -> dict[str, str]:
    return {"REDIS_URL": redis_url, "DATABASE_URL": database_url, "CLAIM_IDLE_S": "0.3"}


def is_done(post: Post, events: int = EVENTS) -> bool:
    return len(post.runs()) == events and post.pending() == 0


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_nothing_and_doubles_nothing(
    post: Post, environment: dict[str, str], tmp_path: Path, point: FaultPoint
) -> None:
    post.add()
    for number in range(EVENTS):
        post.publish(id=f"e{number}")
    with started("matcher", tmp_path / "log", **environment, KNOCKON_FAULT=f"{point}:kill9") as victim:
        assert victim.wait(30) == -signal.SIGKILL
    with looping(environment["DATABASE_URL"], environment["REDIS_URL"]):
        poll(lambda: is_done(post), timeout_s=30)
    handles = Counter(post.handled())
    assert set(handles) == {run.id for run in post.runs()}
    assert max(handles.values()) <= 2
    assert post.count(post.backends.keys.matched("EVENT")) == EVENTS
    assert (post.skipped("deduped"), post.health("entries_buried")) == (0, 0)


def test_an_error_that_nobody_expects_ends_the_process(
    post: Post, environment: dict[str, str], tmp_path: Path
) -> None:
    post.add()
    post.publish()
    log = tmp_path / "log"
    armed = {**environment, "KNOCKON_FAULT": f"{FaultPoint.MATCH_BEFORE_COMMIT}:raise"}
    with started("matcher", log, **armed) as process:
        assert process.wait(30) == 1
    assert '"matcher_failed"' in log.read_text()
    assert post.pending() == 1


def test_a_process_that_was_asked_to_end_leaves_no_consumer(
    post: Post, environment: dict[str, str], tmp_path: Path
) -> None:
    post.add()
    with started("matcher", tmp_path / "log", **environment) as process:
        post.publish()
        poll(lambda: is_done(post, 1), timeout_s=30)
        assert end(process) == 0
    assert post.backends.redis.xinfo_consumers(post.backends.keys.stream, "automations-matcher") == []


def test_there_is_no_matcher_without_servers() -> None:
    with pytest.raises(SettingsError, match="REDIS_URL"):
        serve(Settings(_env_file=None, redis_url=None))
    with pytest.raises(SettingsError, match="DATABASE_URL"):
        serve(Settings(_env_file=None, redis_url="redis://127.0.0.1:1", database_url=None))


@contextmanager
def looping(database_url: str, redis_url: str) -> Iterator[None]:
    """Run a matcher in a thread, on connections of its own."""
    stop = StopFlag()
    settings = Settings(_env_file=None, claim_idle_s=0.3, retention_days=36_500)
    database, client, keys = open_database(database_url), open_redis(redis_url), Keys("", "factory:events")
    backends = Backends(database, client, keys, HandleQueue(client, keys), SystemClock())
    thread = threading.Thread(target=build_loop(settings, backends, "looping").run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.raise_()
        thread.join(30)
        database.dispose()
        client.close()
    assert not thread.is_alive()


def rename(post: Post, old: str, new: str) -> None:
    with post.backends.database.begin() as conn:
        conn.exec_driver_sql(f"ALTER TABLE {old} RENAME TO {new}")


def test_without_sql_the_batch_is_held_and_nothing_new_is_read(
    post: Post, database_url: str, redis_url: str
) -> None:
    post.add()
    post.publish()
    with looping(database_url, redis_url):
        poll(lambda: is_done(post, 1), timeout_s=30)
        rename(post, "automation_runs", "elsewhere")
        held = post.publish(id="held")
        poll(lambda: post.pending() == 1)
        post.publish(id="unread")
        assert post.pending() == 1
        assert delivered(post) == held
        rename(post, "elsewhere", "automation_runs")
        poll(lambda: is_done(post, 3), timeout_s=30)
    assert post.health("entries_buried") == 0


def delivered(post: Post) -> str:
    (group,) = post.backends.redis.xinfo_groups(post.backends.keys.stream)
    return group["last-delivered-id"].decode()


def test_a_redis_that_comes_back_is_read_on(sqlite_url: str, short_folder: Path) -> None:
    server = start_redis(short_folder)
    with opened_backends(sqlite_url, server.url) as backends:
        post = open_post(replace(backends, clock=SystemClock()), consumer="test")
        post.add()
        with looping(sqlite_url, server.url):
            post.publish(id="before")
            poll(lambda: is_done(post, 1), timeout_s=30)
            server.stop()
            start_redis(short_folder)
            post.publish(id="after")
            poll(lambda: is_done(post, 2), timeout_s=30)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Give a folder whose path is short enough for a socket, and leave no server in it."""
    path = Path(mkdtemp(prefix="knockon-"))
    yield path
    start_redis(path).stop()
    shutil.rmtree(path)
