"""The counts of one set of entries, sent to Redis with its acknowledgement."""

from collections import Counter
from datetime import timedelta

from shared.keys import Keys, delayed_key, idle_key
from shared.model.idle_steps import IdleResult
from shared.observations import Measure, Observations
from shared.redis_port import PipelinePort


class Tally:
    """Counts by Redis key. What is counted for a set that is not acknowledged is never sent."""

    def __init__(self, keys: Keys) -> None:
        """Start with nothing counted."""
        self._keys = keys
        self._counts: Counter[str] = Counter()
        self._observed = Observations(keys)

    def matched(self, trigger_type: str) -> None:
        """Count a match."""
        self._counts[self._keys.matched(trigger_type)] += 1

    def skipped(self, reason: str, times: int = 1) -> None:
        """Count events, or automations, that did not meet."""
        self._counts[self._keys.skipped(reason)] += times

    def health(self, name: str, times: int = 1) -> None:
        """Count something that an operator may ask about."""
        self._counts[self._keys.count(name)] += times

    def delayed(self, name: str, times: int = 1) -> None:
        """Count what became of delayed executions."""
        self._counts[delayed_key(self._keys, name)] += times

    def idle(self, result: IdleResult, times: int = 1) -> None:
        """Count what became of steps of idle sequences."""
        self._counts[idle_key(self._keys, result)] += times

    def waited(self, span: timedelta) -> None:
        """Note how long an event had been on the stream when its run was there."""
        self._observed.add(Measure.EVENT_TO_RUN, span)

    def add_to(self, pipe: PipelinePort) -> None:
        """Send the counts as part of the caller's MULTI."""
        for key, count in self._counts.items():
            if count:
                pipe.incrby(key, count)
        self._observed.add_to(pipe)
