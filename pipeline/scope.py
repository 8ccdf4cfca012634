"""What conditions and templates of a run see. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipeline.plans import Plan
from shared.model.events import Event, flatten
from shared.model.runs import ClaimedRun


def gate_scope(event: Event, now: datetime) -> dict[str, Any]:
    """Give what conditions see: the flattened event, and `now` for relative times."""
    return {**flatten(event), "now": now}


def template_scope(
    run: ClaimedRun, plan: Plan, event: Event, outputs: Mapping[int, Mapping[str, Any]], now: datetime
) -> dict[str, Any]:
    """Give what templates see (`docs/automations.md`, "Templates"); a subject is added by the caller."""
    return {
        **flatten(event),
        "run": {"id": run.claim.run_id, "attempt": run.retry_count + 1},
        "automation": {"id": plan.automation_id, "name": plan.name},
        "workspace": {"id": run.workspace_id},
        "actions": {str(position): {"output": output} for position, output in outputs.items()},
        "now": now.isoformat(),
    }
