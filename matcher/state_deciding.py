"""What an event means for a delayed automation that waits for a state of its subject (docs/delayed.md). Pure.

An episode is open if the conditions hold, and an event that names the automation came since they do. Both are
told by what is known of the subject, in whatever order it came to be known.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from matcher.concerns import Projected
from matcher.deeds import Arm, Close, Deed, Rekey
from matcher.delayed import Delayed
from shared.db.pending import Stand
from shared.model.events import Event
from shared.model.naming import was_named
from shared.model.pending import PendingSkip
from shared.model.stamps import Stamp
from shared.model.statuses import AutomationStatus
from shared.model.subjects import SubjectRef, SubjectRow
from shared.rules.episodes import Start, state_episode

NEVER: Final[Stamp] = (-1, -1)


@dataclass(frozen=True, slots=True)
class StateCase:
    """An event after its change, one automation, and its open row, if it has one.

    `armed_by` is the event that the row waits with, told where the conditions read it.
    """

    at: Projected
    delayed: Delayed
    stand: Stand | None
    armed_by: Event | None
    now: datetime

    @property
    def event(self) -> Event:
        """The event."""
        return self.at.concern.event

    @property
    def row(self) -> SubjectRow:
        """The subject."""
        return self.at.row

    @property
    def is_named(self) -> bool:
        """Tell whether the event names the automation, and no message that it is about."""
        return self.at.concern.message is None and self.delayed.id in self.at.named


def decide_state(case: StateCase) -> list[Deed]:
    """Say what is to become of the automation's episode."""
    stand = case.stand
    if case.row.deleted is not None:
        return [] if stand is None else [Close(stand, PendingSkip.SUBJECT_GONE)]
    if not case.delayed.standing.reads_subject(case.row.type):
        return _decide_newest(case)
    if stand is None:
        return _arm(case, _start(case, case.event)) if _may_be_armed(case) else []
    start = _start(case, case.armed_by or case.event)
    if start is None:
        closed: Deed = Close(stand, PendingSkip.CONDITIONS_CHANGED)
        return [closed, *(_arm(case, _start(case, case.event)) if case.armed_by else [])]
    if start.is_that_of(stand.episode.anchor_stamp):
        return []
    if not stand.is_waiting and start.stamp < stand.episode.anchor_stamp:
        return [Rekey(stand, state_episode(start.stamp))]
    return [Close(stand, PendingSkip.EPISODE_MOVED), *_arm(case, start)]


def _decide_newest(case: StateCase) -> list[Deed]:
    """Conditions that read nothing of the subject hold from the newest event on that names and meets them.

    What was told of an earlier life of the subject is over with it.
    """
    stand, born_after = case.stand, case.row.born_after or NEVER
    gone: list[Deed] = []
    if stand is not None and stand.episode.anchor_stamp <= born_after:
        gone, stand = [Close(stand, PendingSkip.SUBJECT_GONE)], None
    start = _start(case, case.event) if case.is_named else None
    stamp = _stamp(case)
    if start is None or stamp <= born_after:
        return gone
    if stand is None:
        return [*gone, _armed(case, stamp)]
    if stamp <= stand.episode.anchor_stamp:
        return []
    return [Close(stand, PendingSkip.EPISODE_MOVED), _armed(case, stamp)]


def _start(case: StateCase, event: Event) -> Start | None:
    return case.delayed.standing.start(event, case.row, case.now)


def _arm(case: StateCase, start: Start | None) -> list[Deed]:
    if start is None or not _has_begun(case, start.stamp):
        return []
    return [_armed(case, start.stamp)]


def _armed(case: StateCase, stamp: Stamp) -> Deed:
    """Arm the episode that began at `stamp`, with no event from before it where the row has another."""
    subject = SubjectRef(case.row.type, case.row.id)
    instead_of = None if case.is_named and _stamp(case) >= stamp else case.stand
    event = None if instead_of else case.event
    return Arm(case.delayed, subject, state_episode(stamp), event, instead_of)


def _may_be_armed(case: StateCase) -> bool:
    return case.is_named or _was_named(case, (0, 0))


def _has_begun(case: StateCase, start: Stamp) -> bool:
    """Tell whether an event named the automation since `start`."""
    if case.is_named and _stamp(case) >= start:
        return True
    stand = case.stand
    if stand is not None and stand.is_waiting and start <= stand.episode.anchor_stamp:
        return True
    return _was_named(case, start)


def _was_named(case: StateCase, since: Stamp) -> bool:
    """Tell whether the subject remembers an event that named the automation as it is active now."""
    automation = case.delayed.automation
    if automation.definition.status is not AutomationStatus.ACTIVE or case.delayed.reads_event(case.row.type):
        return False
    return was_named(case.row, automation.id, max(since, (automation.activated_ms or 0, 0)))


def _stamp(case: StateCase) -> Stamp:
    """Give when the event was written; of one that was published twice the first time counts."""
    key = case.event.key
    known = (touch.stamp for touch in case.row.touches if touch.event_key == key)
    return next(known, case.event.write_stamp)
