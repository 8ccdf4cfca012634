"""Idle steps that are due: chosen fairly, claimed, handed to their runs (docs/idle-sequences.md, "Firing").

What pending executions and idle steps have in common is said once, of the former. A claimed step has no run
yet; one that has is settled by it alone.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.idle_rows import IDLE_COLUMNS, idle_step_row
from shared.db.pending_due import (
    CLAIM,
    DUE_OF_FEW,
    DUE_OF_MANY,
    FEW,
    FIND_STUCK,
    RETURN_STUCK,
    DueClaim,
)
from shared.db.sheet import put, put_ids
from shared.db.sql import Sql, sql
from shared.db.types import write_instant
from shared.model.idle_steps import IdleStatus, IdleStepRow, check_idle_move


def _of_idle(statement: Sql) -> Sql:
    return statement.about("pending_executions", "idle_steps")


IDLE_DUE_OF_FEW: Final = _of_idle(DUE_OF_FEW)
IDLE_DUE_OF_MANY: Final = _of_idle(DUE_OF_MANY)


def due_steps(conn: Connection, *, now: datetime, most: int, few: int = FEW) -> list[DueClaim]:
    """Choose steps that are due, as `due_rows` does pending executions."""
    values = {"now": write_instant(now), "most": most}
    rows = IDLE_DUE_OF_FEW.run(conn, {**values, "few": few}).all()
    if rows and rows[0].looked_at == few:
        rows = IDLE_DUE_OF_MANY.run(conn, {**values, "each": most}).all()
    return [DueClaim(row.id, row.version) for row in rows]


CLAIM_STEPS: Final = _of_idle(CLAIM)


def claim_steps(conn: Connection, seen: Sequence[DueClaim], *, now: datetime) -> list[DueClaim]:
    """Move steps from pending to processing; give those that are ours now, in the order asked for.

    Left out is what another sweep has, or was changed since it was seen. A second call finds nothing.
    """
    check_idle_move(IdleStatus.PENDING, IdleStatus.PROCESSING)
    rows = put(conn, CLAIM_STEPS, _claims(seen), now=write_instant(now))
    versions = {row.id: row.version for row in rows}
    return [DueClaim(each.id, versions[each.id]) for each in seen if each.id in versions]


LOCK_CLAIMED_STEPS: Final = sql(
    f"""
    SELECT {IDLE_COLUMNS} FROM idle_steps r JOIN {{rows}} ON r.id = x.id
    WHERE r.version = x.version AND (r.status || '') = 'processing' ORDER BY r.id {{lock}}
    """,
    id="text",
    version="integer",
)


def lock_claimed_steps(conn: Connection, claims: Iterable[DueClaim]) -> list[IdleStepRow]:
    """Lock the steps whose claim still stands; the others were ended or given back meanwhile."""
    return [idle_step_row(row) for row in put(conn, LOCK_CLAIMED_STEPS, _claims(claims))]


HAND_OVER: Final = sql(
    """
    UPDATE idle_steps SET run_id = x.run_id, updated_at = :now, version = idle_steps.version + 1
    FROM {rows} WHERE idle_steps.id = x.id AND idle_steps.version = x.version
        AND (idle_steps.status || '') = 'processing'
    RETURNING idle_steps.id AS id
    """,
    id="text",
    version="integer",
    run_id="text",
)


def hand_over(conn: Connection, rows: Iterable[tuple[IdleStepRow, str]], *, now: datetime) -> frozenset[str]:
    """Give claimed steps, locked here, to their runs, which settle them; give the ids."""
    given = ({"id": row.id, "version": row.version, "run_id": run_id} for row, run_id in rows)
    return put_ids(conn, HAND_OVER, given, now=write_instant(now))


STUCK_STEPS: Final = _of_idle(FIND_STUCK)
RETURN_STUCK_STEPS: Final = _of_idle(RETURN_STUCK)


def stuck_steps(conn: Connection, *, before: datetime, most: int) -> list[DueClaim]:
    """Give steps that were claimed before `before` and have no run: their sweep died."""
    rows = STUCK_STEPS.run(conn, {"before": write_instant(before), "most": most})
    return [DueClaim(row.id, row.version) for row in rows]


def return_steps(
    conn: Connection, stuck: Sequence[DueClaim], *, before: datetime, now: datetime
) -> frozenset[str]:
    """Move steps whose sweep died back from processing to pending; give the ids of those that moved."""
    check_idle_move(IdleStatus.PROCESSING, IdleStatus.PENDING)
    values = {"before": write_instant(before), "now": write_instant(now)}
    return put_ids(conn, RETURN_STUCK_STEPS, _claims(stuck), **values)


def _claims(claims: Iterable[DueClaim]) -> Iterable[dict[str, object]]:
    return ({"id": each.id, "version": each.version} for each in claims)
