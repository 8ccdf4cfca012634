"""Arming a delayed automation for subjects that are in its state already (docs/delayed.md, "Activation").

Subjects whose conditions hold are taken newest first, a batch in a transaction, so that matchers wait for a
moment only. What has an open episode is left alone; so a second call arms what a first one left over.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection

from shared.db.automations import AutomationRow
from shared.db.history import RunLog, insert_logs
from shared.db.pending import lock_episodes, lock_open
from shared.db.pending_beginnings import begin_episodes, episode_key
from shared.db.subjects import lock_subjects
from shared.db.subjects_newest import Mark, newest_subjects
from shared.errors import Conflict
from shared.logs import get_logger
from shared.model.automation import Automation
from shared.model.events import Event, event_to_json
from shared.model.pending import Episode, PendingRow
from shared.model.runs import LogLine
from shared.model.stamps import format_stamp
from shared.model.statuses import AutomationStatus
from shared.model.subject_events import SOURCE, payload_of
from shared.model.subjects import SubjectRef, SubjectRow
from shared.rules.arming import due_at, new_pending, state_type_of
from shared.rules.episodes import Standing, compile_standing, state_episode
from shared.rules.triggering import has_in_scope
from shared.services.auditing import Deed, write_deed
from shared.services.automations import Turned, activate
from shared.services.backends import Backends, Caller
from shared.services.pending import count_delayed
from shared.services.references import find_automation, lock_automation
from shared.services.verdicts import automation_of

BATCH: Final = 500
LOOKED_AT: Final = 10_000

log: Final = get_logger("pending")


@dataclass(frozen=True, slots=True)
class ArmedExisting:
    """How many subjects were looked at, and for how many of them something waits now.

    `is_whole` tells whether these were all that there are of the type.
    """

    looked_at: int
    armed: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _Batch:
    armed: int
    looked_at: int
    after: Mark | None


@dataclass(frozen=True, slots=True)
class _Held:
    """A subject in which the conditions hold: since when, and the event that would have told of it."""

    subject: SubjectRow
    event: Event
    episode: Episode


def _check_may_arm(row: AutomationRow) -> None:
    """Raise Conflict unless subjects in a state are what the automation waits for."""
    if automation_of(row).definition.execution_delay is None:
        raise Conflict(f"{row.key} runs at once; only one with an execution_delay arms what exists")
    if state_type_of(automation_of(row).definition.trigger) is None:
        raise Conflict(f"{row.key} waits for messages, or for no one type of subject; nothing to arm exists")


def activate_and_arm(backends: Backends, caller: Caller, reference: str) -> tuple[Turned, ArmedExisting]:
    """Make an automation ACTIVE, and arm it for subjects in which its conditions hold already.

    One that is ACTIVE arms, too. Raises NotFound, and Conflict for one that waits for no state; then nothing
    is done. Conflict also if it is turned off or edited meanwhile.
    """
    with backends.database.read() as conn:
        _check_may_arm(find_automation(conn, caller.workspace_id, reference))
    turned = activate(backends, caller, reference)
    return turned, _arm_existing(backends, caller, turned.row)


def _arm_existing(backends: Backends, caller: Caller, row: AutomationRow) -> ArmedExisting:
    looked_at, armed, mark = 0, 0, None
    while looked_at < LOOKED_AT:
        batch = backends.database.transact(partial(_arm_batch, backends=backends, row=row, before=mark))
        looked_at, armed, mark = looked_at + batch.looked_at, armed + batch.armed, batch.after
        if mark is None:
            break
    found = ArmedExisting(looked_at, armed, is_whole=mark is None)
    backends.database.transact(partial(_tell, caller=caller, row=row, found=(found, backends.clock.now())))
    count_delayed(backends, "armed", armed)
    log.info("existing_armed", automation_id=row.id, looked_at=looked_at, armed=armed)
    return found


def _arm_batch(conn: Connection, backends: Backends, row: AutomationRow, before: Mark | None) -> _Batch:
    """Arm the next subjects; the clock is read anew, as an earlier try may have waited."""
    now = backends.clock.now()
    automation = automation_of(_unchanged(conn, row))
    type_ = state_type_of(automation.definition.trigger) or ""
    keys, after = newest_subjects(conn, row.workspace_id, type_, before, most=BATCH)
    held = list(_held(automation, lock_subjects(conn, keys).values(), now))
    return _Batch(_arm(conn, automation, held, now), len(keys), after)


def _unchanged(conn: Connection, row: AutomationRow) -> AutomationRow:
    """Lock the automation, so that it can be deleted only before or after. Raises Conflict."""
    found = lock_automation(conn, row.workspace_id, row.id)
    if found.status is not AutomationStatus.ACTIVE:
        raise Conflict(f"{row.key} is {found.status}; activate it first")
    if found.version != row.version:
        raise Conflict(f"{row.key} was edited meanwhile; activate it once more")
    return found


def _held(automation: Automation, subjects: Iterable[SubjectRow], now: datetime) -> Iterator[_Held]:
    standing: Standing = compile_standing(automation.definition.conditions)
    for subject in subjects:
        if not has_in_scope(automation, subject.database_id):
            continue
        event = _event_of(subject, now)
        start = standing.start(event, subject, now)
        if start is not None:
            yield _Held(subject, event, state_episode(start.stamp))


def _event_of(subject: SubjectRow, now: datetime) -> Event:
    """Tell of a subject as it is, at its last write; so the same state is the same episode once more."""
    return Event(
        entry_id=format_stamp(subject.newest),
        type=f"{subject.type}.updated",
        workspace_id=subject.workspace_id,
        payload=payload_of(subject),
        id=None,
        occurred_at=now,
        context=None,
        source=SOURCE,
        sanitized=False,
    )


def _arm(conn: Connection, automation: Automation, held: Iterable[_Held], now: datetime) -> int:
    """Let rows wait where none stands for an open episode; give how many wait."""
    found = {(automation.id, each.subject.type, each.subject.id): each for each in held}
    for stand in lock_open(conn, found):
        found.pop((stand.automation_id, stand.subject_type, stand.subject_id), None)
    wanted = [_row(automation, each, now) for each in found.values()]
    begun = begin_episodes(conn, wanted, lock_episodes(conn, map(episode_key, wanted)), now=now)
    return len(begun.new) + len(begun.revived)


def _row(automation: Automation, held: _Held, now: datetime) -> PendingRow:
    subject = SubjectRef(held.subject.type, held.subject.id)
    row = new_pending(automation, subject, held.episode, event_to_json(held.event), now)
    return replace(row, due_at=_due(automation, held, now))


def _due(automation: Automation, held: _Held, now: datetime) -> datetime:
    """Say when it fires: what has been so for longer than the delay fires now, not in the past."""
    return max(due_at(automation, held.episode.started_at), now)


def _tell(
    conn: Connection, caller: Caller, row: AutomationRow, found: tuple[ArmedExisting, datetime]
) -> None:
    done, now = found
    counts: Mapping[str, int] = {"looked_at": done.looked_at, "armed": done.armed}
    line = LogLine("info", "existing subjects armed", now, {"by": caller.actor, **counts})
    insert_logs(conn, [RunLog(row.workspace_id, row.id, None, line)])
    write_deed(conn, caller, Deed("automation.armed", row.id, None, counts), now)
