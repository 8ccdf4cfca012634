"""The runs of rows that fire, and the rows of the episodes that began after those of others."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from shared.db.pending import insert_pending
from shared.db.persons_moves import WokenRun
from shared.db.reads import find_run_rows
from shared.db.runs_new import count_waiting, find_runs, insert_runs
from shared.ids import ID_LENGTH, new_id
from shared.model.events import event_from_json
from shared.model.pending import STOOD_DOWN, PendingRow, PendingStatus, source_id_again
from shared.model.runs import NewRun, QueueKind, RunSource, queue_for
from shared.model.sizes import split_for_show
from shared.model.stamps import Stamp, format_stamp
from shared.rules.episodes import state_episode
from shared.services.standing import Rule
from timers.delayed_deciding import Firing


@dataclass(frozen=True, slots=True)
class Made:
    """Each row with its run, and those of the runs that have yet to be woken."""

    by_row: Sequence[tuple[PendingRow, str]]
    woken: Sequence[WokenRun]


def make_runs(conn: Connection, firing: Sequence[Firing], now: datetime) -> Made:
    """Insert a run for each row, whose claim this transaction holds locked."""
    if not firing:
        return Made((), ())
    rows = [each.row for each in firing]
    waiting = Counter(count_waiting(conn, {row.workspace_id for row in rows}))
    runs: list[NewRun] = []
    for each in firing:
        waiting[each.row.workspace_id] += 1
        runs.append(make_run(each, queue_for(waiting[each.row.workspace_id] - 1), now))
    made = _insert(conn, runs)
    by_row = [(row, made[row.id].id) for row in rows]
    new = {run.id for run in runs}
    woken = [run for run in made.values() if run.id in new]
    return Made(by_row, woken)


def make_run(firing: Firing, queue: QueueKind, now: datetime) -> NewRun:
    """Make the run of a row: about the event that armed it, as deep in its chain as that."""
    row, definition = firing.row, firing.rule.row.definition
    event = event_from_json(row.trigger_event)
    run_id, context = new_id(), event.context
    shown, whole = split_for_show(dict(row.trigger_event))
    return NewRun(
        id=run_id,
        workspace_id=row.workspace_id,
        automation_id=row.automation_id,
        automation_version=firing.rule.row.version,
        source=RunSource.DELAYED,
        source_id=row.id,
        event_key=event.key,
        event_hash=event.hash,
        entry_id=event.entry_id,
        trigger_type=definition["trigger"]["type"],
        subject_type=row.subject_type,
        subject_id=row.subject_id,
        depth=event.depth,
        root_run_id=context.root_run_id if context and len(context.root_run_id) <= ID_LENGTH else run_id,
        input=shown,
        event=whole,
        queue=queue,
        created_at=now,
        seen=format_stamp(firing.seen),
    )


def _insert(conn: Connection, runs: Sequence[NewRun]) -> dict[str, WokenRun]:
    """Insert runs, give the run of each row by the row's id: the new one, or one that was there."""
    new = insert_runs(conn, runs)
    made = {run.source_id: _woken(run) for run in runs if run.id in new}
    taken = [run for run in runs if run.id not in new]
    return made | _of_taken(conn, taken) if taken else made


def _of_taken(conn: Connection, runs: Sequence[NewRun]) -> dict[str, WokenRun]:
    """Give rows that have a run already this one, or a second one where the first has stood down.

    Such a row waits anew, because its episode went on after all; no other way leads back from a run.
    """
    earlier = {run.source_id: run for run in find_runs(conn, RunSource.DELAYED, _source_ids(runs))}
    made: dict[str, WokenRun] = {}
    for run in runs:
        found = earlier[run.source_id]
        row = find_run_rows(conn, run.workspace_id, [found.id])[found.id]
        made[run.source_id] = WokenRun(found.id, run.automation_id, found.queue)
        if row.skip_reason in STOOD_DOWN:
            again = replace(run, source_id=source_id_again(run.source_id, run.id))
            insert_runs(conn, [again])
            made[run.source_id] = _woken(again)
    return made


def _source_ids(runs: Iterable[NewRun]) -> list[str]:
    return [run.source_id for run in runs]


def _woken(run: NewRun) -> WokenRun:
    return WokenRun(run.id, run.automation_id, run.queue)


def arm_anew(conn: Connection, moved: Iterable[tuple[PendingRow, Rule, Stamp]], now: datetime) -> None:
    """Let the automations of rows whose episode is over wait for the one that goes on now.

    An episode that has a row gets no second one.
    """
    rows: list[PendingRow] = []
    for row, rule, began in moved:
        episode = state_episode(began)
        due_at = rule.due_at(episode.started_at)
        if due_at is not None:
            rows.append(
                replace(
                    row,
                    id=new_id(),
                    episode=episode,
                    due_at=due_at,
                    status=PendingStatus.PENDING,
                    version=1,
                    armed_at=now,
                    claimed_at=None,
                    created_at=now,
                    updated_at=now,
                )
            )
    insert_pending(conn, rows)
