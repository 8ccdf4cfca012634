"""Which errors are worth another attempt."""

import errno
import socket
import sqlite3
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executors.classify import TRANSIENT_STATES, classify_error, describe
from executors.deadline import Deadline
from shared.errors import ActionError, FatalError, RetryableError
from shared.time.clock import ManualClock

NETWORK = ["ECONNRESET", "ETIMEDOUT", "EPIPE", "ECONNREFUSED"]


class DriverError(Exception):
    """Stands for psycopg's errors, which carry `sqlstate`."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("driver")
        self.sqlstate = sqlstate


def caused(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__cause__ = inner
    return outer


def in_context(outer: BaseException, inner: BaseException) -> BaseException:
    outer.__context__ = inner
    outer.__suppress_context__ = True
    return outer


def test_a_declared_error_keeps_its_code_and_wait() -> None:
    verdict = classify_error(RetryableError("BUSY_THERE", "come back", timedelta(seconds=7)))
    assert (verdict.retryable, verdict.code, verdict.message) == (True, "BUSY_THERE", "come back")
    assert verdict.retry_after == timedelta(seconds=7)


@pytest.mark.parametrize("kind", [RetryableError, FatalError])
def test_a_declared_error_says_nothing_that_cannot_be_stored(kind: type[ActionError]) -> None:
    assert classify_error(kind("GONE", "no \ud83d\x00 é\n2")).message == "no \ufffd\ufffd é\n2"


def test_a_declared_fatal_error_beats_a_network_error_that_caused_it() -> None:
    error = caused(FatalError("GONE", "no"), ConnectionResetError(errno.ECONNRESET, "reset"))
    verdict = classify_error(error)
    assert (verdict.retryable, verdict.code) == (False, "GONE")


def test_a_declared_error_is_found_under_another() -> None:
    assert classify_error(caused(RuntimeError("wrapped"), RetryableError("X", "y"))).code == "X"


@pytest.mark.parametrize("state", sorted(TRANSIENT_STATES))
@pytest.mark.parametrize("link", [caused, in_context])
def test_a_transient_sqlstate_is_retried_wherever_it_stands(state: str, link: object) -> None:
    assert callable(link)
    for error in (DriverError(state), link(RuntimeError("outer"), DriverError(state))):
        verdict = classify_error(error)
        assert (verdict.retryable, verdict.code) == (True, f"DB_TRANSIENT_{state}")


def test_the_error_inside_an_sqlalchemy_error_counts() -> None:
    error = RuntimeError("wrapped")
    error.orig = DriverError("40001")  # type: ignore[attr-defined]
    assert classify_error(error).code == "DB_TRANSIENT_40001"


@pytest.mark.parametrize("state", ["23505", "22P02", "", None])
def test_other_sqlstates_are_fatal(state: str | None) -> None:
    verdict = classify_error(DriverError(state))
    assert (verdict.retryable, verdict.code) == (False, "UNEXPECTED")


def test_a_busy_sqlite_is_retried(tmp_path: object) -> None:
    path = f"{tmp_path}/x.db"
    holder, waiter = sqlite3.connect(path, timeout=0), sqlite3.connect(path, timeout=0)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as caught:
        waiter.execute("BEGIN IMMEDIATE")
    holder.close()
    waiter.close()
    verdict = classify_error(caught.value)
    assert (verdict.retryable, verdict.code) == (True, "DB_TRANSIENT_BUSY")
    assert classify_error(sqlite3.OperationalError("database is locked")).code == "DB_TRANSIENT_BUSY"
    assert classify_error(sqlite3.OperationalError("no such table: x")).code == "UNEXPECTED"


@pytest.mark.parametrize("name", NETWORK)
@pytest.mark.parametrize("link", [caused, in_context])
def test_network_errors_of_the_table_are_retried_wherever_they_stand(name: str, link: object) -> None:
    assert callable(link)
    inner = OSError(getattr(errno, name), "x")
    for error in (inner, link(RuntimeError("outer"), inner), link(ValueError(), caused(KeyError(), inner))):
        verdict = classify_error(error)
        assert (verdict.retryable, verdict.code) == (True, f"NET_{name}")


def test_a_resolver_that_asks_for_patience_is_retried() -> None:
    assert classify_error(socket.gaierror(socket.EAI_AGAIN, "later")).code == "NET_EAI_AGAIN"
    assert classify_error(socket.gaierror(socket.EAI_NONAME, "unknown")).code == "UNEXPECTED"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EHOSTUNREACH, "no route"),
        OSError("no errno"),
        ssl.SSLError(1, "bad certificate"),
        ValueError("x"),
        KeyError("x"),
        RuntimeError(),
        TimeoutError("timed out"),
    ],
)
def test_the_unknown_is_fatal(error: BaseException) -> None:
    verdict = classify_error(error)
    assert (verdict.retryable, verdict.code) == (False, "UNEXPECTED")


def test_a_passed_deadline_is_told_from_other_timeouts() -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    deadline = Deadline.after(clock, timedelta(seconds=5))
    reset = ConnectionResetError(errno.ECONNRESET, "reset")
    assert classify_error(TimeoutError("slow"), deadline).code == "UNEXPECTED"
    assert classify_error(reset, deadline).code == "NET_ECONNRESET"
    clock.advance(timedelta(seconds=5))
    for error in (TimeoutError("slow"), reset):
        verdict = classify_error(error, deadline)
        assert (verdict.retryable, verdict.code) == (False, "ACTION_TIMEOUT")
    assert classify_error(DriverError("40P01"), deadline).code == "DB_TRANSIENT_40P01"
    with pytest.raises(FatalError, match="ACTION_TIMEOUT"):
        deadline.check()


def test_a_cyclic_chain_ends() -> None:
    first, second, third = RuntimeError("a"), RuntimeError("b"), RuntimeError("c")
    first.__cause__, second.__context__, third.__cause__ = second, third, first
    assert classify_error(first).code == "UNEXPECTED"
    third.__context__ = OSError(errno.EPIPE, "pipe")
    assert classify_error(first).code == "NET_EPIPE"


def test_a_very_long_chain_is_walked_without_recursion() -> None:
    error: BaseException = OSError(errno.EPIPE, "pipe")
    for _ in range(20_000):
        error = caused(RuntimeError(), error)
    assert classify_error(error).code == "NET_EPIPE"


@given(st.text())
def test_a_description_is_one_storable_line(text: str) -> None:
    shown = describe(RuntimeError(text))
    assert len(shown) <= 500
    assert shown.encode("utf-8")
    assert not any(character in shown for character in "\0\n\r\x1b")


def test_a_description_hides_credentials() -> None:
    assert "pa55" not in describe(ValueError("cannot reach https://user:pa55@host/x"))
