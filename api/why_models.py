"""What the routes of `why` and `recorded` answer; the services' documents have these keys."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from api.pending_models import PendingOut
from shared.event_stream import EntryState
from shared.model.moves import RunStatus
from shared.model.pending import PendingStatus
from shared.model.statuses import AutomationStatus
from shared.rules.examining import CheckName
from shared.services.backtests import Made
from shared.services.verdicts import Verdict


class EntryOut(BaseModel):
    """An entry of the stream."""

    entry_id: str
    state: EntryState
    reason: str | None = Field(description="Why no event can be read, if none can.")
    event: dict[str, Any] | None = Field(description="The event with its payload masked, and cut if large.")


class CheckOut(BaseModel):
    """What one check said."""

    check: CheckName
    passed: bool
    wanted: Any
    found: Any
    reason: str


class LeafOut(BaseModel):
    """What one leaf of the conditions said; masked where its field tells a secret."""

    path: str = Field(examples=["conditions.all[0]"])
    field: str
    op: str
    wanted: Any
    found: Any
    passed: bool
    reason: str


class NamedOut(BaseModel):
    """An automation, and how it stands now."""

    id: str
    key: str
    name: str
    status: AutomationStatus
    version: int
    deleted_at: datetime | None


class StartedOut(BaseModel):
    """The run that an entry started."""

    id: str
    status: RunStatus
    skip_reason: str | None
    error: dict[str, Any] | None
    automation_version: int | None
    created_at: datetime


class ExplainedOut(BaseModel):
    """What became of an entry and one automation. Every check and leaf stands there for a single one only."""

    automation: NamedOut
    verdict: Verdict
    stopped_by: CheckOut | None = Field(description="The first check that said no.")
    blamed: list[LeafOut] = Field(description="The leaves because of which the conditions do not hold.")
    run: StartedOut | None
    pending: list[PendingOut] = Field(
        description="Of one that waits: what the entry armed, else what waits already for its subject."
    )
    checks: list[CheckOut] | None = None
    leaves: list[LeafOut] | None = None


class ExplanationOut(BaseModel):
    """What became of an entry, and of each automation."""

    entry: EntryOut
    items: list[ExplainedOut]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


class FaultOut(BaseModel):
    """How an action would fail before it did anything."""

    code: str
    message: str


class ActionOut(BaseModel):
    """An action as it would be handed over, masked."""

    position: int
    type: str
    config: dict[str, Any] | None
    missing: list[str] = Field(description="Paths that lead nowhere, and render empty.")
    assumed: list[str] = Field(description="Paths that only an earlier action fills; their names stand in.")
    secrets: list[str] = Field(description="Secrets that it asks for; a masked stand-in is rendered.")
    fault: FaultOut | None


class StandingOut(BaseModel):
    """The pending execution that an episode has."""

    id: str
    status: PendingStatus


class WaitOut(BaseModel):
    """Since when an episode goes on, and when it would be due."""

    started_at: datetime
    due_at: datetime
    already: StandingOut | None = Field(description="What waits, or has run, for this episode.")


class DryRunOut(BaseModel):
    """What every check says, and what each action would be handed."""

    automation: NamedOut
    event: dict[str, Any]
    would_run: bool
    waits: WaitOut | None = Field(description="Of one that waits: since when, and when it would be due.")
    stopped_by: CheckOut | None
    blamed: list[LeafOut]
    checks: list[CheckOut]
    leaves: list[LeafOut]
    actions: list[ActionOut]


class LeafCountOut(BaseModel):
    """A leaf, and on how many events it was to blame."""

    path: str
    field: str
    op: str
    said_no: int


class ExampleOut(BaseModel):
    """One event, and what the draft made of it."""

    entry_id: str
    type: str
    made: Made = Field(
        description="would_run; of a draft that waits armed, or goes_on where its episode has begun; nothing."
    )
    stopped_by: CheckOut | None
    blamed: list[LeafOut]


class DelayedOut(BaseModel):
    """What became of the episodes of a draft that waits."""

    armed: int
    fired: int
    ended: int = Field(description="Those that ended before they were due.")
    waiting: int = Field(description="Those that waited still at the end.")


class BacktestOut(BaseModel):
    """What a draft would have done: counts, the leaves to blame, up to five examples of each verdict."""

    events: int
    would_run: int = Field(description="Events; of a draft that waits, episodes that came due.")
    delayed: DelayedOut | None
    no: dict[CheckName, int] = Field(description="Events by the first check that said no.")
    unreadable: int = Field(description="Entries that hold no event.")
    leaves: list[LeafCountOut]
    examples: list[ExampleOut]
    next: str | None = Field(description="The entry to go on with; null when all were gone through.")
