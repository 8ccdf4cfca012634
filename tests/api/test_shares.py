"""What may take long has a share of the threads: whatever hangs, and whoever asks, rows can still be read."""

import asyncio
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from api.errors import Refused
from api.looks import Look
from api.shares import Share, Size, Turns, share_of
from shared.services.backends import open_backends
from shared.settings import Settings
from tests.api.test_openapi import operations
from tests.calling import Api, serving
from tests.waiting import poll

EVENT = {"type": "order.placed", "payload": {}}
AT_ONCE = 35


def test_every_route_that_may_take_long_has_a_share() -> None:
    found = {(method.upper(), path): share_of(method.upper(), path) for method, path, _ in operations()}
    plain = {place for place, share in found.items() if share is None}
    assert all(method == "GET" for method, _ in plain)
    assert {path for method, path in found if method == "GET"} - {path for _, path in plain} == {
        "/v1/events",
        "/v1/events/{entry_id}",
        "/v1/events/{entry_id}/explain",
    }
    assert found["POST", "/v1/backtests"] is Share.BACKTESTS
    assert found["POST", "/v1/automations/{automation}/dry-run"] is Share.LOOKS
    assert found["GET", "/v1/events/{entry_id}/explain"] is Share.LOOKS
    assert found["POST", "/v1/events"] is Share.WRITES


def test_a_turn_is_waited_for_and_refused_by_whose_turns_are_taken() -> None:
    async def taking() -> list[int]:
        turns, refused = Turns(Size(3, 2, 0.05)), []
        for workspace in ("w1", "w1", "w2"):
            await turns.take(workspace)
        for workspace in ("w1", "w2", "w3"):
            try:
                await turns.take(workspace)
            except Refused as error:
                refused.append(error.status)
        waiting = asyncio.create_task(Turns.take(turns, "w3"))
        await asyncio.sleep(0)
        turns.give_back("w1")
        await waiting
        return refused

    assert asyncio.run(taking()) == [429, 503, 503]


def test_a_look_that_takes_too_long_is_answered_and_joined() -> None:
    async def asking() -> tuple[list[str], int]:
        asked: list[int] = []
        begun, may_end = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def work() -> str:
            asked.append(1)
            loop.call_soon_threadsafe(begun.set)
            asyncio.run_coroutine_threadsafe(may_end.wait(), loop).result(10)
            return "ok"

        look = Look(work, "late", 0.05)
        answers = [await look.ask(), await look.ask()]
        await begun.wait()
        may_end.set()
        answers += [await Look(lambda: "ok", "late").ask()]
        return answers, len(asked)

    assert asyncio.run(asking()) == (["late", "late", "ok"], 1)


@contextmanager
def many(api: Api, key: str, path: str, body: object) -> Iterator[list[Future[httpx2.Response]]]:
    """Have many send the same write at once for the length of the block."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield [pool.submit(api, "POST", path, key=key, json=body) for _ in range(AT_ONCE)]


def seconds(api: Api, path: str, key: str) -> float:
    """Tell how long a read takes."""
    begun_s = time.monotonic()
    assert api("GET", path, key=key).status_code in (200, 503)
    return time.monotonic() - begun_s


def test_a_redis_that_hangs_holds_up_only_what_needs_it(sqlite_url: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        values = {
            "redis_url": f"redis://127.0.0.1:{silent.getsockname()[1]}",
            "database_url": sqlite_url,
            "data_dir": tmp_path / "kept",
        }
        settings = Settings.model_validate(values)
        backends = open_backends(settings, 30)
        with serving(settings, backends) as api:
            key = api.key()
            with many(api, key, "/v1/events", EVENT) as sent:
                took_s = [seconds(api, "/v1/runs", key) for _ in range(5)]
                assert max(took_s) < 2.5
                assert seconds(api, "/readyz", key) < 6
            answers = [each.result() for each in sent]
        backends.close()
    assert {answer.status_code for answer in answers} == {429, 503}
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_turn_to_write_that_nobody_gives_back_holds_up_only_writes(api: Api, tmp_path: Path) -> None:
    key = api.key()
    handle = os.open(tmp_path / "knockon.db-writers", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    flag = {"name": "human-lock", "state": "on"}
    with many(api, key, "/v1/flags", flag) as sent:
        try:
            assert max(seconds(api, "/v1/runs", key) for _ in range(5)) < 2.5
            poll(lambda: sum(each.done() for each in sent) == AT_ONCE - Share.WRITES.value.of_a_workspace, 15)
        finally:
            os.close(handle)
    assert {each.result().status_code for each in sent} == {200, 429}
