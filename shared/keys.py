"""Every Redis key that we use, in one place; all take the deployment's prefix."""

from dataclasses import dataclass
from typing import Final

from shared.model.idle_steps import IdleResult
from shared.model.runs import QueueKind

GROUP: Final = "automations-matcher"
DEDUPE_TTL_S: Final = 600
DEAD_LETTERS: Final = "dead_letters"  # the count of all of them, whatever their workspace


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of one deployment's keys. `prefix` comes first in each, `stream` is EVENTS_STREAM."""

    prefix: str
    stream_name: str

    @property
    def stream(self) -> str:
        """Name the stream that services publish to."""
        return f"{self.prefix}{self.stream_name}"

    @property
    def dead_stream(self) -> str:
        """Name the stream of entries that could not be taken, with their reasons."""
        return f"{self.stream}:dead"

    @property
    def index_version(self) -> str:
        """Name the counter that every change of an automation raises."""
        return f"{self.prefix}automations:index_version"

    @property
    def scheduler(self) -> str:
        """Name the stem of the retry scheduler's keys."""
        return f"{self.prefix}rq:scheduler"

    @property
    def scheduled(self) -> str:
        """Name the sorted set of retries that wait, by the second they are due."""
        return f"{self.scheduler}:scheduled_jobs"

    def queue(self, kind: QueueKind) -> str:
        """Name the RQ queue that carries handles of this kind."""
        return f"{self.prefix}automations" if kind is QueueKind.MAIN else f"{self.prefix}automations-bulk"

    def dedupe(self, automation_id: str, event_key: str) -> str:
        """Name the mark that an event was matched to an automation; its value is the entry's id."""
        return f"{self.prefix}automations:dedupe:{automation_id}:{event_key}"

    def matched(self, trigger_type: str) -> str:
        """Name the counter of matches by trigger type."""
        return f"{self.prefix}automations:matched:{trigger_type}"

    def skipped(self, reason: str) -> str:
        """Name the counter of events and automations that did not meet, by reason."""
        return f"{self.prefix}automations:skipped:{reason}"

    def action(self, action_type: str, outcome: str) -> str:
        """Name the counter of actions by type and outcome (`succeeded` or `failed`)."""
        return f"{self.prefix}automations:actions:{action_type}:{outcome}"

    def dead_letter(self, workspace_id: str) -> str:
        """Name the counter of a workspace's dead letters."""
        return f"{self.prefix}automations:dead_letter:{workspace_id}"

    def count(self, name: str) -> str:
        """Name a counter of the engine's own health, such as `handles_bad` or `stream_gaps`."""
        return f"{self.prefix}automations:health:{name}"


def beats_key(keys: Keys, part: str) -> str:
    """Name the sorted set of a part's processes, by when each last gave a sign of life."""
    return f"{keys.prefix}automations:beats:{part}"


def observed_key(keys: Keys, measure: str) -> str:
    """Name the hash that counts durations of one kind by their buckets."""
    return f"{keys.prefix}automations:observed:{measure}"


def delayed_key(keys: Keys, name: str) -> str:
    """Name a counter of delayed executions: `armed`, `moved`, `closed`, `executed` or `skipped:{reason}`."""
    return f"{keys.prefix}automations:delayed:{name}"


def idle_key(keys: Keys, result: IdleResult) -> str:
    """Name the counter of idle steps by what became of them."""
    return f"{keys.prefix}automations:idle:{result}"
