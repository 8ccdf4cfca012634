"""Whether an error is worth another attempt: the only judge. Pure, and imports no driver.

The rules, first match wins, each looked for in the whole chain of causes:

1. an error that the executor declared        -> as declared
2. a transient SQLSTATE, or SQLite busy       -> retryable DB_TRANSIENT_{state}
3. the action's own deadline has passed       -> fatal ACTION_TIMEOUT
4. an errno of the network table              -> retryable NET_{errno}
5. everything else, other timeouts included   -> fatal UNEXPECTED
"""

import errno
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from executors.deadline import ACTION_TIMEOUT, Deadline
from shared.errors import ActionError, FatalError, RetryableError
from shared.masking import mask_urls

UNEXPECTED: Final = "UNEXPECTED"

TRANSIENT_STATES: Final = frozenset({"40P01", "40001", "57P01", "55P03", "57014"})

TRANSIENT_ERRNOS: Final[Mapping[int, str]] = MappingProxyType(
    {
        errno.ECONNRESET: "ECONNRESET",
        errno.ETIMEDOUT: "ETIMEDOUT",
        errno.EPIPE: "EPIPE",
        errno.ECONNREFUSED: "ECONNREFUSED",
    }
)

SQLITE_BUSY: Final = 5
MESSAGE_LIMIT: Final = 500

_UNSTORABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Classification:
    """The verdict on one error; `retry_after` is the least wait that the other side asked for."""

    retryable: bool
    code: str
    message: str
    retry_after: timedelta | None = None


def classify_error(exc: BaseException, deadline: Deadline | None = None) -> Classification:
    """Judge any error of an action. `deadline` is the action's own, if it had one; chains may be cyclic."""
    chain = tuple(_chain(exc))
    declared = next((link for link in chain if isinstance(link, ActionError)), None)
    if declared is not None:
        return _as_declared(declared)
    if (state := _first(_transient_state, chain)) is not None:
        return Classification(retryable=True, code=f"DB_TRANSIENT_{state}", message=describe(exc))
    if deadline is not None and deadline.is_passed():
        return Classification(retryable=False, code=ACTION_TIMEOUT, message=describe(exc))
    if (name := _first(_transient_errno, chain)) is not None:
        return Classification(retryable=True, code=f"NET_{name}", message=describe(exc))
    return Classification(retryable=False, code=UNEXPECTED, message=describe(exc))


def describe(exc: BaseException) -> str:
    """Name an error on one storable line of at most 500 characters, without the credentials of a URL."""
    first_line = (str(exc).strip().splitlines() or [""])[0]
    text = mask_urls(_storable(first_line))
    return f"{type(exc).__name__}: {text}"[:MESSAGE_LIMIT] if text else type(exc).__name__


def _storable(text: str) -> str:
    return _UNSTORABLE.sub("\ufffd", text)


def _first(rule: Callable[[BaseException], str | None], chain: Sequence[BaseException]) -> str | None:
    return next(filter(None, map(rule, chain)), None)


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """Walk causes and contexts, also suppressed ones (HTTP pools raise `from None`), each error once."""
    waiting: list[BaseException] = [exc]
    seen: set[int] = set()
    while waiting:
        link = waiting.pop()
        if id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting.extend(near for near in (link.__context__, link.__cause__) if near is not None)


def _as_declared(error: ActionError) -> Classification:
    said = _storable(error.message)
    match error:
        case RetryableError(code=code, retry_after=wait):
            return Classification(retryable=True, code=code, message=said, retry_after=wait)
        case FatalError(code=code):
            return Classification(retryable=False, code=code, message=said)
        case _:
            return Classification(retryable=False, code=UNEXPECTED, message=describe(error))


def _transient_state(exc: BaseException) -> str | None:
    """Read the state by the drivers' attribute names, so that no driver has to be there."""
    for source in (exc, getattr(exc, "orig", None)):
        state = getattr(source, "sqlstate", None) or getattr(source, "pgcode", None)
        if isinstance(state, str) and state in TRANSIENT_STATES:
            return state
        if _is_sqlite_busy(source):
            return "BUSY"
    return None


def _is_sqlite_busy(exc: object) -> bool:
    code = getattr(exc, "sqlite_errorcode", None)
    if isinstance(code, int):
        return code & 0xFF == SQLITE_BUSY
    return isinstance(exc, sqlite3.OperationalError) and str(exc) == "database is locked"


def _transient_errno(exc: BaseException) -> str | None:
    if isinstance(exc, socket.gaierror):
        return "EAI_AGAIN" if exc.errno == socket.EAI_AGAIN else None
    if isinstance(exc, OSError) and exc.errno is not None:
        return TRANSIENT_ERRNOS.get(exc.errno)
    return None
