"""Pages of a list: a cursor is the key of the last row, opaque to callers, and good for as long as they like.

It carries the path of its list, so that no other list takes it for one of its own.

A list asks its query for `page.most` rows, one more than a page has, after (or before) `page.after`:

    @router.get("/v1/things")
    def list_things(caller: Reader, backends: Served, page: Page) -> Listed[ThingOut]:
        with backends.database.read() as conn:
            rows = list_things(conn, caller.workspace_id, after=page.after, most=page.most)
        return page.cut(rows, ThingOut.of, lambda row: row.id)
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final, Generic, TypeVar

import orjson
from fastapi import Depends, Query, Request
from pydantic import BaseModel, BeforeValidator, Field

from api.errors import Refused, refused_at

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 200
CURSOR_CHARS_MAX: Final = 1_000
NUMBER_CHARS_MAX: Final = 9
MARK_CHARS: Final = 8

Row = TypeVar("Row")
Out = TypeVar("Out", bound=BaseModel)


def _read_digits(text: object) -> object:
    """Let pass what is a number, and text that writes one in digits alone. Raises ValueError.

    Of a longer number than any list takes one digit too many is left, for its bound to be told.
    """
    if not isinstance(text, str) or is_digits(text):
        return text
    if not (text.isascii() and text.isdecimal()):
        raise ValueError("must be a whole number, in digits alone")
    return text.lstrip("0")[: NUMBER_CHARS_MAX + 1] or "0"


# A number in a query.
Count = Annotated[int, BeforeValidator(_read_digits)]


class Listed(BaseModel, Generic[Out]):
    """One page of a list."""

    items: list[Out]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


@dataclass(frozen=True, slots=True)
class PageAsked:
    """Which page of a list, named by its path: at most `limit` items behind the key `after`, or the first."""

    path: str
    limit: int
    after: str | None

    @property
    def most(self) -> int:
        """How many rows to read: one more shows that there is a next page."""
        return self.limit + 1

    def cut(self, rows: Sequence[Row], show: Callable[[Row], Out], key: Callable[[Row], str]) -> Listed[Out]:
        """Make the page of the rows that were read."""
        shown = rows[: self.limit]
        more = len(rows) > self.limit
        return Listed(items=[show(row) for row in shown], next=self.cursor(key(shown[-1])) if more else None)

    def cursor(self, key: str | None) -> str | None:
        """Make the `next` of a page that ends with this key; None where the list ends."""
        return None if key is None else write_cursor(self.path, key)


def read_page(
    request: Request,
    limit: Annotated[Count, Query(ge=1, le=LIMIT_MAX, description="The most items.")] = LIMIT_DEFAULT,
    cursor: Annotated[
        str | None, Query(max_length=CURSOR_CHARS_MAX, description="The `next` of the page before.")
    ] = None,
) -> PageAsked:
    """Read which page is asked for. Raises Refused for a cursor that is none of this list's."""
    path = request.scope["path"]
    return PageAsked(path, limit, None if cursor is None else read_cursor(path, cursor))


Page = Annotated[PageAsked, Depends(read_page)]


def write_cursor(path: str, key: str) -> str:
    """Make a cursor of the key of a row of a list."""
    return base64.urlsafe_b64encode(orjson.dumps([_mark(path), key])).decode().rstrip("=")


def read_cursor(path: str, cursor: str) -> str:
    """Give the key that a cursor of a list stands for. Raises Refused."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        read = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        read = None
    match read:
        case [str(), str() as key] if write_cursor(path, key) == cursor and "\0" not in key:
            return key
        case _:
            raise no_cursor()


def read_number_cursor(key: str) -> int:
    """Read the key of a list that goes by numbers. Raises Refused for a cursor of another list."""
    if not is_digits(key):
        raise no_cursor()
    return int(key)


def is_digits(text: str) -> bool:
    """Tell whether a text is a number that is not too long."""
    return text.isascii() and text.isdecimal() and len(text) <= NUMBER_CHARS_MAX


def no_cursor() -> Refused:
    """Make the refusal of a cursor that is none of this list's."""
    return refused_at("cursor", "is no cursor of this list; take `next` of a page as it is")


def _mark(path: str) -> str:
    return sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:MARK_CHARS]
