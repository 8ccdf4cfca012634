"""What recorded events would have made of an automation that waits (docs/automations.md, "Backtest"). Pure.

Events are told in the order of the stream. What comes due between two events of a subject fires then, by what
was known of the subject then; what is known is what these events have told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from shared.model.automation import Automation
from shared.model.events import Event
from shared.model.messages import MESSAGE_CREATED, Message, message_of, message_payload
from shared.model.pending import Anchor, Episode
from shared.model.subjects import SubjectRef, SubjectRow, merge, project, subject_of
from shared.rules.arming import due_at
from shared.rules.episodes import compile_standing, state_episode
from shared.rules.talk import Talk, message_episode, resolved_at
from shared.rules.talking import Talking
from shared.rules.triggering import covers
from shared.time.clock import from_epoch_ms


@dataclass(frozen=True, slots=True)
class Episodes:
    """What became of the episodes: `ended` before they were due, `fired`, or `waiting` still."""

    armed: int
    fired: int
    ended: int
    waiting: int


@dataclass(frozen=True, slots=True)
class _Wait:
    """An episode that goes on; one that has fired keeps its place, so that it does not fire twice."""

    episode: Episode
    event: Event
    due_at: datetime
    message: Mapping[str, Any] | None = None
    is_spent: bool = False


@dataclass(slots=True)
class _Known:
    """What is known of one subject, and what waits for it."""

    row: SubjectRow
    talking: Talking = field(default_factory=Talking)
    state: _Wait | None = None
    talk: _Wait | None = None


class Waiting:
    """All that one automation waits for while events are told."""

    def __init__(self, automation: Automation) -> None:
        """Wait for nothing."""
        self._automation = automation
        self._standing = compile_standing(automation.definition.conditions)
        self._hears = covers(automation.definition.trigger, MESSAGE_CREATED)
        self._known: dict[SubjectRef, _Known] = {}
        self._armed = self._fired = self._ended = 0

    def learn(self, event: Event) -> SubjectRow | None:
        """Let time pass until an event, and take in what it tells of its subject; give the subject."""
        ref, change = subject_of(event), project(event)
        if ref is None or change is None:
            return None
        known = self._known.get(ref)
        if known is None:
            known = self._known[ref] = _Known(merge(None, change))
        else:
            self._let_pass(known, from_epoch_ms(event.stamp[0]))
            known.row = merge(known.row, change)
        known.talking.hear(message_of(event), resolved_at(known.row))
        return known.row

    def talk(self, event: Event) -> Talk | None:
        """Say how the conversation stands around an event's message, after it was learned."""
        ref = subject_of(event)
        known = None if ref is None else self._known.get(ref)
        return None if known is None or not self._hears else known.talking.around()

    def judge(self, event: Event, named: object) -> bool:
        """Arm, move and end what an event, which was learned, says; tell whether it armed an episode.

        `named`: it passes every check.
        """
        armed = self._armed
        self._judge(event, named)
        return self._armed > armed

    def _judge(self, event: Event, named: object) -> None:
        ref = subject_of(event)
        known = None if ref is None else self._known.get(ref)
        if known is None:
            return
        message = message_of(event) if self._hears else None
        known.talk = self._answered(known)
        if message is None:
            known.state = self._state_after(known, event, named)
        elif named and self._standing.hears(message):
            known.talk = self._talk_after(known, event, message)

    def end(self, at: datetime) -> Episodes:
        """Let time pass until an instant, and say what became of all of it."""
        waiting = 0
        for known in self._known.values():
            self._let_pass(known, at)
            waiting += sum(wait is not None and not wait.is_spent for wait in (known.state, known.talk))
        return Episodes(self._armed, self._fired, self._ended, waiting)

    def _let_pass(self, known: _Known, until: datetime) -> None:
        known.state = self._fire(known, known.state, until)
        known.talk = self._fire(known, known.talk, until)

    def _fire(self, known: _Known, wait: _Wait | None, until: datetime) -> _Wait | None:
        """Fire what is due by then, if it is so still; relative times are asked anew."""
        if wait is None or wait.is_spent or wait.due_at > until:
            return wait
        if not self._standing.holds(wait.event, known.row, wait.message, wait.due_at):
            return self._close(wait)
        self._fired += 1
        return replace(wait, is_spent=True)

    def _close(self, wait: _Wait | None) -> _Wait | None:
        """End an episode, if there is one; give what waits then, which is nothing."""
        if wait is not None and not wait.is_spent:
            self._ended += 1
        return None

    def _arm(self, episode: Episode, event: Event, message: Message | None = None) -> _Wait:
        self._armed += 1
        told = None if message is None else message_payload(message)
        return _Wait(episode, event, due_at(self._automation, episode.started_at), told)

    def _state_after(self, known: _Known, event: Event, named: object) -> _Wait | None:
        wait, row = known.state, known.row
        if not self._standing.reads_subject(row.type) and not named and row.deleted is None:
            return wait
        start = self._standing.start(event, row, from_epoch_ms(event.stamp[0]))
        if start is None:
            return self._close(wait)
        episode = state_episode(start.stamp)
        if wait is None:
            return self._arm(episode, event) if named else None
        if start.is_that_of(wait.episode.anchor_stamp):
            return wait
        self._close(wait)
        return self._arm(episode, event)

    def _answered(self, known: _Known) -> _Wait | None:
        """End the episode of a message that has been answered since."""
        wait = known.talk
        if wait is None or known.row.deleted is not None:
            return self._close(wait)
        is_over = (
            known.talking.is_answered_since(wait.episode.anchor_stamp)
            if wait.episode.anchor is Anchor.AWAITING_AGENT
            else known.talking.has_come_since(wait.episode.anchor_stamp)
        )
        return self._close(wait) if is_over else wait

    def _talk_after(self, known: _Known, event: Event, message: Message) -> _Wait | None:
        episode = message_episode(message, known.talking.around())
        if episode is None:
            return known.talk
        wait = known.talk
        if wait is None:
            return self._arm(episode, event, message)
        if wait.episode.key != episode.key:
            self._close(wait)
            return self._arm(episode, event, message)
        if wait.is_spent:
            return wait
        due = due_at(self._automation, episode.started_at)
        return _Wait(episode, event, due, message_payload(message))
