"""Pending executions that are due: chosen fairly, claimed, and settled as sets (docs/delayed.md, "Firing").

Every move is a compare-and-set on `version`, so any number of sweeps may go on at once. A claim passes over
rows that another transaction holds; settling waits for them, since it must know what became of its claim.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, text

from shared.db.pending import COLUMNS, pending_row
from shared.db.sheet import put_ids
from shared.db.sql import Sql, sql
from shared.db.types import write_instant
from shared.model.pending import PendingRow, PendingSkip, PendingStatus, check_pending_move

# Up to so many due rows the turns of the workspaces are told by looking at all of them.
FEW: Final = 2_000


@dataclass(frozen=True, slots=True)
class DueClaim:
    """A row as somebody saw it: it is theirs to move as long as it has this version."""

    id: str
    version: int


DUE_OF_FEW: Final = sql(
    """
    SELECT d.id, d.version, d.looked_at FROM (
        SELECT o.id, o.version, o.due_at, count(*) OVER () AS looked_at,
            row_number() OVER (PARTITION BY o.workspace_id ORDER BY o.due_at, o.id) AS turn
        FROM (
            SELECT r.id, r.version, r.due_at, r.workspace_id FROM pending_executions r
            WHERE r.status = 'pending' AND r.due_at <= :now ORDER BY r.due_at, r.id LIMIT :few
        ) o
    ) d
    ORDER BY d.turn, d.due_at, d.id LIMIT :most
    """
)

# The workspaces that anything waits for, one step along their index each, and then the first rows of each.
_TENANTS: Final = """
    WITH RECURSIVE w(workspace_id) AS (
        SELECT (SELECT r.workspace_id FROM pending_executions r WHERE r.status = 'pending'
            ORDER BY r.workspace_id LIMIT 1)
        UNION ALL
        SELECT (SELECT r.workspace_id FROM pending_executions r
            WHERE r.status = 'pending' AND r.workspace_id > w.workspace_id ORDER BY r.workspace_id LIMIT 1)
        FROM w WHERE w.workspace_id IS NOT NULL)
"""
_FIRST: Final = """
    SELECT r.id, r.version, r.due_at, r.workspace_id FROM pending_executions r
    WHERE r.workspace_id = w.workspace_id AND r.status = 'pending' AND r.due_at <= :now
    ORDER BY r.workspace_id, r.due_at, r.id LIMIT :each
"""
_FIRST_ID: Final = _FIRST.replace("r.id, r.version, r.due_at, r.workspace_id", "r.id", 1)
_IN_TURN: Final = """
    SELECT d.id, d.version FROM (
        SELECT e.id, e.version, e.due_at,
            row_number() OVER (PARTITION BY e.workspace_id ORDER BY e.due_at, e.id) AS turn
        FROM w JOIN {first}
    ) d
    ORDER BY d.turn, d.due_at, d.id LIMIT :most
"""
DUE_OF_MANY: Final = Sql(
    postgresql=text(_TENANTS + _IN_TURN.replace("{first}", f"LATERAL ({_FIRST}) e ON true")),
    sqlite=text(_TENANTS + _IN_TURN.replace("{first}", f"pending_executions e ON e.id IN ({_FIRST_ID})")),
)


def due_rows(conn: Connection, *, now: datetime, most: int, few: int = FEW) -> list[DueClaim]:
    """Choose rows that are due: the oldest of each workspace, then the next of each, and so on.

    The cost follows what is due. Only a backlog makes it look at every workspace for which rows wait.
    """
    values = {"now": write_instant(now), "most": most}
    rows = DUE_OF_FEW.run(conn, {**values, "few": few}).all()
    if rows and rows[0].looked_at == few:
        rows = DUE_OF_MANY.run(conn, {**values, "each": most}).all()
    return [DueClaim(row.id, row.version) for row in rows]


CLAIM: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id FROM pending_executions r JOIN {rows} ON r.id = x.id
        WHERE (r.status || '') = 'pending' AND r.version = x.version ORDER BY r.id {skip_locked})
    UPDATE pending_executions SET status = 'processing', claimed_at = :now, updated_at = :now, run_id = NULL,
        version = version + 1
    FROM k WHERE pending_executions.id = k.id
    RETURNING pending_executions.id AS id, version
    """,
    id="text",
    version="integer",
)


