"""ETags: a resource says which state it is in, and a write says which state it is meant for (docs/api.md)."""

from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, Any, Final, TypeVar

import orjson
from fastapi import Depends, Header, Response

from api.errors import Refused

IF_MATCH: Final = "If-Match"
ANY: Final = "*"
TAG_CHARS: Final = 32

Row = TypeVar("Row")

IfMatch = Annotated[
    str | None,
    Header(alias=IF_MATCH, max_length=1_000, description="The ETag that the change is meant for."),
]


def make_etag(*parts: object) -> str:
    """Make the ETag of a state from whatever changes with it."""
    text = "\n".join(str(part) for part in parts)
    return f'"{sha256(text.encode()).hexdigest()[:TAG_CHARS]}"'


def document_etag(document: Any) -> str:
    """Make the ETag of a document, in whatever order its keys stand."""
    return make_etag(orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode())


def check_match(wanted: str | None, etag: str) -> None:
    """Let a write pass that names no state, any state, or this one. Raises Refused, 412."""
    if wanted is None or wanted.strip() == ANY:
        return
    if etag not in (each.strip() for each in wanted.split(",")):
        raise Refused(412, "this was changed meanwhile; read it again", etag=etag)


class Meant:
    """What a write is meant for: the state that If-Match names. The answer names the state after it."""

    def __init__(self, response: Response, if_match: IfMatch = None) -> None:
        """Keep both."""
        self._response = response
        self._if_match = if_match

    def checking(self, etag_of: Callable[[Row], str]) -> Callable[[Row], None]:
        """Make what refuses to change another state than was meant."""
        return lambda row: check_match(self._if_match, etag_of(row))

    def tag(self, etag: str) -> None:
        """Name the state after the write."""
        self._response.headers["ETag"] = etag


Meaning = Annotated[Meant, Depends(Meant)]
