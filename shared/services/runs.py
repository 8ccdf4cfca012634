"""What a person does to runs: start by hand, replay, cancel. The row is committed first, then it is woken."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.automations import AutomationRow
from shared.db.endings import tell_of_ends
from shared.db.history import RunLog, insert_logs
from shared.db.outbox import OutboxEntry
from shared.db.persons_moves import (
    CANCELLED,
    WokenRun,
    cancel_run,
    forget_actions,
    replay_runs,
    stop_run,
)
from shared.db.reads import RunSummary, find_run_rows
from shared.db.runs_new import count_waiting, insert_runs
from shared.errors import ConfigError, Conflict, NotFound
from shared.ids import new_id
from shared.model.eventless import Start, make_run
from shared.model.events import Event, EventDraft, encode_fields
from shared.model.json_limits import clean_tree, read_object
from shared.model.moves import RunStatus
from shared.model.runs import LogLine, NewRun, RunSource, queue_for
from shared.model.statuses import AutomationStatus
from shared.model.triggers import TriggerType
from shared.services import idle_ends
from shared.services.auditing import Deed, write_deed, write_deeds
from shared.services.backends import Backends, Caller
from shared.services.cancelling import Stop, note_stops
from shared.services.emitting import try_to_send
from shared.services.idle_ends import end_steps
from shared.services.references import check_workspace, lock_automation
from shared.services.waking import redis_ms, wake

MANUAL_EVENT: Final = "manual"
REPLAYABLE: Final = frozenset({RunStatus.FAILED, RunStatus.DEAD_LETTER})
GOING_ON: Final = frozenset({RunStatus.PENDING, RunStatus.RUNNING})


class ReplayFrom(StrEnum):
    """Where a replayed run begins: at the action that failed, or with all of them once more."""

    FAILED_ACTION = "failed_action"
    START = "start"


class Insistence(StrEnum):
    """Whether a run that is already going is asked to stop."""

    GENTLE = "gentle"
    FORCE = "force"


class Cancelled(StrEnum):
    """How a run was cancelled: it had not begun, or it ends before its next action."""

    AT_ONCE = "at_once"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Replays:
    """What became of runs that were to be replayed, by id. `going_on`: somebody was faster."""

    replayed: tuple[str, ...]
    going_on: tuple[str, ...]


def check_filters(status: RunStatus | None, fingerprint: str | None) -> None:
    """Raise ConfigError for filters that exclude each other: only dead letters are in groups."""
    if fingerprint is not None and status not in (None, RunStatus.DEAD_LETTER):
        raise ConfigError(
            f"goes with the status {RunStatus.DEAD_LETTER} alone; what is {status} is in no group"
        )


def start_by_hand(backends: Backends, caller: Caller, reference: str, payload: Mapping[str, Any]) -> str:
    """Start a run of an automation (key or id) with `payload` as its event; give the run's id.

    Raises NotFound, Conflict unless the automation is ACTIVE, BadEvent for a payload that no event can carry.
    Each call makes a run.
    """
    now = backends.clock.now()
    fields = encode_fields(EventDraft(MANUAL_EVENT, caller.workspace_id, payload))
    read_object("payload", fields["payload"].encode())
    event = _event_of(caller, f"{redis_ms(backends)}-0", payload, now)

    def work(conn: Connection) -> NewRun:
        row = lock_automation(conn, caller.workspace_id, reference)
        if row.status is not AutomationStatus.ACTIVE:
            fix = f"activate it first: knockon automations activate {row.key}"
            raise Conflict(f"{row.key} is {row.status}; only one that is ACTIVE is run", fix=fix)
        waiting = count_waiting(conn, [caller.workspace_id])[caller.workspace_id]
        start = _by_hand(row)
        run = make_run(start.source_id, start, event, queue_for(waiting), now)
        insert_runs(conn, [run])
        more = {"automation_id": row.id}
        write_deed(conn, caller, Deed("run.started_by_hand", run.id, None, RunStatus.PENDING, more), now)
        return run

    run = backends.database.transact(work)
    wake(backends, [WokenRun(run.id, run.automation_id, run.queue)], now)
    return run.id


def replay(backends: Backends, caller: Caller, run_ids: Sequence[str], start: ReplayFrom) -> Replays:
    """Put FAILED and DEAD_LETTER runs back to PENDING; a second call finds them going on and changes nothing.

    Raises NotFound for an unknown run, Conflict for one that SUCCEEDED or was CANCELLED, or whose automation
    was deleted; then none is replayed.
    """
    now = backends.clock.now()
    wanted = list(dict.fromkeys(run_ids))

    def work(conn: Connection) -> list[WokenRun]:
        rows = _must_find(conn, caller, wanted)
        _check_replayable(rows)
        woken = replay_runs(conn, [row.id for row in rows], now=now)
        moved = {run.id for run in woken}
        if start is ReplayFrom.START:
            forget_actions(conn, moved)
        replayed = [row for row in rows if row.id in moved]
        _note_replays(conn, caller, replayed, (start, now))
        return woken

    woken = backends.database.transact(work)
    wake(backends, woken, now)
    replayed = tuple(run.id for run in woken)
    return Replays(replayed, tuple(run_id for run_id in wanted if run_id not in replayed))


def cancel(backends: Backends, caller: Caller, run_id: str, insistence: Insistence) -> Cancelled:
    """Cancel a run that has not begun; with FORCE, one that runs stops before its next action.

    Raises NotFound, and Conflict for a run that has ended, or runs and is not forced. A second call of a stop
    that is under way says STOPPING again.
    """
    now = backends.clock.now()

    def work(conn: Connection) -> tuple[Cancelled, Sequence[OutboxEntry]]:
        (row,) = _must_find(conn, caller, [run_id])
        ended = cancel_run(conn, row.id, now=now)
        if ended is not None:
            end_steps(conn, [row.id], idle_ends.CANCELLED, now)
            note_stops(conn, caller, [(row.id, row.automation_id)], (Stop.CANCELLED, CANCELLED), now)
            return Cancelled.AT_ONCE, tell_of_ends(conn, [ended], now=now)
        if row.status is not RunStatus.RUNNING:
            raise Conflict(f"the run is {row.status}; only one that waits can be cancelled")
        if insistence is not Insistence.FORCE:
            raise Conflict(
                "the run is RUNNING; with force it stops before its next action, unless it is in its last",
                fix="give --force",
            )
        if stop_run(conn, row.id, CANCELLED):
            note_stops(conn, caller, [(row.id, row.automation_id)], (Stop.ASKED, CANCELLED), now)
        return Cancelled.STOPPING, ()

    how, events = backends.database.transact(work)
    try_to_send(backends, events)
    return how


def _event_of(caller: Caller, entry_id: str, payload: Mapping[str, Any], now: datetime) -> Event:
    cleaned = clean_tree(payload)
    return Event(
        entry_id=entry_id,
        type=MANUAL_EVENT,
        workspace_id=caller.workspace_id,
        payload=cleaned,
        id=None,
        occurred_at=now,
        context=None,
        source=caller.actor,
        sanitized=cleaned != payload,
    )


def _by_hand(row: AutomationRow) -> Start:
    return Start(row.id, row.version, TriggerType.MANUAL, RunSource.MANUAL, new_id())


def _must_find(conn: Connection, caller: Caller, run_ids: Sequence[str]) -> list[RunSummary]:
    found = find_run_rows(conn, caller.workspace_id, run_ids)
    missing = [run_id for run_id in run_ids if run_id not in found]
    if missing:
        check_workspace(conn, caller.workspace_id)
        raise NotFound(f"there is no run {missing[0]!r} in workspace {caller.workspace_id!r}")
    return [found[run_id] for run_id in run_ids]


def _check_replayable(rows: Sequence[RunSummary]) -> None:
    for row in rows:
        if row.status not in REPLAYABLE | GOING_ON:
            raise Conflict(f"run {row.id} is {row.status}; only FAILED and DEAD_LETTER runs can be replayed")
        if row.automation_deleted_at is not None:
            raise Conflict(f"run {row.id} cannot be replayed: automation {row.automation_key} was deleted")


def _note_replays(
    conn: Connection, caller: Caller, rows: Sequence[RunSummary], how: tuple[ReplayFrom, datetime]
) -> None:
    start, now = how
    line = LogLine("info", "run replayed", now, {"by": caller.actor, "from": start})
    insert_logs(conn, [RunLog(row.workspace_id, row.automation_id, row.id, line) for row in rows])
    more = {"from": start}
    deeds = [Deed("run.replayed", row.id, row.status, RunStatus.PENDING, more) for row in rows]
    write_deeds(conn, caller, deeds, now)