def claim_due(conn: Connection, seen: Sequence[DueClaim], *, now: datetime) -> list[DueClaim]:
    """Move rows from pending to processing; give those that are ours now, in the order asked for.

    Left out is what another sweep has, or was changed since it was seen. A second call finds nothing.
    """
    check_pending_move(PendingStatus.PENDING, PendingStatus.PROCESSING)
    rows = CLAIM.run_set(conn, _claims(seen), now=write_instant(now))
    versions = {row.id: row.version for row in rows}
    return [DueClaim(each.id, versions[each.id]) for each in seen if each.id in versions]


LOCK_CLAIMED: Final = sql(
    f"""
    SELECT {COLUMNS} FROM pending_executions r JOIN {{rows}} ON r.id = x.id
    WHERE r.version = x.version AND (r.status || '') = 'processing' ORDER BY r.id {{lock}}
    """,
    id="text",
    version="integer",
)


@dataclass(frozen=True, slots=True)
class Locked:
    """Rows whose claim still stands, and the claims of those that are there but cannot be read."""

    rows: list[PendingRow]
    unreadable: list[DueClaim]


def lock_claimed(conn: Connection, claims: Iterable[DueClaim]) -> Locked:
    """Lock the rows whose claim still stands; the others were closed, cancelled or given back meanwhile."""
    found = Locked([], [])
    for row in LOCK_CLAIMED.run_set(conn, _claims(claims)):
        try:
            found.rows.append(pending_row(row))
        except ValueError:
            found.unreadable.append(DueClaim(row.id, row.version))
    return found


EXECUTE: Final = sql(
    """
    UPDATE pending_executions SET status = 'executed', run_id = x.run_id, updated_at = :now,
        version = pending_executions.version + 1
    FROM {rows} WHERE pending_executions.id = x.id AND pending_executions.version = x.version
        AND (pending_executions.status || '') = 'processing'
    RETURNING pending_executions.id AS id
    """,
    id="text",
    version="integer",
    run_id="text",
)


def execute_claimed(
    conn: Connection, fired: Iterable[tuple[PendingRow, str]], *, now: datetime
) -> frozenset[str]:
    """Move locked rows from processing to executed, each with its run; give the ids of those that moved."""
    check_pending_move(PendingStatus.PROCESSING, PendingStatus.EXECUTED)
    rows = ({"id": row.id, "version": row.version, "run_id": run_id} for row, run_id in fired)
    return put_ids(conn, EXECUTE, rows, now=write_instant(now))


# An episode that was skipped with one of the reasons in SPENT goes on; it must not be armed once more.
_ENDED_AT: Final = (
    "CASE WHEN x.skip_reason IN ('expired', 'cancelled') THEN {was} ELSE COALESCE({was}, :now) END"
)
_PENDING_ENDED: Final = _ENDED_AT.replace("{was}", "pending_executions.ended_at")

SKIP: Final = sql(
    f"""
    UPDATE pending_executions SET status = 'skipped', skip_reason = x.skip_reason, updated_at = :now,
        ended_at = {_PENDING_ENDED}, version = pending_executions.version + 1
    FROM {{rows}} WHERE pending_executions.id = x.id AND pending_executions.version = x.version
        AND (pending_executions.status || '') = 'processing'
    RETURNING pending_executions.id AS id
    """,
    id="text",
    version="integer",
    skip_reason="text",
)


