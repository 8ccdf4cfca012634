"""When the conditions of a delayed automation hold for a subject, and since when (docs/delayed.md). Pure.

An episode is the continuous stretch in which all of them hold. When it began follows from the last writes of
the fields that they read, in whatever order these came to be known; a flip of a millisecond ends it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from shared.errors import DefinitionError
from shared.model.events import Event
from shared.model.messages import Message
from shared.model.pending import Anchor, Episode
from shared.model.stamps import Stamp, format_stamp
from shared.model.subjects import SubjectRow
from shared.rules.condition_checks import is_templated
from shared.rules.conditions import (
    LeafVerdict,
    Predicate,
    check_conditions,
    compile_blame,
    compile_conditions,
)
from shared.rules.scopes import gate_scope
from shared.rules.standing_scope import WHOLE, Reads, join_reads, reads_at, scope_in, standing_scope
from shared.rules.standing_tree import MARKS, ChangeLeaf, Node, lasting_leaves, mark_changes
from shared.rules.subject_past import past_of
from shared.time.clock import from_epoch_ms

_PRIVATE: Final = ("message", "private")


@dataclass(frozen=True, slots=True)
class Start:
    """Since which write conditions have held.

    `is_first_known`: they held already at the oldest state that is known, so it may have been before.
    """

    stamp: Stamp
    is_first_known: bool

    def is_that_of(self, known: Stamp) -> bool:
        """Tell whether this is the stretch that is known to have begun then."""
        return self.stamp == known or (self.is_first_known and known < self.stamp)


@dataclass(frozen=True, slots=True)
class Standing:
    """Conditions as a delayed automation asks them: when it arms, and again and again while it waits.

    Of a subject that is deleted they still speak as of one that is there, but no stretch goes on in it.
    """

    decide: Predicate
    weigh: Callable[[Mapping[str, object]], list[LeafVerdict]]
    changes: tuple[ChangeLeaf, ...]
    paths: tuple[tuple[str, ...], ...]
    reads_whole: bool
    reads_private: bool

    def reads_subject(self, subject_type: str) -> bool:
        """Tell whether they read anything that may change of a subject of this type."""
        return bool(self._reads(subject_type))

    def hears(self, message: Message) -> bool:
        """Tell whether they ask about such messages: what only colleagues see is for who asks for it."""
        return self.reads_private or not message.private

    def holds(
        self, event: Event, subject: SubjectRow, message: Mapping[str, Any] | None, now: datetime
    ) -> bool:
        """Tell whether they hold now; what the event changed no longer counts."""
        return self.decide(self._afterwards(standing_scope(event, subject, message, now)))

    def arms(self, event: Event, subject: SubjectRow, now: datetime) -> bool:
        """Tell whether they hold now, and the event changed what they ask it to have changed."""
        told = gate_scope(event, now) if self.changes else {}
        marks = [change.holds(told) for change in self.changes]
        return self.decide({**standing_scope(event, subject, None, now), MARKS: marks})

    def start(self, event: Event, subject: SubjectRow, now: datetime) -> Start | None:
        """Say since when they have held without a break; None if they do not, or nothing is there.

        Where they read nothing of the subject, it is since the event.
        """
        if subject.deleted is not None or not self.holds(event, subject, None, now):
            return None
        reads = self._reads(subject.type)
        if not reads:
            return Start(event.write_stamp, is_first_known=False)
        past = past_of(subject, reads.of(subject))
        since, _ = next(past.states)
        for stamp, state in past.states:
            if not self.decide(self._afterwards(scope_in(state, event, subject, now))):
                return Start(since, is_first_known=False)
            since = stamp
        return Start(since, is_first_known=not past.is_whole)

    def blame(
        self, event: Event, subject: SubjectRow, message: Mapping[str, Any] | None, now: datetime
    ) -> list[LeafVerdict]:
        """Name the leaves because of which they no longer hold; none if they do."""
        return self.weigh(self._afterwards(standing_scope(event, subject, message, now)))

    def _afterwards(self, scope: dict[str, Any]) -> dict[str, Any]:
        return {**scope, MARKS: [change.afterwards for change in self.changes]} if self.changes else scope

    def _reads(self, subject_type: str) -> Reads:
        if self.reads_whole:
            return WHOLE
        return join_reads(reads_at(path, subject_type) for path in self.paths)


def compile_standing(conditions: Mapping[str, object] | None) -> Standing:
    """Read the conditions of a delayed automation once; none always hold.

    Raises DefinitionError with every fault of the tree.
    """
    if faults := check_conditions(conditions):
        raise DefinitionError(faults)
    tree, changes = (None, ()) if conditions is None else mark_changes(conditions)
    leaves = () if conditions is None else lasting_leaves(conditions)
    paths = tuple(_steps(leaf) for leaf in leaves)
    return Standing(
        decide=compile_conditions(tree),
        weigh=compile_blame(tree),
        changes=changes,
        paths=paths,
        reads_whole=any(is_templated(leaf.get("value")) for leaf in leaves),
        reads_private=any(_own_steps(path) == _PRIVATE for path in paths),
    )


def state_episode(start: Stamp) -> Episode:
    """Name the stretch that began with a write of the subject."""
    return Episode(Anchor.STATE, f"{Anchor.STATE}:{format_stamp(start)}", from_epoch_ms(start[0]), start)


def _steps(leaf: Node) -> tuple[str, ...]:
    return tuple(str(leaf["field"]).split("."))


def _own_steps(path: tuple[str, ...]) -> tuple[str, ...]:
    return path[1:] if path[0] == "payload" else path
