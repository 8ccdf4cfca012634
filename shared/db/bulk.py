"""Bulk operations as rows: made by a preview, confirmed by a person, moved on batch by batch until they end.

Each move is a compare-and-set; whoever moves an operation on holds its row, and nobody waits for that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Self

from sqlalchemy import Connection, Row

from shared.db.bulk_runs import FIRST, Selection
from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, read_json, write_instant
from shared.model.bulk import BulkKind, BulkStatus, Passed, check_bulk_move
from shared.model.moves import RunStatus


@dataclass(frozen=True, slots=True)
class BulkOperation:
    """An operation as it is stored. `total` is what the preview counted; `is_more`: there were more.

    `start` says where a replay begins. Runs up to `after_id` have had their turn.
    """

    id: str
    workspace_id: str
    kind: BulkKind
    filter: Mapping[str, Any]
    start: str | None
    status: BulkStatus
    total: int
    is_more: bool
    done: int
    skipped: Mapping[str, int]
    after_id: str
    until_id: str
    created_by: str
    created_at: datetime
    confirmed_by: str | None
    confirmed_at: datetime | None
    moved_at: datetime
    ended_at: datetime | None

    @property
    def passed(self) -> int:
        """Count the runs that were left as they are."""
        return sum(self.skipped.values())

    @property
    def selection(self) -> Selection:
        """Tell which runs it is about."""
        return Selection(
            workspace_id=self.workspace_id,
            status=RunStatus(self.filter["status"]),
            at=self.created_at,
            until_id=self.until_id,
            automation_id=self.filter.get("automation_id"),
            fingerprint=self.filter.get("fingerprint"),
            code=self.filter.get("code"),
            since=read_instant(self.filter.get("from")),
            until=read_instant(self.filter.get("to")),
        )

    def moved(self, last_id: str, done: int, skipped: Mapping[Passed, int], now: datetime) -> Self:
        """Give it as it stands after a batch that ended with the run `last_id`."""
        sums: dict[str, int] = {
            why.value: self.skipped.get(why, 0) + skipped.get(why, 0)
            for why in Passed
            if why in self.skipped or skipped.get(why)
        }
        return replace(
            self,
            status=BulkStatus.RUNNING,
            after_id=last_id,
            done=self.done + done,
            skipped=sums,
            moved_at=now,
        )

    def ended(self, now: datetime) -> Self:
        """Give it as it stands when no run is left: what was counted and not met has moved meanwhile."""
        missing = 0 if self.is_more else max(0, self.total - self.done - self.passed)
        sums = dict(self.skipped)
        if missing:
            why = Passed.MOVED_MEANWHILE.value
            sums[why] = sums.get(why, 0) + missing
        total = self.done + sum(sums.values())
        return replace(
            self,
            status=BulkStatus.DONE,
            total=total,
            is_more=False,
            skipped=sums,
            moved_at=now,
            ended_at=now,
        )


def _operation(row: Row[Any]) -> BulkOperation:
    return BulkOperation(
        id=row.id,
        workspace_id=row.workspace_id,
        kind=BulkKind(row.kind),
        filter=read_json(row.filter),
        start=row.start,
        status=BulkStatus(row.status),
        total=row.total,
        is_more=bool(row.more),
        done=row.done,
        skipped=read_json(row.skipped),
        after_id=row.after_id,
        until_id=row.until_id,
        created_by=row.created_by,
        created_at=must_instant(row.created_at),
        confirmed_by=row.confirmed_by,
        confirmed_at=read_instant(row.confirmed_at),
        moved_at=must_instant(row.moved_at),
        ended_at=read_instant(row.ended_at),
    )


INSERT: Final = sql(
    """
    INSERT INTO bulk_operations (id, workspace_id, kind, filter, start, status, total, more, done, skipped,
        after_id, until_id, created_by, created_at, moved_at)
    SELECT id, workspace_id, kind, filter, start, 'PREVIEWED', total, more, 0, skipped,
        after_id, until_id, created_by, :now, :now FROM {rows}
    """,
    id="text",
    workspace_id="text",
    kind="text",
    filter="jsonb",
    start="text",
    total="integer",
    more="integer",
    skipped="jsonb",
    after_id="text",
    until_id="text",
    created_by="text",
)


@dataclass(frozen=True, slots=True)
class Preview:
    """An operation that is about to be stored: what it would do, to how many runs, for whom."""

    id: str
    selection: Selection
    kind: BulkKind
    filter: Mapping[str, Any]
    start: str | None
    total: int
    is_more: bool
    created_by: str


def insert_preview(conn: Connection, preview: Preview) -> None:
    """Store a preview, made at the instant of its selection."""
    row = {
        "id": preview.id,
        "workspace_id": preview.selection.workspace_id,
        "kind": preview.kind,
        "filter": preview.filter,
        "start": preview.start,
        "total": preview.total,
        "more": int(preview.is_more),
        "skipped": {},
        "after_id": FIRST,
        "until_id": preview.selection.until_id,
        "created_by": preview.created_by,
    }
    INSERT.run_set(conn, [row], now=write_instant(preview.selection.at))


FIND: Final = sql("SELECT r.* FROM bulk_operations r WHERE r.workspace_id = :workspace_id AND r.id = :id")
LOCK: Final = sql(
    "SELECT r.* FROM bulk_operations r WHERE r.workspace_id = :workspace_id AND r.id = :id {lock}"
)


def find_operation(conn: Connection, workspace_id: str, operation_id: str) -> BulkOperation | None:
    """Give one operation of a workspace, or None."""
    row = FIND.run(conn, {"workspace_id": workspace_id, "id": operation_id}).first()
    return _operation(row) if row else None


def lock_operation(conn: Connection, workspace_id: str, operation_id: str) -> BulkOperation | None:
    """Give one operation as `find_operation` does, locked; waits for a batch that is under way."""
    row = LOCK.run(conn, {"workspace_id": workspace_id, "id": operation_id}).first()
    return _operation(row) if row else None


LIST: Final = sql(
    """
    SELECT r.* FROM bulk_operations r WHERE r.workspace_id = :workspace_id AND r.id < :before
    ORDER BY r.id DESC LIMIT :most
    """
)
LAST: Final = "z"  # sorts behind every id


def list_operations(
    conn: Connection, workspace_id: str, *, most: int, before: str = LAST
) -> list[BulkOperation]:
    """Give a workspace's operations, newest first; `before` is the id that the last page ended with."""
    values = {"workspace_id": workspace_id, "most": most, "before": before}
    return [_operation(row) for row in LIST.run(conn, values)]


