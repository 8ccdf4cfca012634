"""The runs of idle steps that fire. They are of no automation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from shared.db.persons_moves import WokenRun
from shared.db.runs_new import count_waiting, find_runs, insert_runs
from shared.ids import new_id
from shared.model.events import Event, event_to_json
from shared.model.idle_events import IDLE_TRIGGER, idle_step_of
from shared.model.idle_steps import IdleStepRow
from shared.model.idle_titles import idle_title
from shared.model.runs import NewRun, QueueKind, RunSource, queue_for
from shared.model.sizes import split_for_show
from shared.services.idling import CONVERSATION


@dataclass(frozen=True, slots=True)
class Made:
    """Each step with its run, and those of the runs that have yet to be woken."""

    by_row: Sequence[tuple[IdleStepRow, str]]
    woken: Sequence[WokenRun]


def make_runs(conn: Connection, firing: Sequence[tuple[IdleStepRow, Event]], now: datetime) -> Made:
    """Insert a run for each step, whose claim this transaction holds locked; one that is there stays."""
    if not firing:
        return Made((), ())
    waiting = Counter(count_waiting(conn, {row.workspace_id for row, _ in firing}))
    runs: list[NewRun] = []
    for row, event in firing:
        waiting[row.workspace_id] += 1
        runs.append(make_run(row, event, queue_for(waiting[row.workspace_id] - 1), now))
    new = insert_runs(conn, runs)
    taken = [run.source_id for run in runs if run.id not in new]
    found = find_runs(conn, RunSource.IDLE_STEP, taken) if taken else []
    earlier = {each.source_id: each.id for each in found}
    by_row = [(row, earlier.get(row.id, run.id)) for (row, _), run in zip(firing, runs, strict=True)]
    return Made(by_row, [WokenRun(run.id, None, run.queue) for run in runs if run.id in new])


def make_run(row: IdleStepRow, event: Event, queue: QueueKind, now: datetime) -> NewRun:
    """Make the run of a step: about the event of its fire, at the beginning of a chain."""
    run_id = new_id()
    shown, whole = split_for_show(event_to_json(event))
    return NewRun(
        id=run_id,
        workspace_id=row.workspace_id,
        automation_id=None,
        automation_version=0,
        source=RunSource.IDLE_STEP,
        source_id=row.id,
        event_key=None,
        event_hash=None,
        entry_id=None,
        trigger_type=IDLE_TRIGGER,
        subject_type=CONVERSATION,
        subject_id=row.conversation_id,
        depth=0,
        root_run_id=run_id,
        input=shown,
        event=whole,
        queue=queue,
        created_at=now,
        title=idle_title(idle_step_of(event)),
    )
