"""What conditions and templates see (docs/automations.md, "Conditions" and "Templates"). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.model.events import Event, flatten


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What templates see beside the event: which run of which automation, at which attempt."""

    run_id: str
    attempt: int
    automation_id: str | None
    automation_name: str
    workspace_id: str


def gate_scope(event: Event, now: datetime) -> dict[str, Any]:
    """Give what conditions see: the flattened event, and `now` for relative times."""
    return {**flatten(event), "now": now}


def template_scope(
    flat: Mapping[str, Any], around: Surroundings, outputs: Mapping[int, Mapping[str, Any]], now: datetime
) -> dict[str, Any]:
    """Give what templates see of a flattened event; a subject and secrets are added by the caller."""
    return {
        **flat,
        "run": {"id": around.run_id, "attempt": around.attempt},
        "automation": {"id": around.automation_id, "name": around.automation_name},
        "workspace": {"id": around.workspace_id},
        "actions": {str(position): {"output": output} for position, output in outputs.items()},
        "now": now.isoformat(),
    }