CONFIRM: Final = sql(
    """
    UPDATE bulk_operations SET status = 'CONFIRMED', confirmed_by = :by, confirmed_at = :now, moved_at = :now
    WHERE id = :id AND status = 'PREVIEWED' RETURNING *
    """
)
CANCEL: Final = sql(
    """
    UPDATE bulk_operations SET status = 'CANCELLED', moved_at = :now, ended_at = :now
    WHERE id = :id AND status IN ('PREVIEWED', 'CONFIRMED', 'RUNNING') RETURNING *
    """
)


def confirm_operation(conn: Connection, operation_id: str, by: str, *, now: datetime) -> BulkOperation | None:
    """Move an operation from PREVIEWED to CONFIRMED; None where it is no preview any more."""
    check_bulk_move(BulkStatus.PREVIEWED, BulkStatus.CONFIRMED)
    row = CONFIRM.run(conn, {"id": operation_id, "by": by, "now": write_instant(now)}).first()
    return _operation(row) if row else None


def cancel_operation(conn: Connection, operation_id: str, *, now: datetime) -> BulkOperation | None:
    """Move an operation to CANCELLED; None where it has ended. What was done stays done."""
    row = CANCEL.run(conn, {"id": operation_id, "now": write_instant(now)}).first()
    return _operation(row) if row else None


GOING: Final = sql(
    """
    SELECT r.* FROM bulk_operations r WHERE r.status IN ('CONFIRMED', 'RUNNING')
    ORDER BY r.moved_at LIMIT :most
    """
)
TAKE: Final = sql(
    """
    SELECT r.* FROM bulk_operations r
    WHERE r.id = :id AND r.after_id = :after_id AND r.status IN ('CONFIRMED', 'RUNNING') {skip_locked}
    """
)
MOVE: Final = sql(
    """
    UPDATE bulk_operations SET status = x.status, total = x.total, more = x.more, done = x.done,
        skipped = x.skipped, after_id = x.after_id, moved_at = x.moved_at, ended_at = x.ended_at
    FROM {rows}
    WHERE bulk_operations.id = x.id AND bulk_operations.status IN ('CONFIRMED', 'RUNNING')
    """,
    id="text",
    status="text",
    total="integer",
    more="integer",
    done="integer",
    skipped="jsonb",
    after_id="text",
    moved_at="timestamptz",
    ended_at="timestamptz",
)


def going_operations(conn: Connection, *, most: int) -> list[BulkOperation]:
    """Give operations of all workspaces that have runs to do; first the one that was longest not moved on."""
    return [_operation(row) for row in GOING.run(conn, {"most": most})]


def take_operation(conn: Connection, seen: BulkOperation) -> BulkOperation | None:
    """Lock an operation that still stands where it was seen.

    None: another process is at it or has moved it on, or it was cancelled.
    """
    row = TAKE.run(conn, {"id": seen.id, "after_id": seen.after_id}).first()
    return _operation(row) if row else None


def move_operation(conn: Connection, held: BulkOperation, to: BulkOperation) -> None:
    """Write how a locked operation stands after a batch."""
    check_bulk_move(held.status, to.status)
    row = {
        "id": held.id,
        "status": to.status,
        "total": to.total,
        "more": int(to.is_more),
        "done": to.done,
        "skipped": to.skipped,
        "after_id": to.after_id,
        "moved_at": write_instant(to.moved_at),
        "ended_at": to.ended_at and write_instant(to.ended_at),
    }
    MOVE.run_set(conn, [row])
