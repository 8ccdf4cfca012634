"""How a request is refused: each error becomes one envelope, status, code and words (docs/api.md, Errors).

Nothing that a caller sends may end as a 500: what is none of the known errors is a bug, is logged with its
traceback, and tells the caller nothing but the id of the request.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import ErrorDetails
from redis.exceptions import RedisError
from sqlalchemy.exc import DataError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolExhausted
from starlette.exceptions import HTTPException

from shared.db.engine import is_cut_short, is_outage, sqlstate
from shared.errors import (
    BadEvent,
    ConfigError,
    Conflict,
    DefinitionError,
    IdTaken,
    KnockonError,
    NotFound,
    Unavailable,
)
from shared.logs import get_logger
from shared.model import refusals
from shared.model.plain_words import words_for

RETRY_AFTER_S: Final = 5
UNDEFINED_TABLE: Final = "42P01"

CODES: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "malformed",
        401: "unauthorized",
        403: "forbidden",
        404: "not_found",
        405: "method_not_allowed",
        408: "timeout",
        409: "conflict",
        412: "precondition_failed",
        413: "too_large",
        415: "unsupported_media_type",
        422: "invalid",
        429: "too_many",
        500: "internal",
        503: "unavailable",
    }
)

log: Final = get_logger("api")


class Refused(KnockonError):
    """A request is answered with this status; the code is the status's own unless one is given."""

    def __init__(self, status: int, message: str, **details: Any) -> None:
        """Keep all three; `details` is for programs."""
        self.status = status
        self.message = message
        self.details = details
        self.code = CODES[status]
        self.headers: dict[str, str] = {}
        super().__init__(message)

    def coded(self, code: str) -> "Refused":
        """Give it another code than its status has."""
        self.code = code
        return self

    def retry_after(self, seconds: int) -> "Refused":
        """Tell the caller when to come again."""
        self.headers["Retry-After"] = str(seconds)
        return self


def refused_at(name: str, message: str) -> Refused:
    """Make the refusal of one field."""
    return Refused(422, f"{name}: {message}", **_at([(name, message)]))


@dataclass(frozen=True, slots=True)
class Answer:
    """What a refused caller is told."""

    status: int
    code: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> JSONResponse:
        """Render the envelope."""
        content = {"error": self.code, "message": self.message, "details": self.details}
        return JSONResponse(content, self.status, dict(self.headers))


@contextmanager
def at_field(name: str) -> Iterator[None]:
    """Name the field that a service's refusal is about, where the service knows of no fields."""
    try:
        yield
    except DefinitionError:
        raise
    except ConfigError as error:
        raise Refused(422, str(error), **_at([(name, str(error))])) from error


def answer_for(error: Exception) -> Answer | None:
    """Say what a caller is told about an error; None for a bug."""
    match error:
        case Refused():
            return Answer(error.status, error.code, error.message, error.details, error.headers)
        case HTTPException():
            return _of_status(error)
        case RequestValidationError():
            return _invalid([fault for each in error.errors() for fault in _faults(each)])
        case KnockonError():
            return _of_service(error)
        case DBAPIError():
            return _of_sql(error)
        case PoolExhausted() | RedisError() | ConnectionError() | TimeoutError():
            return _away("a server that is needed does not answer")
        case _:
            return None


def failure() -> Answer:
    """Say what a caller is told about a bug."""
    return Answer(500, CODES[500], "something went wrong here; the log has it under the request's id")


def _of_status(error: HTTPException) -> Answer:
    code = CODES.get(error.status_code, HTTPStatus(error.status_code).name.lower())
    headers = error.headers or {}
    match error.status_code:
        case 404:
            return Answer(404, code, "there is nothing here")
        case 405:
            return Answer(405, code, "this cannot be done here; Allow names what can", headers=headers)
        case _:
            return Answer(error.status_code, code, str(error.detail), headers=headers)


def _of_service(error: KnockonError) -> Answer | None:
    match error:
        case DefinitionError():
            return _invalid([(fault.path, fault.message) for fault in error.faults])
        case BadEvent():
            return _invalid([(error.field, error.reason)])
        case NotFound():
            return Answer(404, CODES[404], str(error))
        case IdTaken():
            return Answer(409, CODES[409], str(error), {"field": "id"})
        case Conflict():
            return Answer(409, CODES[409], str(error))
        case ConfigError():
            return Answer(422, CODES[422], str(error))
        case Unavailable():
            return _away(str(error))
        case _:
            return None


def _of_sql(error: DBAPIError) -> Answer | None:
    if sqlstate(error) == UNDEFINED_TABLE or "no such table" in str(error.orig):
        return _away("the database has not been migrated")
    if is_cut_short(error):
        return _away("the database took too long")
    if is_outage(error):
        return _away("the database does not answer")
    if isinstance(error, DataError):
        log.warning("value_refused_by_sql", reason=str(error.orig))
        return Answer(422, CODES[422], "holds a value that cannot be stored")
    return None


def _away(message: str) -> Answer:
    return Answer(503, CODES[503], message, headers={"Retry-After": str(RETRY_AFTER_S)})


def _invalid(faults: Sequence[tuple[str, str]]) -> Answer:
    message = "; ".join(f"{name}: {words}" for name, words in faults)
    return Answer(422, CODES[422], message, _at(faults))


def _at(faults: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Name the first field at fault, and each fault with its field."""
    told = [{"field": name, "message": words} for name, words in faults]
    return {"field": faults[0][0], "faults": told}


def _faults(details: ErrorDetails) -> list[tuple[str, str]]:
    path = _path(details)
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, refusals.Refused):
        return [(refusals.join(path, fault.path), fault.message) for fault in cause.faults]
    return [(path or "body", words_for(details))]


def _path(details: ErrorDetails) -> str:
    where = list(details["loc"])
    if len(where) > 1 and where[0] in ("body", "query", "path", "header"):
        where = where[1:]
    path = ""
    for part in where:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path
