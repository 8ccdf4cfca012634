"""What the example events must come to, and whether they did. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from shared.db.inbox import InboxItem
from shared.db.reads import RunSummary
from shared.model.moves import ENDED, RunStatus, SkipReason

ATTEMPTS_UNTIL_OPEN: Final = 2
DEAD_LETTER_TITLE: Final = 'Automation "{name}" dead-lettered'

Ending = tuple[str, RunStatus, str | None, int]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing that the demo shows, and whether it came out as it must."""

    claim: str
    holds: bool


EXPECTED: Final[Mapping[Ending, int]] = {
    ("confirm-order", RunStatus.SUCCEEDED, None, 0): 1,
    ("thank-for-large-order", RunStatus.SUCCEEDED, SkipReason.CONDITIONS, 0): 1,
    ("announce-shipment", RunStatus.SUCCEEDED, None, ATTEMPTS_UNTIL_OPEN): 1,
    ("report-loss", RunStatus.DEAD_LETTER, None, 1): 1,
    ("stamp-task", RunStatus.SUCCEEDED, None, 0): 1,
    ("stamp-task", RunStatus.SUCCEEDED, SkipReason.SELF_TRIGGER, 0): 1,
    ("pong", RunStatus.SUCCEEDED, None, 0): 3,
    ("ping", RunStatus.SUCCEEDED, None, 0): 2,
    ("ping", RunStatus.SUCCEEDED, SkipReason.DEPTH_LIMIT, 0): 1,
}
CLAIMS: Final[Mapping[str, tuple[Ending, ...]]] = {
    "an order was confirmed at once": (("confirm-order", RunStatus.SUCCEEDED, None, 0),),
    "a condition kept an automation from acting": (
        ("thank-for-large-order", RunStatus.SUCCEEDED, SkipReason.CONDITIONS, 0),
    ),
    "an endpoint that answered 503 twice was tried until it took the call": (
        ("announce-shipment", RunStatus.SUCCEEDED, None, ATTEMPTS_UNTIL_OPEN),
    ),
    "an endpoint that stayed down ended as a dead letter": (("report-loss", RunStatus.DEAD_LETTER, None, 1),),
    "an automation did not start itself by what it changed": (
        ("stamp-task", RunStatus.SUCCEEDED, None, 0),
        ("stamp-task", RunStatus.SUCCEEDED, SkipReason.SELF_TRIGGER, 0),
    ),
    "two automations that start each other ended after five steps": (
        ("pong", RunStatus.SUCCEEDED, None, 0),
        ("ping", RunStatus.SUCCEEDED, None, 0),
        ("ping", RunStatus.SUCCEEDED, SkipReason.DEPTH_LIMIT, 0),
    ),
}


def is_over(runs: Sequence[RunSummary]) -> bool:
    """Tell whether as many runs as there must be have ended."""
    return sum(run.status in ENDED for run in runs) >= sum(EXPECTED.values())


def judge(runs: Sequence[RunSummary], notices: Sequence[InboxItem]) -> list[Verdict]:
    """Hold what became of the events against what must become of them."""
    found = Counter(_ending(run) for run in runs)
    verdicts = [
        Verdict(claim, all(found[ending] == EXPECTED[ending] for ending in endings))
        for claim, endings in CLAIMS.items()
    ]
    dead = [run for run in runs if run.status is RunStatus.DEAD_LETTER]
    told = {(notice.resource_id, notice.title) for notice in notices}
    titles = [(run.id, DEAD_LETTER_TITLE.format(name=run.automation_name)) for run in dead]
    verdicts.append(
        Verdict("the owner was told of the dead letter", bool(titles) and told.issuperset(titles))
    )
    verdicts.append(Verdict("nothing else ran", found == Counter(EXPECTED)))
    return verdicts


def _ending(run: RunSummary) -> Ending:
    return (run.automation_key or "", run.status, run.skip_reason, run.retry_count)
