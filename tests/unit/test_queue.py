"""Handles as bytes: what is written is read back, and nothing else is taken for one."""

import pickle
import zlib
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.ids import new_id
from shared.keys import Keys
from shared.model.runs import BULK_ABOVE, QueueKind, queue_for
from shared.queue import (
    EPOCH,
    FUNCTION,
    HANDLE_SIZE,
    MAX_PAYLOAD_BYTES,
    BadHandle,
    HandleQueue,
    decode_handle,
    make_handle_id,
    parse_scheduled,
    pushed_at,
)

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
ID = make_handle_id(QueueKind.MAIN, AT)
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


class Pipe:
    """A pipeline that only remembers what it was told."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __getattr__(self, command: str) -> Any:
        return lambda *given, **named: self.calls.append((command, given, named))


def written(run_ids: list[str], kind: QueueKind, at: datetime) -> list[tuple[str, dict[bytes, bytes]]]:
    """Give the ids and hashes of the handles that a push writes."""
    pipe: Any = Pipe()
    client: Any = None
    HandleQueue(client, Keys("", "s")).add_to(pipe, kind, run_ids, at)
    hashes = [
        {
            name.encode(): text if isinstance(text, bytes) else str(text).encode()
            for name, text in named["mapping"].items()
        }
        for command, _, named in pipe.calls
        if command == "hset"
    ]
    ids = [given[1] for command, given, _ in pipe.calls if command == "rpush"]
    return list(zip(ids, hashes, strict=True))


def packed(payload: object) -> dict[bytes, bytes]:
    return {b"data": zlib.compress(orjson.dumps(payload))}


def said(run_ids: object, function: str = FUNCTION) -> dict[bytes, bytes]:
    return packed([function, None, [], {"run_ids": run_ids}])


run_ids_given = st.lists(st.uuids().map(str), min_size=1, max_size=3 * HANDLE_SIZE)
instants = st.integers(0, 7 * 10**15).map(lambda micros: EPOCH + timedelta(microseconds=micros))


@given(run_ids_given, st.sampled_from(QueueKind), instants)
def test_what_is_pushed_is_read_back(run_ids: list[str], kind: QueueKind, at: datetime) -> None:
    handles = [decode_handle(handle_id, fields) for handle_id, fields in written(run_ids, kind, at)]
    assert [run_id for handle in handles for run_id in handle.run_ids] == run_ids
    assert all((handle.kind, handle.at) == (kind, at) for handle in handles)
    assert all(len(handle.run_ids) <= HANDLE_SIZE for handle in handles)
    assert len({handle.id for handle in handles}) == len(handles)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {b"data": b""},
        {b"data": b"garbage"},
        {b"data": pickle.dumps(("os.system", None, ["true"], {}))},
        {b"data": zlib.compress(pickle.dumps(("os.system", None, ["true"], {})))},
        {b"data": zlib.compress(b"x" * 10_000_000)},
        {b"data": zlib.compress(b"[" * MAX_PAYLOAD_BYTES)},
        {b"data": said(["r1"])[b"data"][:-5]},
        {b"data": said(["r1"])[b"data"] + b"more"},
        packed("abcd"),
        packed({"a": 1, "b": 2, "c": 3, "d": 4}),
        packed([FUNCTION, None, []]),
        packed([FUNCTION, None, [], []]),
        packed([FUNCTION, None, [], {}]),
        said(None),
        said("r1"),
        said({"r1": 1}),
        said([]),
        said([1]),
        said([""]),
        said(["x" * 65]),
        said([["r1"]]),
        said([new_id()] * (HANDLE_SIZE + 1)),
        said(["r1"], "os.system"),
        said(["r1"], "run-automations"),
    ],
)
def test_anything_else_is_refused(fields: dict[bytes, bytes]) -> None:
    with pytest.raises(BadHandle):
        decode_handle(ID, fields)


@pytest.mark.parametrize(
    "handle_id",
    [
        "",
        "x",
        "main",
        "main-1",
        "main-1-1",
        "other-1-0123456789ab",
        "main--1-0123456789ab",
        "main-1_0-0123456789ab",
        "main- 1-0123456789ab",
        "main-١-0123456789ab",
        f"main-{10**30}-0123456789ab",
        "main-1-0123456789ab\n",
        "main-1-0123456789ab-1",
    ],
)
def test_an_id_of_another_form_is_refused(handle_id: str) -> None:
    with pytest.raises(BadHandle):
        pushed_at(handle_id)
    with pytest.raises(BadHandle):
        decode_handle(handle_id, said(["r1"]))


@given(st.text())
def test_no_text_breaks_the_reading_of_an_id(text: str) -> None:
    with pytest.raises(BadHandle):
        pushed_at(text)


@given(st.sampled_from(QueueKind), instants)
def test_an_id_tells_its_queue_and_the_microsecond_of_its_push(kind: QueueKind, at: datetime) -> None:
    handle_id = make_handle_id(kind, at)
    assert pushed_at(handle_id) == at
    assert handle_id.startswith(f"{kind}-")
    assert set(handle_id) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize("run_id", ["", "r1\n", "../r1", "r" * 65, "é"])
def test_run_ids_are_letters_digits_and_dashes(run_id: str) -> None:
    handle_id = make_handle_id(QueueKind.MAIN, AT)
    assert decode_handle(handle_id, said(["r1", "0190-a"])).run_ids == ("r1", "0190-a")
    with pytest.raises(BadHandle):
        decode_handle(handle_id, said(["r1", run_id]))


def test_a_scheduler_entry_is_read_back() -> None:
    pipe: Any = Pipe()
    client: Any = None
    run_id = new_id()
    due = AT + timedelta(seconds=4)
    HandleQueue(client, Keys("", "s")).schedule_in(pipe, [(QueueKind.BULK, run_id, due)])
    [(command, (name, members), _)] = pipe.calls
    assert (command, name) == ("zadd", "rq:scheduler:scheduled_jobs")
    [(member, score)] = members.items()
    assert parse_scheduled(member.encode()) == (QueueKind.BULK, run_id)
    assert score == due.timestamp()


@pytest.mark.parametrize(
    "member",
    [
        b"",
        b"main",
        b"main-",
        b"other-r1",
        b"\xff-r1",
        b"-r1",
        b"main-r1\n",
        b"main-r 1",
        b"bulk-" + b"r" * 65,
    ],
)
def test_a_scheduler_entry_of_another_form_is_refused(member: bytes) -> None:
    with pytest.raises(BadHandle):
        parse_scheduled(member)


def test_a_long_backlog_goes_to_the_second_queue() -> None:
    assert [queue_for(waiting) for waiting in (0, BULK_ABOVE, BULK_ABOVE + 1)] == [
        QueueKind.MAIN,
        QueueKind.MAIN,
        QueueKind.BULK,
    ]
