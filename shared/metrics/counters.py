"""Which counters of Redis are told, and as what metrics; the lists are closed, so that labels are bounded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from shared.action_types import action_types
from shared.keys import DEAD_LETTERS, Keys, delayed_key, idle_key
from shared.model.idle_steps import IdleResult
from shared.model.pending import PendingSkip
from shared.model.triggers import TriggerType

SKIPPED: Final = (
    "filter_mismatch",
    "inactive",
    "expired",
    "deduped",
    "no_subject",
    "self_trigger",
    "depth_limit",
)
OUTCOMES: Final = ("succeeded", "failed")
DELAYED: Final = ("armed", "moved", "closed", "executed")
HEALTH: Final[Mapping[str, str]] = MappingProxyType(
    {
        DEAD_LETTERS: "knockon_dead_letters_total",
        "entries_taken": "knockon_entries_taken_total",
        "entries_buried": "knockon_entries_buried_total",
        "lost_trimmed": "knockon_entries_lost_total",
        "stream_gaps": "knockon_stream_gaps_total",
        "duplicate_conflict": "knockon_event_conflicts_total",
        "definitions_unreadable": "knockon_definitions_unreadable_total",
        "schedules_unreadable": "knockon_schedules_unreadable_total",
        "handles_bad": "knockon_handles_dropped_total",
    }
)


@dataclass(frozen=True, slots=True)
class CounterKey:
    """A counter: its key in Redis, its metric, and the values of the metric's labels."""

    key: str
    metric: str
    labels: tuple[str, ...] = ()


def counter_keys(keys: Keys) -> Iterator[CounterKey]:
    """Give every counter that is told."""
    for trigger_type in TriggerType:
        yield CounterKey(keys.matched(trigger_type), "knockon_matched_total", (trigger_type,))
    for reason in SKIPPED:
        yield CounterKey(keys.skipped(reason), "knockon_skipped_total", (reason,))
    for outcome in DELAYED:
        yield CounterKey(delayed_key(keys, outcome), "knockon_delayed_total", (outcome,))
    for why in PendingSkip:
        yield CounterKey(delayed_key(keys, f"skipped:{why}"), "knockon_delayed_skipped_total", (why,))
    for result in IdleResult:
        yield CounterKey(idle_key(keys, result), "knockon_idle_steps_total", (result,))
    for action_type in action_types():
        for outcome in OUTCOMES:
            key = keys.action(action_type, outcome)
            yield CounterKey(key, "knockon_actions_total", (action_type, outcome))
    for name, metric in HEALTH.items():
        yield CounterKey(keys.count(name), metric)
