"""Which runs a set of events is to start, and what is counted of those that it does not. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from matcher.index import Index
from matcher.match import Match, match
from matcher.tally import Tally
from shared.model.events import Event
from shared.rules.triggering import Mismatch
from shared.time.clock import epoch_ms

LAST_DAY: Final = timedelta(days=1)


def choose(events: Sequence[Event], index: Index, tally: Tally, oldest: datetime) -> list[Match]:
    """Match events in their order, each to its automations by age. Events before `oldest` match nothing.

    A paused automation, and one that came alive after the event, count as inactive.
    """
    oldest_ms = epoch_ms(oldest)
    found: list[Match] = []
    for event in events:
        if event.stamp[0] < oldest_ms:
            tally.skipped("expired")
        else:
            found += _choose_for(event, index, tally)
    return found


def _choose_for(event: Event, index: Index, tally: Tally) -> list[Match]:
    survey = index.survey(event)
    matches: list[Match] = []
    fitting = 0
    for automation in survey.candidates:
        match match(event, automation):
            case Match() as found:
                matches.append(found)
                fitting += 1
            case skip:
                fitting += skip.reason is Mismatch.BEFORE_ACTIVATION
                if skip.reason in (Mismatch.INACTIVE, Mismatch.BEFORE_ACTIVATION):
                    tally.skipped("inactive")
    tally.skipped("filter_mismatch", survey.active - fitting)
    return matches
