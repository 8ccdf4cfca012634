"""What each action type takes: one frozen model a type. These models are the table in the documentation.

Text values may hold templates. A config is checked when it is saved and once more when its templates are
rendered, by the same model; so a check that the saved text cannot pass yet looks for the context RENDERED.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    StrictBool,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from shared.errors import BadEvent, Fault
from shared.model.event_fields import read_type
from shared.model.executed import EXECUTED
from shared.model.parts import Part, Text, counted
from shared.model.refusals import Refused
from shared.model.roles import Role
from shared.model.templated import check_url, rendered_url
from shared.rules.rendering import RENDERED, json_text_fault
from shared.rules.templates import has_template
from shared.signing import read_keys

HEADERS_MAX: Final = 64
HEADER_BYTES_MAX: Final = 8 * 1024
_ID_MAX: Final = 200
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_JSON_TYPE: Final = re.compile(r"application/(?:[\w.+-]+\+)?json", re.IGNORECASE)
_CONTENT_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(?:\s*;\s*[\w.+-]+=[^\x00-\x1f\x7f;]+)*")
_SUBJECT_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
_FRAMING_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})

Id = Annotated[Text, StringConstraints(min_length=1, max_length=_ID_MAX)]
Properties = dict[str, JsonValue]


class ActionConfig(Part):
    """What one action type takes.

    `is_local`: it changes only our own tables. `template_free`: keys that are never rendered. `json_text`:
    text keys that are rendered as JSON text when `renders_as_json` says so.
    """

    is_local: ClassVar[bool] = True
    template_free: ClassVar[frozenset[str]] = frozenset()
    json_text: ClassVar[frozenset[str]] = frozenset()

    def renders_as_json(self) -> bool:
        """Tell whether the `json_text` keys hold JSON."""
        return False


class SendWebhook(ActionConfig):
    """Call a URL. Without a body the trigger event is sent; `secret` signs the call (Standard Webhooks)."""

    is_local: ClassVar[bool] = False
    template_free: ClassVar[frozenset[str]] = frozenset({"method", "content_type"})
    json_text: ClassVar[frozenset[str]] = frozenset({"body"})

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
        return _refuse_null(value)

    @field_validator("secret")
    @classmethod
    def _check_secret(cls, secret: str, info: ValidationInfo) -> str:
        if info.context == RENDERED or not has_template(secret):
            read_keys(secret)
        return secret


class CreateNotification(ActionConfig):
    """Put a notice into the inbox of every member who has one of the roles."""

    title: Text
    body: Text = ""
    roles: Annotated[tuple[Role, ...], counted(1, len(Role))] = (Role.OWNER, Role.ADMIN)


def _check_subject_type(name: str) -> str:
    if _SUBJECT_TYPE.match(name) is None and "{{" not in name:
        raise ValueError("must be a to z, 0 to 9 and _, with a letter in front")
    return name


class SubjectRef(Part):
    """Which subject is meant, when it is not a record."""

    type: Annotated[Text, StringConstraints(max_length=_ID_MAX), AfterValidator(_check_subject_type)]
    id: Id


class UpdateRecord(ActionConfig):
    """Set fields of a record: the event's own, the one named by `record_id`, or another kind of `subject`.

    Fields that somebody else changed after the event are left alone unless `force`.
    """

    template_free: ClassVar[frozenset[str]] = frozenset({"force"})

    properties: Properties = Field(min_length=1)
    record_id: Id | None = None
    subject: SubjectRef | None = None
    force: StrictBool = False

    @field_validator("record_id", "subject", mode="before")
    @classmethod
    def _check_given(cls, value: object) -> object:
        return _refuse_null(value)

    @model_validator(mode="after")
    def _check_one_target(self) -> "UpdateRecord":
        if self.record_id is not None and self.subject is not None:
            raise ValueError("give record_id or subject, not both")
        return self


class CreateRecord(ActionConfig):
    """Make a record in a database. Without `record_id` a repeat of the same action still makes one record."""

    database_id: Id
    properties: Properties = Field(default={})
    record_id: Id | None = None

    @field_validator("record_id", mode="before")
    @classmethod
    def _check_given(cls, value: object) -> object:
        return _refuse_null(value)


class EmitEvent(ActionConfig):
    """Publish an event of one's own (`order.reviewed`), one step deeper in the chain than its trigger."""

    template_free: ClassVar[frozenset[str]] = frozenset({"event_type"})

    event_type: str
    payload: Properties = Field(default={})

    @field_validator("event_type")
    @classmethod
    def _check_event_type(cls, event_type: str) -> str:
        try:
            read_type({b"type": event_type.encode()})
        except BadEvent as error:
            raise ValueError(error.reason) from error
        if event_type == EXECUTED:
            raise ValueError("only the engine itself emits this event")
        return event_type


ACTION_CONFIGS: Final[Mapping[str, type[ActionConfig]]] = MappingProxyType(
    {
        "CREATE_RECORD": CreateRecord,
        "UPDATE_RECORD": UpdateRecord,
        "SEND_WEBHOOK": SendWebhook,
        "CREATE_NOTIFICATION": CreateNotification,
        "EMIT_EVENT": EmitEvent,
    }
)


def _check_header(name: str, value: str) -> None:
    if _HEADER_NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is not a header name")
    if name.lower() in _FRAMING_HEADERS:
        raise ValueError(f"{name} is set by the engine")
    if name.lower() == "content-type":
        raise ValueError("set content_type instead of a Content-Type header")
    if _CONTROL.search(value):
        raise ValueError(f"the value of {name} holds a control character")


def _refuse_null(value: object) -> object:
    """Refuse a key that is there but names nothing: it must not fall back to what an absent key means."""
    if value is None or value == "":
        raise ValueError("names nothing; leave the key out to use the default")
    return value
