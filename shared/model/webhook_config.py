"""What SEND_WEBHOOK takes."""

import re
from typing import ClassVar, Final, Literal

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from shared.errors import Fault
from shared.model.action_config import ActionConfig, is_final, refuse_null
from shared.model.parts import Text
from shared.model.refusals import Refused
from shared.model.templated import check_url, rendered_url
from shared.rules.rendering import RENDERED, json_text_fault
from shared.rules.templates import has_template
from shared.signing import read_keys

HEADERS_MAX: Final = 64
HEADER_BYTES_MAX: Final = 8 * 1024
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_JSON_TYPE: Final = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)
_CONTENT_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(?:\s*;\s*[\w.+-]+=[^\x00-\x1f\x7f;]+)*")
_FRAMING_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})


class SendWebhook(ActionConfig):
    """Call a URL. Without a body the trigger event is sent; `secret` signs the call (Standard Webhooks)."""

    takes_secrets: ClassVar[bool] = True
    template_free: ClassVar[frozenset[str]] = frozenset({"method", "content_type"})
    json_text: ClassVar[frozenset[str]] = frozenset({"body"})
    null_written: ClassVar[frozenset[str]] = frozenset({"body"})

    url: Text
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    headers: dict[str, Text] = Field(default={}, max_length=HEADERS_MAX)
    body: JsonValue = None
    content_type: str = "application/json"
    secret: str | None = Field(default=None, repr=False)

    def renders_as_json(self) -> bool:
        """Tell whether the content type is JSON, so that a text body is a JSON template."""
        return _JSON_TYPE.match(self.content_type) is not None

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str, info: ValidationInfo) -> str:
        if info.context == RENDERED:
            return rendered_url(url)
        check_url(url)
        return url

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            _check_header(name, value)
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("two headers differ only in case")
        if sum(len(name) + len(value.encode()) for name, value in headers.items()) > HEADER_BYTES_MAX:
            raise ValueError(f"the headers take more than {HEADER_BYTES_MAX} bytes")
        return headers

    @field_validator("body")
    @classmethod
    def _check_body(cls, body: JsonValue) -> JsonValue:
        if isinstance(body, bool | int | float):
            raise ValueError("a body is an object, a list or text")
        return body

    @model_validator(mode="after")
    def _check_json_text(self, info: ValidationInfo) -> "SendWebhook":
        if self.body and isinstance(self.body, str) and info.context != RENDERED and self.renders_as_json():
            said = None if has_template(self.body) else json_text_fault(self.body)
            if said is not None:
                raise Refused([Fault("body", f"{said}; give an object, or a content_type that is not JSON")])
        return self

    @field_validator("content_type")
    @classmethod
    def _check_content_type(cls, content_type: str) -> str:
        if _CONTENT_TYPE.fullmatch(content_type) is None:
            raise ValueError("a content type reads type/subtype, with parameters or without")
        return content_type

    @field_validator("secret", mode="before")
    @classmethod
    def _check_given(cls, value: object) -> object:
        return refuse_null(value)

    @field_validator("secret")
    @classmethod
    def _check_secret(cls, secret: str, info: ValidationInfo) -> str:
        if is_final(secret, info):
            read_keys(secret)
        return secret


def _check_header(name: str, value: str) -> None:
    if _HEADER_NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not a header name")
    if name.lower() in _FRAMING_HEADERS:
        raise ValueError(f"{name} is set by the engine")
    if name.lower() == "content-type":
        raise ValueError("set content_type instead of a Content-Type header")
    if _CONTROL.search(value):
        raise ValueError(f"the value of {name} holds a control character")
