"""What one `up` holds: the Redis in its folder is started again, and a look at the folder disturbs nobody."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from knockon.embedded import FIND_TIMEOUT_S, find_redis, start_redis
from knockon.keeping import MOST_ENDS, RedisKeeper, is_up, only_one
from knockon.servers import redis_url
from shared.errors import ConfigError
from shared.settings import Settings
from shared.time.clock import SystemClock
from tests.full_disk import refusing_writes
from tests.waiting import poll


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder whose path is short enough for a socket, and leave no server in it."""
    path = Path(mkdtemp(prefix="knockon-"))
    yield path
    running = find_redis(path)
    if running:
        running.stop()
    shutil.rmtree(path, ignore_errors=True)


class Kept:
    """A keeper, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.lines: list[str] = []
        self.folder = folder
        self.keeper = RedisKeeper(
            folder, SystemClock(), lambda name, line: self.lines.append(f"{name} {line}")
        )

    def kill(self) -> None:
        running = find_redis(self.folder)
        assert running
        os.kill(running.pid, signal.SIGKILL)
        poll(lambda: not running.is_alive())


def test_a_redis_that_died_runs_again_at_its_address_with_its_data(folder: Path) -> None:
    kept = Kept(folder)
    url = kept.keeper.url
    with closing(Redis.from_url(url)) as client:
        client.config_set("appendfsync", "always")
        client.set("a", "1")
    kept.keeper.tend()
    assert kept.lines == []
    kept.kill()
    kept.keeper.tend()
    assert kept.lines == ["redis has ended; it is started again on its data", "redis runs again"]
    with closing(Redis.from_url(url)) as client:
        assert client.get("a") == b"1"
    kept.keeper.stop()
    assert find_redis(folder) is None


def test_the_address_stays_the_same_on_loopback(folder: Path) -> None:
    kept = Kept(folder / ("d" * 100))
    url = kept.keeper.url
    assert url.startswith("redis://:")
    kept.kill()
    kept.keeper.tend()
    with closing(Redis.from_url(url)) as client:
        assert client.ping()
    kept.keeper.stop()


def test_a_redis_that_cannot_be_started_again_is_told_of(folder: Path) -> None:
    kept = Kept(folder)
    kept.kill()
    (folder / "redis" / "redis.conf").write_text("nonsense 1\n")
    with pytest.raises(ConfigError, match="redis-server ended at once"):
        kept.keeper.tend()
    assert "redis cannot be kept running: redis-server ended at once" in kept.lines[-1]


def test_a_folder_that_is_gone_is_told_of(folder: Path) -> None:
    kept = Kept(folder)
    kept.kill()
    shutil.rmtree(folder)
    with pytest.raises(ConfigError, match="No such file"):
        kept.keeper.tend()


def test_a_redis_that_ends_again_and_again_is_given_up(folder: Path) -> None:
    kept = Kept(folder)
    for _ in range(MOST_ENDS):
        kept.kill()
        kept.keeper.tend()
    kept.kill()
    with pytest.raises(ConfigError, match="times within minutes"):
        kept.keeper.tend()


def test_an_up_is_seen_while_it_holds_its_folder(folder: Path) -> None:
    assert not is_up(folder)
    assert list(folder.iterdir()) == []
    with only_one(folder):
        assert is_up(folder)
        with pytest.raises(ConfigError, match="knockon up runs in"), only_one(folder):
            pass
    assert not is_up(folder)


def test_a_command_tells_a_stopped_deployment_from_one_whose_redis_is_away(folder: Path) -> None:
    settings = Settings(data_dir=folder, redis_url=None)
    with pytest.raises(ConfigError, match="start it with: knockon up"):
        redis_url(settings)
    with only_one(folder), pytest.raises(ConfigError, match=r"knockon up runs in .* but its Redis does not"):
        redis_url(settings)


def test_a_redis_that_takes_no_writes_is_found_at_once(folder: Path) -> None:
    server = start_redis(folder)
    clock = SystemClock()
    with refusing_writes(server), closing(Redis.from_url(server.url)) as client:
        with pytest.raises(ResponseError, match="MISCONF"):
            client.ping()
        begun_s = clock.monotonic()
        assert find_redis(folder) == server
        assert clock.monotonic() - begun_s < FIND_TIMEOUT_S / 2


def test_a_redis_that_does_not_answer_is_waited_for_no_longer_than_seconds(folder: Path) -> None:
    server = start_redis(folder)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ConfigError, match="did not answer in 5 s"):
            find_redis(folder)
    finally:
        os.kill(server.pid, signal.SIGCONT)
