"""What is done to many runs at once: a wish with its filter, and the states of what fulfils it."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Final, Self

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints, field_validator, model_validator

from shared.errors import IllegalMove
from shared.model.json_limits import clean_text
from shared.model.moves import RunStatus
from shared.model.parts import Part

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

    `automation` is a key or an id. `from` is the first instant that fits, `to` the first that does not.
    """

    status: RunStatus | None = None
    automation: _Text | None = None
    fingerprint: _Text | None = None
    code: _Text | None = None
    since: AwareDatetime | None = Field(default=None, alias="from")
    until: AwareDatetime | None = Field(default=None, alias="to")

    @field_validator("status", mode="before")
    @classmethod
    def _fold_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ValueError("`from` must be before `to`")
        return self


class BulkWish(Part):
    """What to do to the runs of a filter. `from_start` repeats actions that have succeeded."""

    kind: BulkKind
    filter: BulkFilter = BulkFilter()
    from_start: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        allowed = STATUSES[self.kind]
        status = self.filter.status or allowed[0]
        if status not in allowed:
            raise ValueError(f"a {self.kind} is of runs that are {' or '.join(allowed)}")
        if self.filter.fingerprint is not None and status is not RunStatus.DEAD_LETTER:
            raise ValueError("only runs that are DEAD_LETTER have a fingerprint")
        if self.filter.code is not None and status is RunStatus.PENDING:
            raise ValueError("runs that are PENDING have not ended with a code")
        if self.from_start and self.kind is not BulkKind.REPLAY:
            raise ValueError("only a replay can begin from the start")
        return self

    @property
    def status(self) -> RunStatus:
        """Tell which runs are meant where the filter names no status: dead letters, or those that wait."""
        return self.filter.status or STATUSES[self.kind][0]
