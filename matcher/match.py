"""Which automations an event starts. Pure: the stream consumer reads, dedupes and writes around it."""

from dataclasses import dataclass

from shared.model.automation import Automation
from shared.model.events import Event
from shared.rules.triggering import Mismatch, first_mismatch


@dataclass(frozen=True, slots=True)
class Match:
    """The event starts a run of the automation."""

    event: Event
    automation: Automation


@dataclass(frozen=True, slots=True)
class Skip:
    """The event starts no run of the automation."""

    automation_id: str
    reason: Mismatch


def match(event: Event, automation: Automation) -> Match | Skip:
    """Decide whether `event` starts a run of `automation`.

    Conditions, self-trigger and depth are decided when the run starts. A machine-made incoming message
    starts nothing.
    """
    reason = first_mismatch(event, automation)
    return Match(event, automation) if reason is None else Skip(automation.id, reason)
