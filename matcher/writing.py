"""A set of events becomes rows: one transaction, locks in the order that every room keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from matcher.arming import Looking, arm
from matcher.concerns import Concern, messages_of
from matcher.idling import Idled, Talks, keep_idle
from matcher.performing import Armed
from shared.db.messages import insert_messages
from shared.db.rescue import touch_waiting
from shared.db.runs_new import find_runs, insert_runs
from shared.db.subjects import SubjectChange, project_changes
from shared.faults import FaultPoint, passed
from shared.model.messages import Message
from shared.model.moves import RunStatus
from shared.model.runs import ExistingRun, NewRun, QueueKind, RunSource

Handles = Mapping[QueueKind, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be written. `doubted` are the source ids that Redis says had a run before.

    `concerns` has what delayed automations may wait for, by the place of its change.
    """

    changes: Sequence[SubjectChange]
    runs: Sequence[NewRun]
    doubted: frozenset[str]
    messages: Sequence[Message] = ()
    concerns: Mapping[int, Concern] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """What is in the rows now: the ids of the new runs, and by source id the runs that were there before."""

    new: frozenset[str]
    before: Mapping[str, ExistingRun]
    armed: Armed = field(default_factory=Armed)
    idled: Idled = field(default_factory=Idled)


def write_draft(conn: Connection, draft: Draft, now: datetime) -> Written:
    """Lay the events into their subjects and messages, arm what waits, and insert the runs.

    The second time, all of it is there before.
    """
    armed, idled = _project(conn, draft, now)
    before = _find(conn, draft.doubted)
    wanted = {run.source_id: run for run in reversed(draft.runs) if run.source_id not in before}
    new = insert_runs(conn, list(wanted.values()))
    before |= _find(conn, [run.source_id for run in wanted.values() if run.id not in new])
    passed(FaultPoint.MATCH_BEFORE_COMMIT)
    return Written(new, before, armed, idled)


def _project(conn: Connection, draft: Draft, now: datetime) -> tuple[Armed, Idled]:
    """Write subjects and messages, and what that means to delayed automations and to idle sequences.

    A conversation's later messages are left to arming, for which each counts only when its turn has come.
    """
    looking, talks = Looking(draft.concerns, now), Talks(draft.changes, draft.messages)
    project_changes(conn, draft.changes, now=now, then=lambda at, row: looking.look(at, talks.look(at, row)))
    fresh = talks.fresh(conn)
    waves = looking.waves()
    later = set(messages_of(waves[1:]))
    new = insert_messages(conn, (message for message in draft.messages if message not in later))
    armed = arm(conn, waves, new, now)
    return armed, keep_idle(conn, talks, fresh, now)


def touch_unclaimed(conn: Connection, runs: Sequence[ExistingRun], now: datetime) -> Handles:
    """Note a new handle for those of the runs that nobody has claimed yet; give them by their queue.

    It is a transaction of its own, since it locks existing runs, which come first in the order of locks.
    """
    waiting = [run for run in runs if run.status == RunStatus.PENDING and run.lease == 0]
    return {
        kind: touch_waiting(conn, sorted(run.id for run in waiting if run.queue is kind), kind, now=now)
        for kind in {run.queue for run in waiting}
    }


def _find(conn: Connection, source_ids: Sequence[str] | frozenset[str]) -> dict[str, ExistingRun]:
    if not source_ids:
        return {}
    return {run.source_id: run for run in find_runs(conn, RunSource.EVENT, source_ids)}
