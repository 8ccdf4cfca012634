"""Dry runs and backtests: what an automation, or a draft, makes of events; nothing is done (docs/api.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from api.auth import check_scopes, needs
from api.errors import at_field
from api.served import Configured, Served
from api.why_models import BacktestOut, DryRunOut
from shared.errors import BadEvent, Conflict, DefinitionError, Fault, NotFound
from shared.event_stream import reach_between
from shared.model.automation import parse_definition
from shared.model.events import Event
from shared.model.instants import Instant
from shared.model.refusals import join
from shared.services.authentication import KnownKey
from shared.services.backends import Backends, Caller
from shared.services.backtests import Stretch, backtest
from shared.services.dry_runs import Sight, Trial, dry_run, trial_event
from shared.services.recorded import see_entry
from shared.services.why_shown import backtest_document, dry_run_document
from shared.services.workspaces import Scope

MOST_EVENTS: Final = 10_000
WITHIN_S: Final = 20.0
LAST_DAY: Final = timedelta(days=1)
ORDER: Final[dict[str, JsonValue]] = {"type": "order.placed", "payload": {"orderId": 7, "total": 120}}
DRAFT: Final[dict[str, JsonValue]] = {
    "key": "large-orders",
    "name": "Large orders",
    "trigger": {"type": "EVENT", "config": {"eventType": "order.placed"}},
    "conditions": {"all": [{"field": "total", "op": "gte", "value": 100}]},
    "actions": [{"type": "CREATE_NOTIFICATION", "config": {"title": "Large order {{ orderId }}"}}],
}

router: Final = APIRouter(tags=["automations"])

Reader = Annotated[Caller, needs(Scope.AUTOMATIONS_READ)]
EventsReader = Annotated[Caller, needs(Scope.EVENTS_READ)]
Reference = Annotated[str, Path(alias="automation", description="The automation's key or id.")]


class DryRunIn(BaseModel):
    """An event as `POST /v1/events` takes it, or the id of an entry that is on the stream."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"event": ORDER}]})

    event: dict[str, Any] | None = None
    entry_id: str | None = None

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.event is None) == (self.entry_id is None):
            raise ValueError("give either event or entry_id")
        return self


class BacktestIn(BaseModel):
    """A draft, and which events: from one instant (24 hours ago) on, before another, at most `limit`."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"definition": DRAFT}]})

    definition: dict[str, Any]
    begin: Instant | None = Field(default=None, alias="from")
    end: Instant | None = Field(default=None, alias="to")
    limit: int = Field(default=MOST_EVENTS, ge=1, le=MOST_EVENTS)


@dataclass(frozen=True, slots=True)
class Tried:
    """Who tries which automation with what, and what they may see."""

    caller: Caller
    reference: str
    wanted: DryRunIn
    sight: Sight


async def read_trial(request: Request, caller: Reader, reference: Reference, wanted: DryRunIn) -> Tried:
    """Read which automation is tried with what; a recorded event needs the scope events:read, too."""
    key: KnownKey = request.state.key
    if wanted.entry_id is not None:
        check_scopes(key, [Scope.EVENTS_READ])
    sight = Sight.SUBJECTS if Scope.SUBJECTS_READ in key.scopes else Sight.NO_SUBJECTS
    return Tried(caller, reference, wanted, sight)


@router.post("/v1/automations/{automation}/dry-run")
def run_dry(
    backends: Served, settings: Configured, tried: Annotated[Tried, Depends(read_trial)]
) -> DryRunOut:
    """Say what an automation would do with an event: every check, its actions rendered, and nothing done."""
    workspace_id = tried.caller.workspace_id
    event = _event(backends, workspace_id, tried.wanted)
    is_recorded = tried.wanted.entry_id is not None
    trial = Trial(tried.reference, event, tried.sight, is_recorded)
    dry = dry_run(backends, settings, workspace_id, trial)
    return DryRunOut.model_validate(dry_run_document(dry))


@router.post("/v1/backtests", dependencies=[needs(Scope.AUTOMATIONS_READ)])
def run_backtest(
    caller: EventsReader, backends: Served, settings: Configured, wanted: BacktestIn
) -> BacktestOut:
    """Hold a draft against recorded events, and say what it would have done; nothing is done."""
    try:
        definition = parse_definition(wanted.definition)
    except DefinitionError as error:
        faults = [Fault(join("definition", fault.path), fault.message) for fault in error.faults]
        raise DefinitionError(faults) from error
    reach = reach_between(wanted.begin or backends.clock.now() - LAST_DAY, wanted.end)
    stretch = Stretch(reach.first, reach.last, wanted.limit, WITHIN_S)
    with at_field("definition.trigger.type"):
        found = backtest(backends, settings, caller.workspace_id, (definition, stretch), _untold)
    return BacktestOut.model_validate(backtest_document(found))


def _event(backends: Backends, workspace_id: str, wanted: DryRunIn) -> Event:
    """Give the event, recorded or given. Raises NotFound, Conflict, BadEvent."""
    if wanted.entry_id is None:
        try:
            return trial_event(backends, workspace_id, wanted.event or {})
        except BadEvent as error:
            raise BadEvent(f"event.{error.field}", error.reason) from error
    entry = see_entry(backends, workspace_id, wanted.entry_id)
    if entry.workspace_id is None:
        raise NotFound(f"there is no entry {wanted.entry_id!r} on the stream")
    if entry.event is None:
        raise Conflict(f"entry {wanted.entry_id} holds no event: {entry.reason}")
    return entry.event


def _untold(_events: int, _at: datetime) -> None:
    """Tell nobody how far it is."""