def skip_claimed(
    conn: Connection, skipped: Iterable[tuple[PendingRow | DueClaim, PendingSkip]], *, now: datetime
) -> frozenset[str]:
    """Move locked rows from processing to skipped, each with its reason; give the ids of those that moved."""
    check_pending_move(PendingStatus.PROCESSING, PendingStatus.SKIPPED)
    rows = ({"id": row.id, "version": row.version, "skip_reason": reason} for row, reason in skipped)
    return put_ids(conn, SKIP, rows, now=write_instant(now))


_STUCK: Final = "r.status = 'processing' AND r.run_id IS NULL AND r.claimed_at < :before"
FIND_STUCK: Final = sql(
    f"SELECT r.id, r.version FROM pending_executions r WHERE {_STUCK} ORDER BY r.claimed_at LIMIT :most"
)
RETURN_STUCK: Final = sql(
    f"""
    WITH k AS MATERIALIZED (
        SELECT r.id FROM pending_executions r JOIN {{rows}} ON r.id = x.id
        WHERE r.version = x.version AND {_STUCK} ORDER BY r.id {{skip_locked}})
    UPDATE pending_executions SET status = 'pending', claimed_at = NULL, updated_at = :now,
        version = version + 1
    FROM k WHERE pending_executions.id = k.id RETURNING pending_executions.id AS id
    """,
    id="text",
    version="integer",
)


def stuck_claims(conn: Connection, *, before: datetime, most: int) -> list[DueClaim]:
    """Give rows that were claimed before `before` and have come to nothing: their sweep died."""
    rows = FIND_STUCK.run(conn, {"before": write_instant(before), "most": most})
    return [DueClaim(row.id, row.version) for row in rows]


def return_stuck(
    conn: Connection, stuck: Sequence[DueClaim], *, before: datetime, now: datetime
) -> frozenset[str]:
    """Move rows whose sweep died back from processing to pending; give the ids of those that moved."""
    check_pending_move(PendingStatus.PROCESSING, PendingStatus.PENDING)
    return put_ids(conn, RETURN_STUCK, _claims(stuck), before=write_instant(before), now=write_instant(now))


FIND_EXECUTIONS: Final = sql(
    f"SELECT {COLUMNS} FROM pending_executions r JOIN {{rows}} ON r.id = x.id", id="text"
)


def find_executions(conn: Connection, ids: Iterable[str]) -> dict[str, PendingRow]:
    """Give rows by id, unlocked; what was deleted is left out."""
    rows = FIND_EXECUTIONS.run_set(conn, ({"id": each} for each in ids))
    return {row.id: pending_row(row) for row in rows}


CORRECT: Final = sql(
    """
    WITH k AS MATERIALIZED (
        SELECT r.id, x.skip_reason FROM pending_executions r JOIN {rows} ON r.id = x.id
        WHERE r.run_id = x.run_id AND (r.status || '') = 'executed' ORDER BY r.id {lock})
    UPDATE pending_executions SET status = 'skipped', skip_reason = k.skip_reason, updated_at = :now,
        ended_at = COALESCE(ended_at, :now), version = version + 1
    FROM k WHERE pending_executions.id = k.id RETURNING pending_executions.id AS id
    """,
    id="text",
    run_id="text",
    skip_reason="text",
)


@dataclass(frozen=True, slots=True)
class Correction:
    """What a run found out right before its first action: its row was not to be executed after all."""

    id: str
    run_id: str
    reason: PendingSkip


def correct_executed(conn: Connection, corrections: Iterable[Correction], *, now: datetime) -> frozenset[str]:
    """Move rows from executed to skipped and end them, as their own runs say; give the ids that moved.

    A row that has another run, or was deleted, stays as it is. A second call finds nothing.
    """
    check_pending_move(PendingStatus.EXECUTED, PendingStatus.SKIPPED)
    rows = ({"id": each.id, "run_id": each.run_id, "skip_reason": each.reason} for each in corrections)
    return put_ids(conn, CORRECT, rows, now=write_instant(now))


def _claims(claims: Iterable[DueClaim]) -> Iterable[dict[str, object]]:
    return ({"id": each.id, "version": each.version} for each in claims)
