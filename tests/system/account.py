"""What must hold after every fault: nothing lost, nothing doubled, nothing left lying, everybody told."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from shared.db.types import read_json
from shared.model.moves import ENDED
from tests.system.deployment import Deployment

CAP = 9


def check_account(site: Deployment, repeats: int = 0) -> None:
    """Compare rows, ledger and notices; each action may have been repeated `repeats` times."""
    runs = site.runs()
    check_runs(site, runs)
    check_attempts(site, runs)
    check_ledger(site, runs, repeats)
    check_notices(site, runs)


def check_runs(site: Deployment, runs: Sequence[Any]) -> None:
    """Each published event has one run per automation that listens to it, and every run has ended."""
    wanted = {
        f"{automation_id}:id:{draft.id}"
        for draft in site.published
        for automation_id, event_type in site.listening.items()
        if draft.type == event_type
    }
    found = Counter(row.source_id for row in runs if row.depth == 0)
    assert found == Counter(wanted)
    assert [row.id for row in runs if row.status not in ENDED] == []


def check_attempts(site: Deployment, runs: Sequence[Any]) -> None:
    """The history of attempts has no gaps and stays within the cap; its length is the run's lease."""
    attempts: dict[str, list[tuple[int, str]]] = {row.id: [] for row in runs}
    for run_id, lease, outcome in site.attempts():
        attempts[run_id].append((lease, outcome))
    for row in runs:
        history = attempts[row.id]
        assert [lease for lease, _ in history] == list(range(1, row.lease + 1)), history
        spent = sum(outcome in ("failed", "crashed") for _, outcome in history)
        assert spent <= CAP
        last = row.status in ("FAILED", "DEAD_LETTER")
        assert row.retry_count == spent - last, history


def check_ledger(site: Deployment, runs: Sequence[Any], repeats: int) -> None:
    """Each webhook of a run that succeeded arrived, at most `repeats` times more, under one id."""
    deliveries = site.receiver.deliveries()
    arrived = Counter(each.webhook_id for each in deliveries if each.status < 300)
    sent = {f"{row.id}:{position}" for row in runs for position in hooks(site, row)}
    assert set(arrived) <= sent
    for row in runs:
        if row.status == "SUCCEEDED" and row.skip_reason is None:
            counts = {position: arrived[f"{row.id}:{position}"] for position in hooks(site, row)}
            assert all(1 <= count <= 1 + repeats for count in counts.values()), (row.id, counts)
    assert {each.webhook_id.rpartition(":")[0] for each in deliveries} <= {row.id for row in runs}


def check_notices(site: Deployment, runs: Sequence[Any]) -> None:
    """Every dead letter has exactly one notice, to the one owner there is, and nothing else has any."""
    rows = site.all("SELECT resource_id, title FROM notifications WHERE resource_type = 'automation_run'")
    told = Counter(row.resource_id for row in rows if "dead-lettered" in row.title or "crash" in row.title)
    assert told == Counter(row.id for row in runs if row.status == "DEAD_LETTER")


def hooks(site: Deployment, run: Any) -> list[int]:
    """Give the positions of a run's webhooks."""
    row = site.one("SELECT definition FROM automations WHERE id = :id", id=run.automation_id)
    definition: Mapping[str, Any] = read_json(row.definition)
    actions = enumerate(definition["actions"], start=1)
    return [position for position, action in actions if action["type"] == "SEND_WEBHOOK"]
