"""Automations: listed, made, edited, turned on and off, run by hand; their fires and versions."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Body, Depends, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from api.auth import needs
from api.etags import IfMatch, check_match, make_etag
from api.paging import Count, Listed, Page, read_number_cursor
from api.served import Configured, Served
from shared.db.automations import AutomationRow, VersionRow, list_versions
from shared.masking import mask_definition
from shared.model.automation import Definition, parse_authored
from shared.model.delays import delay_of, show_runs_after
from shared.model.statuses import AutomationStatus
from shared.model.triggers import TriggerType
from shared.model.webhook_targets import check_targets
from shared.services.automation_lists import AutomationQuery, page_of_automations
from shared.services.automations import Edit, create, delete, edit
from shared.services.backends import Caller
from shared.services.fires import Fires, preview_fires
from shared.services.references import find_automation
from shared.services.runs import start_by_hand
from shared.services.workspaces import Scope
from shared.settings import Settings
from shared.time.clock import from_epoch_ms

NAME_CHARS_MAX: Final = 100
LAST_VERSION: Final = 2**31 - 1
EXAMPLE: Final = {
    "key": "welcome",
    "name": "Welcome a new contact",
    "trigger": {"type": "EVENT", "config": {"eventType": "contact.created"}},
    "actions": [{"type": "CREATE_NOTIFICATION", "config": {"title": "Hello {{ contact.name }}"}}],
}

router: Final = APIRouter(tags=["automations"])

Reader = Annotated[Caller, needs(Scope.AUTOMATIONS_READ)]
Writer = Annotated[Caller, needs(Scope.AUTOMATIONS_WRITE)]
Reference = Annotated[str, Path(max_length=NAME_CHARS_MAX, description="The automation's id, or its key.")]
Keys = Annotated[dict[str, Any], Body(openapi_examples={"welcome": {"value": EXAMPLE}})]
Changed = Annotated[dict[str, Any], Body(openapi_examples={"rename": {"value": {"name": "Greet"}}})]


class AutomationOut(BaseModel):
    """An automation. In `definition` secrets are masked; what is masked cannot be sent back."""

    id: str
    key: str
    name: str
    status: AutomationStatus
    version: int
    activated_at: datetime | None = Field(description="Events that were published before it never match.")
    created_at: datetime
    updated_at: datetime
    definition: Mapping[str, Any]
    runs_after: str | None = Field(
        description="How long it waits before it acts; null if it acts at once.", examples=["runs after 4h"]
    )

    @classmethod
    def of(cls, row: AutomationRow) -> Self:
        """Show an automation."""
        return cls(
            id=row.id,
            key=row.key,
            name=row.name,
            status=row.status,
            version=row.version,
            activated_at=None if row.activated_ms is None else from_epoch_ms(row.activated_ms),
            created_at=row.created_at,
            updated_at=row.updated_at,
            definition=mask_definition(row.definition),
            runs_after=show_runs_after(delay_of(row.definition)),
        )


class StartIn(BaseModel):
    """What the event of a run by hand carries."""

    model_config = ConfigDict(extra="forbid")

    payload: dict[str, Any] = Field(default={}, examples=[{"orderId": 17}])


class StartedOut(BaseModel):
    """The run that was made."""

    run_id: str


class FireOut(BaseModel):
    """One fire: when, what clocks of the zone show then, and what is special about it."""

    at: datetime
    local: str
    remark: str | None


class FiresOut(BaseModel):
    """When an automation with the trigger SCHEDULE fires next, or would if it were ACTIVE."""

    cron: str
    timezone: str
    last_slot: datetime | None
    fires: list[FireOut]

    @classmethod
    def of(cls, fires: Fires) -> Self:
        """Show fires."""
        return cls.model_validate(fires.shown())


class VersionOut(BaseModel):
    """What a definition was from an instant on; secrets are masked."""

    version: int
    created_at: datetime
    definition: Mapping[str, Any]

    @classmethod
    def of(cls, row: VersionRow) -> Self:
        """Show a version."""
        return cls(version=row.version, created_at=row.created_at, definition=mask_definition(row.definition))


async def read_query(
    status: Annotated[AutomationStatus | None, Query(description="Only of this status.")] = None,
    trigger: Annotated[TriggerType | None, Query(description="Only with this trigger.")] = None,
    q: Annotated[str, Query(max_length=NAME_CHARS_MAX, description="A part of the key or the name.")] = "",
) -> AutomationQuery:
    """Read which automations are asked for."""
    return AutomationQuery(status, trigger, q)


Asked = Annotated[AutomationQuery, Depends(read_query)]


@router.get("/v1/automations")
def list_some(caller: Reader, backends: Served, asked: Asked, page: Page) -> Listed[AutomationOut]:
    """List automations by key."""
    with backends.database.read() as conn:
        found = page_of_automations(conn, caller.workspace_id, asked, page.after or "", most=page.limit)
    shown = [AutomationOut.of(row) for row in found.rows]
    return Listed(items=shown, next=page.cursor(found.after))


@router.post("/v1/automations", status_code=201)
def make_one(
    caller: Writer, backends: Served, settings: Configured, keys: Keys, response: Response
) -> AutomationOut:
    """Make an automation. Without a status it is ACTIVE at once."""
    definition = parse_authored(keys)
    _accepting(settings)(definition)
    row = create(backends, caller, definition)
    response.headers["Location"] = f"/v1/automations/{row.id}"
    return _tagged(row, response)


@router.get("/v1/automations/{automation}")
def read_one(caller: Reader, backends: Served, automation: Reference, response: Response) -> AutomationOut:
    """Show an automation. `ETag` names its state."""
    with backends.database.read() as conn:
        row = find_automation(conn, caller.workspace_id, automation)
    return _tagged(row, response)


class Editing:
    """What an edit or a deletion is meant for: what the settings allow, and the state that If-Match names."""

    def __init__(self, settings: Configured, response: Response, if_match: IfMatch = None) -> None:
        """Keep all of it."""
        self.accept = _accepting(settings)
        self.response = response
        self._if_match = if_match

    def check_row(self, row: AutomationRow) -> None:
        """Refuse to change another state than was meant."""
        check_match(self._if_match, _etag(row))


Meant = Annotated[Editing, Depends(Editing)]


@router.patch("/v1/automations/{automation}")
def edit_one(
    caller: Writer, backends: Served, automation: Reference, keys: Changed, meant: Meant
) -> AutomationOut:
    """Give keys of the definition new values; null takes a key away, what is left out stays as it is.

    With `If-Match` only if nobody else changed it meanwhile.
    """
    row = edit(backends, caller, automation, Edit(keys, meant.check_row, meant.accept))
    return _tagged(row, meant.response)


@router.delete("/v1/automations/{automation}", status_code=204)
def delete_one(caller: Writer, backends: Served, automation: Reference, meant: Meant) -> None:
    """Delete an automation: what waits is cancelled, what runs stops, its history stays."""
    delete(backends, caller, automation, meant.check_row)


@router.post("/v1/automations/{automation}/run", status_code=201)
def run_one(
    caller: Writer, backends: Served, automation: Reference, response: Response, start: StartIn | None = None
) -> StartedOut:
    """Start a run by hand. Each request makes one; under an Idempotency-Key a repeat makes none."""
    run_id = start_by_hand(backends, caller, automation, (start or StartIn()).payload)
    response.headers["Location"] = f"/v1/runs/{run_id}"
    return StartedOut(run_id=run_id)


@router.get("/v1/automations/{automation}/next-fires")
def read_fires(
    caller: Reader,
    backends: Served,
    automation: Reference,
    count: Annotated[Count, Query(ge=1, le=100, description="So many.")] = 5,
) -> FiresOut:
    """Show when an automation with the trigger SCHEDULE fires next."""
    with backends.database.read() as conn:
        row = find_automation(conn, caller.workspace_id, automation)
        return FiresOut.of(preview_fires(conn, row, backends.clock.now(), count))


@router.get("/v1/automations/{automation}/versions")
def read_versions(caller: Reader, backends: Served, automation: Reference, page: Page) -> Listed[VersionOut]:
    """List what the definition was before, newest first."""
    before = LAST_VERSION if page.after is None else read_number_cursor(page.after)
    with backends.database.read() as conn:
        row = find_automation(conn, caller.workspace_id, automation)
        versions = list_versions(conn, row.id, before=before, most=page.most)
    return page.cut(versions, VersionOut.of, lambda version: str(version.version))


def _tagged(row: AutomationRow, response: Response) -> AutomationOut:
    response.headers["ETag"] = _etag(row)
    return AutomationOut.of(row)


def _etag(row: AutomationRow) -> str:
    return make_etag(row.id, row.version, row.updated_at.isoformat())


def _accepting(settings: Settings) -> Callable[[Definition], None]:
    """Make what refuses a definition whose webhooks may reach nobody, where the settings forbid that."""

    def accept(definition: Definition) -> None:
        if not settings.webhook_allow_private:
            check_targets([definition])

    return accept
