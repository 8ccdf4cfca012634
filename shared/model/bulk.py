"""What is done to many runs at once: a wish with its filter, and the states of what fulfils it."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator

from shared.errors import Fault, IllegalMove
from shared.model.instants import Instant
from shared.model.json_limits import clean_text
from shared.model.moves import RunStatus
from shared.model.parts import Part
from shared.model.refusals import Refused

REFERENCE_CHARS: Final = 200


class BulkKind(StrEnum):
    """What is done."""

    REPLAY = "replay"
    CANCEL = "cancel"


class BulkStatus(StrEnum):
    """Where an operation stands."""

    PREVIEWED = "PREVIEWED"
    CONFIRMED = "CONFIRMED"
    RUNNING = "RUNNING"
    DONE = "DONE"
    CANCELLED = "CANCELLED"


class Passed(StrEnum):
    """Why a run that the preview counted was left as it is."""

    MOVED_MEANWHILE = "moved_meanwhile"
    AUTOMATION_DELETED = "automation_deleted"


GOING: Final = frozenset({BulkStatus.CONFIRMED, BulkStatus.RUNNING})
BULK_MOVES: Final[Mapping[BulkStatus, frozenset[BulkStatus]]] = MappingProxyType(
    {
        BulkStatus.PREVIEWED: frozenset({BulkStatus.CONFIRMED, BulkStatus.CANCELLED}),
        BulkStatus.CONFIRMED: frozenset({BulkStatus.RUNNING, BulkStatus.DONE, BulkStatus.CANCELLED}),
        BulkStatus.RUNNING: frozenset({BulkStatus.RUNNING, BulkStatus.DONE, BulkStatus.CANCELLED}),
        BulkStatus.DONE: frozenset(),
        BulkStatus.CANCELLED: frozenset(),
    }
)
STATUSES: Final[Mapping[BulkKind, tuple[RunStatus, ...]]] = MappingProxyType(
    {
        BulkKind.REPLAY: (RunStatus.DEAD_LETTER, RunStatus.FAILED),
        BulkKind.CANCEL: (RunStatus.PENDING,),
    }
)


def _check_storable(text: str) -> str:
    if clean_text(text) != text:
        raise ValueError("holds characters that no run has")
    return text


_Text = Annotated[
    str, StringConstraints(min_length=1, max_length=REFERENCE_CHARS), AfterValidator(_check_storable)
]


def check_bulk_move(origin: BulkStatus, to: BulkStatus) -> None:
    """Raise IllegalMove unless the table has this edge."""
    if to not in BULK_MOVES[origin]:
        raise IllegalMove(f"{origin} -> {to}")


class BulkFilter(Part):
    """Which runs of a workspace. `from` and `to` are about when they ended; for those that wait, were made.

    No key may be null, which would mean all.
    `automation` is a key or an id. `from` is the first instant that fits, `to` the first that does not.
    """

    status: RunStatus | None = None
    automation: _Text | None = None
    fingerprint: _Text | None = None
    code: _Text | None = None
    since: Instant | None = Field(default=None, alias="from")
    until: Instant | None = Field(default=None, alias="to")

    @field_validator("*", mode="before")
    @classmethod
    def _check_given(cls, value: object) -> object:
        if value is None:
            raise ValueError("must not be null; leave it out to mean any")
        return value

    @field_validator("status", mode="before")
    @classmethod
    def _fold_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("until")
    @classmethod
    def _check_order(cls, until: datetime | None, info: ValidationInfo) -> datetime | None:
        since = info.data.get("since")
        if since is not None and until is not None and since >= until:
            raise ValueError("must be after `from`")
        return until


def check_filter(kind: BulkKind, wanted: BulkFilter) -> BulkFilter:
    """Give a filter back if there can be such runs. Raises Refused with the key at fault."""
    allowed = STATUSES[kind]
    status = wanted.status or allowed[0]
    if status not in allowed:
        raise Refused([Fault("status", f"must be {' or '.join(allowed)} for a {kind}")])
    if wanted.fingerprint is not None and status is not RunStatus.DEAD_LETTER:
        raise Refused([Fault("fingerprint", "is for runs that are DEAD_LETTER alone")])
    if wanted.code is not None and status is RunStatus.PENDING:
        raise Refused([Fault("code", "is for runs that have ended")])
    return wanted


class BulkWish(Part):
    """What to do to the runs of a filter. `from_start` repeats actions that have succeeded."""

    kind: BulkKind
    filter: BulkFilter
    from_start: bool = False

    @field_validator("filter")
    @classmethod
    def _check_filter(cls, wanted: BulkFilter, info: ValidationInfo) -> BulkFilter:
        kind = info.data.get("kind")
        return wanted if kind is None else check_filter(kind, wanted)

    @field_validator("from_start")
    @classmethod
    def _check_start(cls, from_start: object, info: ValidationInfo) -> object:
        if from_start and info.data.get("kind") is BulkKind.CANCEL:
            raise ValueError("is for replays alone")
        return from_start

    @property
    def status(self) -> RunStatus:
        """Tell which runs are meant where the filter names no status: dead letters, or those that wait."""
        return self.filter.status or STATUSES[self.kind][0]
