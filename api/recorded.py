"""`GET /v1/events`: what is on the stream of a workspace, and what became of it (docs/api.md)."""

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query

from api.auth import needs
from api.paging import Listed, Page, PageAsked, no_cursor
from api.served import Configured, Served
from api.why_models import EntryOut, ExplainedOut, ExplanationOut
from shared.errors import NotFound
from shared.event_stream import EntryState, Reach, reach_between
from shared.model.event_fields import MAX_TYPE
from shared.model.instants import Instant
from shared.model.stamps import Stamp, format_stamp, parse_stamp
from shared.services.backends import Caller
from shared.services.recorded import LISTED_BYTES, EventQuery, SeenEntry, list_events, see_entry
from shared.services.why import Wanted, explain_entry
from shared.services.why_shown import EVENT_BYTES, brief_document, entry_document, full_document
from shared.services.workspaces import Scope

router: Final = APIRouter(tags=["events"])

Reader = Annotated[Caller, needs(Scope.EVENTS_READ)]
EntryId = Annotated[str, Path(examples=["1772366400000-0"])]
Type = Annotated[str | None, Query(alias="type", max_length=MAX_TYPE, description="Only of this type.")]
Automation = Annotated[
    str | None, Query(max_length=100, description="Only this one, by key or id, with every check.")
]
From = Annotated[Instant | None, Query(alias="from", description="Only from this instant on.")]
To = Annotated[Instant | None, Query(alias="to", description="Only before this instant.")]


async def read_reach(begin: From = None, end: To = None) -> Reach:
    """Read which stretch of the stream is meant."""
    return reach_between(begin, end)


Stretch = Annotated[Reach, Depends(read_reach)]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which automations an explanation is about, and which page of them."""

    page: PageAsked
    wanted: Wanted


async def read_asked(page: Page, automation: Automation = None) -> Asked:
    """Read which automations are meant: one by key or id, or a page of them."""
    return Asked(page, Wanted(automation, page.after or "", page.most))


AskedAbout = Annotated[Asked, Depends(read_asked)]


@router.get("/v1/events")
def list_recorded(
    caller: Reader, backends: Served, page: Page, stretch: Stretch, event_type: Type = None
) -> Listed[EntryOut]:
    """List the events on the stream, newest first. A page with a `next` may not be full."""
    last = stretch.last if page.after is None else min(stretch.last, _read_cursor(page.after))
    query = EventQuery(caller.workspace_id, Reach(stretch.first, last), page.limit, event_type)
    found = list_events(backends, query)
    return Listed(
        items=[_entry(entry, LISTED_BYTES) for entry in found.entries],
        next=page.cursor(None if found.next is None else format_stamp(found.next)),
    )


@router.get("/v1/events/{entry_id}")
def read_recorded(caller: Reader, backends: Served, entry_id: EntryId) -> EntryOut:
    """Show one event, and how far it has come."""
    entry = _own(see_entry(backends, caller.workspace_id, entry_id), caller)
    if entry.state is EntryState.GONE:
        raise NotFound(f"entry {entry_id} is gone: {entry.reason}")
    return _entry(entry, EVENT_BYTES)


@router.get(
    "/v1/events/{entry_id}/explain",
    dependencies=[needs(Scope.AUTOMATIONS_READ), needs(Scope.RUNS_READ)],
)
def explain_recorded(
    caller: Reader, backends: Served, settings: Configured, entry_id: EntryId, asked: AskedAbout
) -> ExplanationOut:
    """Say what each automation made of an entry: its run, or the first check that said no."""
    found = explain_entry(backends, settings, caller.workspace_id, entry_id, asked.wanted)
    entry = _entry(_own(found.entry, caller), EVENT_BYTES)
    show = brief_document if asked.wanted.reference is None else full_document
    shown = asked.page.cut(
        found.automations,
        lambda each: ExplainedOut.model_validate(show(each)),
        lambda each: each.automation.key,
    )
    return ExplanationOut(entry=entry, items=shown.items, next=shown.next)


def _own(entry: SeenEntry, caller: Caller) -> SeenEntry:
    """Let pass what is certainly the caller's, and what is gone, which is nobody's. Raises NotFound."""
    if entry.workspace_id != caller.workspace_id and entry.state is not EntryState.GONE:
        raise NotFound(f"there is no entry {entry.entry_id!r} on the stream")
    return entry


def _entry(entry: SeenEntry, most_bytes: int) -> EntryOut:
    return EntryOut.model_validate(entry_document(entry, most_bytes))


def _read_cursor(key: str) -> Stamp:
    try:
        return parse_stamp(key)
    except ValueError:
        raise no_cursor() from None
