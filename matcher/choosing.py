"""Which runs a set of events is to start, whom it may arm, and what is counted of the others. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from matcher.delayed import Delayed
from matcher.index import Index
from matcher.match import Match, match
from matcher.tally import Tally
from shared.model.events import Event
from shared.model.subjects import subject_of
from shared.rules.guarding import is_own_event, is_too_deep
from shared.rules.triggering import FED_BY, Mismatch, named_by
from shared.time.clock import epoch_ms

LAST_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Events before `oldest`, and those that `depth_max` automations stand before, begin nothing."""

    oldest: datetime
    depth_max: int


@dataclass(slots=True)
class Chosen:
    """What a set of events begins.

    `named` has, by entry id, the delayed automations that may begin to wait; `homeless` those that cannot,
    since the event that names them is about no subject.
    """

    matches: list[Match] = field(default_factory=list)
    named: dict[str, frozenset[str]] = field(default_factory=dict)
    homeless: list[tuple[str, str]] = field(default_factory=list)


def choose(events: Sequence[Event], index: Index, tally: Tally, bounds: Bounds) -> Chosen:
    """Match events in their order, each to its automations by age.

    A paused automation, and one that came alive after the event, count as inactive.
    """
    oldest_ms = epoch_ms(bounds.oldest)
    chosen = Chosen()
    for event in events:
        if event.stamp[0] < oldest_ms:
            tally.skipped("expired")
            continue
        survey = index.survey(event)
        fitting = 0
        for automation in survey.candidates:
            match match(event, automation):
                case Match() as found:
                    chosen.matches.append(found)
                    fitting += 1
                case skip:
                    fitting += _count_idle(skip.reason, tally)
        if survey.delayed:
            fitting += _name(event, survey.delayed, chosen, tally, bounds.depth_max)
        tally.skipped("filter_mismatch", survey.active - fitting)
    return chosen


def _name(event: Event, delayed: Sequence[Delayed], chosen: Chosen, tally: Tally, depth_max: int) -> int:
    """Note whom the event names; give how many of them are no match for a filter to answer for."""
    is_homeless = subject_of(event) is None
    named: list[str] = []
    fitting = 0
    for each in delayed:
        reason = named_by(event, each.automation)
        is_fed = each.automation.definition.trigger.type in FED_BY.get(event.type, ())
        if reason is not None:
            fitting += _count_idle(reason, tally) and is_fed
            continue
        fitting += is_fed
        if is_own_event(event, each.id):
            tally.skipped("self_trigger")
        elif is_too_deep(event.depth, depth_max):
            tally.skipped("depth_limit")
        elif is_homeless:
            tally.skipped("no_subject")
            chosen.homeless.append((event.entry_id, each.id))
        else:
            named.append(each.id)
    chosen.named[event.entry_id] = frozenset(named)
    return fitting


def _count_idle(reason: Mismatch, tally: Tally) -> bool:
    """Count an automation that is not active, or was not yet; the latter is among the active ones."""
    if reason in (Mismatch.INACTIVE, Mismatch.BEFORE_ACTIVATION):
        tally.skipped("inactive")
    return reason is Mismatch.BEFORE_ACTIVATION
