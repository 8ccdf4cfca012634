"""`/v1/audience/channels`: where conversations take place, with the idle rule of each."""

from datetime import datetime
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Body, Path, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt

from api.auth import needs
from api.errors import refused_at
from api.etags import Meaning, document_etag
from api.numbered import Numbered, NumberedPage
from api.served import Served
from shared.db.channels import ChannelRow, count_channels, list_channels
from shared.model.channels import GIVEN_ID, ChannelKind
from shared.model.idle_steps import IdleAction
from shared.model.names import NAME_MAX, check_name
from shared.rules.idle_rules import DURATION_S_MAX, MESSAGE_CHARS_MAX, MalformedIdleRule
from shared.rules.values import object_of
from shared.services.backends import Caller
from shared.services.channels import (
    ChannelEdit,
    NewChannel,
    drop_channel,
    edit_channel,
    get_channel,
    make_channel,
)
from shared.services.workspaces import Scope

ID_CHARS_MAX: Final = 100
RULE: Final = {"enabled": True, "duration": 600, "action": "follow_up", "message": "Are you still there?"}

NEW_EXAMPLES: Final[dict[str, Any]] = {
    "closing": {
        "value": {
            "id": "shop-whatsapp",
            "name": "The shop's WhatsApp",
            "kind": "whatsapp",
            "settings": {"idle_rule": RULE},
        }
    }
}

router: Final = APIRouter(tags=["channels"])

Reader = Annotated[Caller, needs(Scope.MESSAGES_READ)]
Writer = Annotated[Caller, needs(Scope.MESSAGES_WRITE)]
ChannelId = Annotated[str, Path(max_length=ID_CHARS_MAX)]
ChannelName = Annotated[str, AfterValidator(check_name)]


class IdleRuleIn(BaseModel):
    """What happens when the contact goes quiet where no AI agent speaks."""

    model_config = ConfigDict(extra="forbid")

    enabled: StrictBool
    duration: StrictInt | None = Field(
        default=None, ge=1, le=DURATION_S_MAX, description="After how many seconds of silence."
    )
    action: IdleAction | None = None
    message: str | None = Field(default=None, max_length=MESSAGE_CHARS_MAX)
    assign: dict[str, Any] | None = Field(
        default=None, examples=[{"type": "division", "division": {"id": "support"}}, {"type": "auto"}]
    )


class ChannelSettings(BaseModel):
    """What a channel is set to."""

    model_config = ConfigDict(extra="forbid")

    idle_rule: IdleRuleIn | None = Field(default=None, examples=[RULE])


class ChannelIn(BaseModel):
    """A channel to be made."""

    model_config = ConfigDict(extra="forbid")

    id: str | None = Field(
        default=None,
        pattern=f"^{GIVEN_ID}$",
        description="The `inboxId` that its conversations carry; one is made where none is given.",
        examples=["shop-whatsapp"],
    )
    name: ChannelName = Field(min_length=1, max_length=NAME_MAX, examples=["The shop's WhatsApp"])
    kind: ChannelKind
    enabled: StrictBool = True
    settings: ChannelSettings = ChannelSettings()

    def new(self) -> NewChannel:
        """Give the channel that is wanted."""
        return NewChannel(self.id, self.name, self.kind, self.enabled, _given(self.settings))


New = Annotated[ChannelIn, Body(openapi_examples=NEW_EXAMPLES)]


class ChannelChange(BaseModel):
    """What is to change; what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    name: ChannelName | None = Field(default=None, min_length=1, max_length=NAME_MAX)
    kind: ChannelKind | None = None
    enabled: StrictBool | None = None
    settings: ChannelSettings = Field(default=ChannelSettings(), examples=[{"idle_rule": RULE}])


class ChannelOut(BaseModel):
    """A channel."""

    id: str
    name: str
    kind: ChannelKind
    enabled: bool
    settings: dict[str, Any]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: ChannelRow) -> Self:
        """Show a channel."""
        return cls(
            id=row.id,
            name=row.name,
            kind=row.kind,
            enabled=row.is_enabled,
            settings={"idle_rule": None, **object_of(row.settings)},
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


@router.get("/v1/audience/channels")
def list_some(caller: Reader, backends: Served, page: NumberedPage) -> Numbered[ChannelOut]:
    """List channels by id."""
    with backends.database.read() as conn:
        rows = list_channels(conn, caller.workspace_id, skipped=page.skipped, most=page.rows)
        total = count_channels(conn, caller.workspace_id)
    return Numbered(data=[ChannelOut.of(row) for row in rows], page=page.page, rows=page.rows, total=total)


@router.get("/v1/audience/channels/{channel_id}")
def read_one(caller: Reader, backends: Served, channel_id: ChannelId, response: Response) -> ChannelOut:
    """Show a channel. `ETag` names its state."""
    with backends.database.read() as conn:
        return _tagged(get_channel(conn, caller, channel_id), response)


@router.post("/v1/audience/channels", status_code=201)
def make_one(caller: Writer, backends: Served, wanted: New, response: Response) -> ChannelOut:
    """Make a channel; `id` is the `inboxId` that its conversations carry."""
    try:
        row = make_channel(backends.database, backends.clock, caller, wanted.new())
    except MalformedIdleRule as fault:
        raise refused_at(f"settings.idle_rule.{fault.field}", fault.reason) from fault
    response.headers["Location"] = f"/v1/audience/channels/{row.id}"
    return _tagged(row, response)


@router.patch("/v1/audience/channels/{channel_id}")
def edit_one(
    caller: Writer, backends: Served, channel_id: ChannelId, wanted: ChannelChange, meant: Meaning
) -> ChannelOut:
    """Change a channel; an idle rule is replaced whole. With `If-Match` only if nobody else changed it."""
    edit = ChannelEdit(
        wanted.name, wanted.kind, wanted.enabled, _given(wanted.settings), meant.checking(_etag)
    )
    try:
        row = edit_channel(backends.database, backends.clock, caller, channel_id, edit)
    except MalformedIdleRule as fault:
        raise refused_at(f"settings.idle_rule.{fault.field}", fault.reason) from fault
    meant.tag(_etag(row))
    return ChannelOut.of(row)


@router.delete("/v1/audience/channels/{channel_id}", status_code=204)
def delete_one(caller: Writer, backends: Served, channel_id: ChannelId, meant: Meaning) -> None:
    """Delete a channel: its rule fires no more."""
    drop_channel(backends.database, backends.clock, caller, channel_id, meant.checking(_etag))


def _given(settings: ChannelSettings) -> dict[str, Any]:
    return settings.model_dump(mode="json", exclude_unset=True)


def _tagged(row: ChannelRow, response: Response) -> ChannelOut:
    response.headers["ETag"] = _etag(row)
    return ChannelOut.of(row)


def _etag(row: ChannelRow) -> str:
    return document_etag(ChannelOut.of(row).model_dump(mode="json"))
