"""The envelope of a refusal, and what each status means, as the OpenAPI document tells of them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import BaseModel, Field

from api.errors import CODES

MEANINGS: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "The request is malformed.",
        401: "There is no key, or none that can be used.",
        403: "The key lacks the scope.",
        404: "There is no such thing in the key's workspace.",
        405: "This cannot be done here.",
        408: "The body did not come in time.",
        409: "It does not go with the state that things are in, or the Idempotency-Key stands against it.",
        412: "The thing was changed after the state that If-Match names.",
        413: "The body is too large.",
        415: "The body is of another type than can be read.",
        422: "A field is wrong; `details.field` names the first one.",
        429: "As many requests like this as may be of this workspace are being worked on; see Retry-After.",
        503: "A server that is needed does not answer; see Retry-After.",
    }
)


class Refusal(BaseModel):
    """Why a request was refused."""

    error: str = Field(description="A code for programs.", examples=[CODES[422]])
    message: str = Field(description="Words for people.", examples=["name: must not be empty"])
    details: dict[str, Any] = Field(
        description="What else there is to know: `field` and `faults` under 422.",
        examples=[{"field": "name", "faults": [{"field": "name", "message": "must not be empty"}]}],
    )
