"""The Redis server of our own: found, started, found again, stopped, with its data kept."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

import pytest
from redis import Redis

from knockon import embedded
from knockon.embedded import RedisProcess, find_redis, find_redis_server, start_redis
from shared.errors import ConfigError


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder whose path is short enough for a socket, and leave no server in it."""
    path = Path(mkdtemp(prefix="knockon-"))
    yield path
    running = find_redis(path)
    if running:
        running.stop()
    shutil.rmtree(path)


def put(server: RedisProcess, name: str, value: str) -> None:
    with closing(Redis.from_url(server.url)) as client:
        client.set(name, value)


def get(server: RedisProcess, name: str) -> object:
    with closing(Redis.from_url(server.url, decode_responses=True)) as client:
        return client.get(name)


def test_data_outlive_a_stop(folder: Path) -> None:
    server = start_redis(folder)
    put(server, "a", "1")
    server.stop()
    assert get(start_redis(folder), "a") == "1"


def test_data_outlive_a_kill(folder: Path) -> None:
    server = start_redis(folder)
    with closing(Redis.from_url(server.url)) as client:
        client.config_set("appendfsync", "always")
        client.set("a", "1")
    os.kill(server.pid, signal.SIGKILL)
    server.stop()
    assert get(start_redis(folder), "a") == "1"


def test_a_second_start_finds_the_first_server(folder: Path) -> None:
    first = start_redis(folder)
    second = start_redis(folder)
    assert (second.url, second.pid) == (first.url, first.pid)
    second.stop()
    first.stop()


def test_a_server_is_found_only_while_it_runs(folder: Path) -> None:
    assert find_redis(folder) is None
    assert list(folder.iterdir()) == []
    server = start_redis(folder)
    assert find_redis(folder) == server
    server.stop()
    assert find_redis(folder) is None


def test_only_its_owner_can_use_the_socket(folder: Path) -> None:
    start_redis(folder)
    assert (folder / "redis").stat().st_mode & 0o077 == 0
    assert (folder / "redis" / "redis.sock").stat().st_mode & 0o077 == 0


def test_only_its_owner_can_enter_a_folder_that_is_made_for_it(folder: Path) -> None:
    server = start_redis(folder / "data")
    server.stop()
    assert (folder / "data").stat().st_mode & 0o777 == 0o700


def test_it_never_evicts_and_logs_every_write(folder: Path) -> None:
    with closing(Redis.from_url(start_redis(folder).url, decode_responses=True)) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}


def test_a_path_too_long_for_a_socket_gets_loopback_with_a_password(folder: Path) -> None:
    deep = folder / ("d" * 100) / 'with "odd" \\ name'
    server = start_redis(deep)
    try:
        assert server.url.startswith("redis://:")
        assert "@127.0.0.1:" in server.url
        put(server, "a", "1")
        assert start_redis(deep).pid == server.pid
    finally:
        server.stop()


def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    (folder / "redis" / "appendonly.aof").mkdir(parents=True)
    (folder / "redis" / "appendonlydir").write_text("not a folder")
    with pytest.raises(ConfigError, match=r"redis-server ended at once: .+"):
        start_redis(folder)


def test_a_machine_without_any_server_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(embedded, "WHEELS", ())
    with pytest.raises(ConfigError, match="set REDIS_URL"):
        find_redis_server()


def test_a_server_that_is_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=5.0.14 sha=0'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_redis_server() != old
