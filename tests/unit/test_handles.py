"""What a worker reads from a handle, and that it reads nothing else; and how it paces itself."""

import pickle
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from shared.model.runs import QueueKind
from shared.process import StopFlag
from shared.queue import FUNCTION, HANDLE_SIZE, make_handle_id
from shared.time.clock import ManualClock
from worker.handles import HandleJob
from worker.pace import FIRST_PAUSE_S, LONGEST_PAUSE_S, Every, Outage

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
NOWHERE: Any = object()


def packed(payload: object) -> bytes:
    return zlib.compress(orjson.dumps(payload))


def said(run_ids: object, function: str = FUNCTION) -> bytes:
    return packed([function, None, [], {"run_ids": run_ids, "at": AT.isoformat()}])


def restored(data: bytes | None, handle_id: str | None = None) -> HandleJob:
    job = HandleJob(handle_id or make_handle_id(QueueKind.MAIN, AT), NOWHERE)
    job.restore({} if data is None else {b"data": data})
    return job


class Trap:
    """An object whose unpickling would be noticed."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return pytest.fail, ("a payload was unpickled",)


def test_a_handle_gives_its_runs_its_queue_and_its_time() -> None:
    job = restored(said(["r1", "r2"]), make_handle_id(QueueKind.BULK, AT))
    assert job.fault is None
    assert job.handle is not None
    assert (job.handle.kind, job.handle.run_ids, job.handle.at) == (QueueKind.BULK, ("r1", "r2"), AT)


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"garbage",
        pickle.dumps(Trap()),
        zlib.compress(pickle.dumps(Trap())),
        said(["r1"], "os.system"),
        packed([FUNCTION, None, [], {}]),
        packed([FUNCTION, None, []]),
        packed({"run_ids": ["r1"]}),
        packed(7),
        said([1]),
        said("r 1"),
        said(["r1", None]),
        said(["r\x001"]),
        said(["../r1"]),
        said(["r1"] * (HANDLE_SIZE + 1)),
        said(["r" * 65]),
        said(["r1"])[:-9],
        zlib.compress(b"[" * 100_000_000, 1),
        zlib.compress(b"[" * 16_000),
    ],
)
def test_what_is_no_handle_becomes_a_fault_and_raises_nothing(data: bytes | None) -> None:
    job = restored(data)
    assert job.handle is None
    assert job.fault


@pytest.mark.parametrize("handle_id", ["x", "main-1", "main-x-1", "other-1-1", f"main-{10**30}-1"])
def test_an_id_that_is_none_of_ours_is_a_fault(handle_id: str) -> None:
    job = restored(said(["r1"]), handle_id)
    assert job.handle is None
    assert job.fault


def test_no_other_field_of_the_hash_is_read() -> None:
    job = HandleJob(make_handle_id(QueueKind.MAIN, AT), NOWHERE)
    hostile = pickle.dumps(Trap())
    names = ["meta", "result", "success_callback_name", "webhooks", "timeout", "created_at", "dependency_ids"]
    job.restore({b"data": said(["r1"]), **{name.encode(): hostile for name in names}})
    assert job.handle is not None
    assert (job.meta, job.webhooks) == ({}, [])


def test_a_thing_is_due_at_once_and_then_in_its_turn() -> None:
    clock = ManualClock(AT)
    every = Every(clock, 10)
    assert every.is_due()
    assert not every.is_due()
    clock.advance(timedelta(seconds=10))
    assert every.is_due()
    every.expedite()
    assert every.is_due()


class Pauses(StopFlag):
    """A flag that notes how long it was waited for, and waits for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[float] = []

    def wait(self, timeout_s: float) -> bool:
        self.taken.append(timeout_s)
        return False


def test_pauses_grow_to_their_limit_and_begin_anew_after_a_success() -> None:
    flag = Pauses()
    outage = Outage("redis", flag)
    for _ in range(8):
        outage.endure(OSError("away"))
    assert flag.taken[:3] == [FIRST_PAUSE_S, FIRST_PAUSE_S * 2, FIRST_PAUSE_S * 4]
    assert flag.taken[-1] == LONGEST_PAUSE_S
    outage.end()
    outage.endure(OSError("away"))
    assert flag.taken[-1] == FIRST_PAUSE_S
