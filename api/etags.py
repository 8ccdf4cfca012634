"""ETags: a resource says which state it is in, and a write says which state it is meant for (docs/api.md)."""

from hashlib import sha256
from typing import Annotated, Final

from fastapi import Header

from api.errors import Refused

IF_MATCH: Final = "If-Match"
ANY: Final = "*"
TAG_CHARS: Final = 32

IfMatch = Annotated[
    str | None,
    Header(alias=IF_MATCH, max_length=1_000, description="The ETag that the change is meant for."),
]


def make_etag(*parts: object) -> str:
    """Make the ETag of a state from whatever changes with it."""
    text = "\n".join(str(part) for part in parts)
    return f'"{sha256(text.encode()).hexdigest()[:TAG_CHARS]}"'


def check_match(wanted: str | None, etag: str) -> None:
    """Let a write pass that names no state, any state, or this one. Raises Refused, 412."""
    if wanted is None or wanted.strip() == ANY:
        return
    if etag not in (each.strip() for each in wanted.split(",")):
        raise Refused(412, "this was changed meanwhile; read it again", etag=etag)
