"""Pages of a list: a cursor is the key of the last row, opaque to callers, and good for as long as they like.

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
from typing import Annotated, Final, Generic, TypeVar

import orjson
from fastapi import Depends, Query
from pydantic import BaseModel, Field

from api.errors import Refused, refused_at

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 200
CURSOR_CHARS_MAX: Final = 1_000

Row = TypeVar("Row")
Out = TypeVar("Out", bound=BaseModel)


class Listed(BaseModel, Generic[Out]):
    """One page of a list."""

    items: list[Out]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


@dataclass(frozen=True, slots=True)
class PageAsked:
    """Which page: at most `limit` items behind the key `after`, or the first ones."""

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
        return Listed(items=[show(row) for row in shown], next=write_cursor(key(shown[-1])) if more else None)


def read_page(
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX, description="The most items.")] = LIMIT_DEFAULT,
    cursor: Annotated[
        str | None, Query(max_length=CURSOR_CHARS_MAX, description="The `next` of the page before.")
    ] = None,
) -> PageAsked:
    """Read which page is asked for. Raises Refused for a cursor that is none of ours."""
    return PageAsked(limit, None if cursor is None else read_cursor(cursor))


Page = Annotated[PageAsked, Depends(read_page)]


def write_cursor(key: str) -> str:
    """Make a cursor of the key of a row."""
    return base64.urlsafe_b64encode(orjson.dumps([key])).decode().rstrip("=")


def read_cursor(cursor: str) -> str:
    """Give the key that a cursor stands for. Raises Refused."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        read = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        read = None
    match read:
        case [str() as key] if write_cursor(key) == cursor and "\0" not in key:
            return key
        case _:
            raise no_cursor()


def read_number_cursor(key: str) -> int:
    """Read the key of a list that goes by numbers. Raises Refused for a cursor of another list."""
    if not (key.isdecimal() and key.isascii() and len(key) <= 9):
        raise no_cursor()
    return int(key)


def no_cursor() -> Refused:
    """Make the refusal of a cursor that is none of this list's."""
    return refused_at("cursor", "is no cursor; take `next` of a page as it is")
