"""What templates of a run see. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pipeline.plans import Plan
from shared.model.events import Event, flatten
from shared.model.runs import ClaimedRun
from shared.rules.scopes import Surroundings, template_scope


def run_scope(
    run: ClaimedRun, plan: Plan, event: Event, outputs: Mapping[int, Mapping[str, Any]], now: datetime
) -> dict[str, Any]:
    """Give what templates of this attempt see; a subject is added by the caller."""
    around = Surroundings(
        run_id=run.claim.run_id,
        attempt=run.retry_count + 1,
        automation_id=plan.automation_id,
        automation_name=plan.name,
        workspace_id=run.workspace_id,
    )
    return template_scope(flatten(event), around, outputs, now)
