"""What a run of an idle step is called, as no automation gives it a name (docs/idle-sequences.md). Pure."""

from shared.model.idle_events import DueStep
from shared.model.idle_steps import IdleRuleKind


def idle_title(step: DueStep) -> str:
    """Name a step's run as lists, logs and notices show it; steps are counted from 1."""
    if step.rule is IdleRuleKind.CHANNEL:
        return f"Idle rule of channel {step.name}"
    return f"Idle sequence of agent {step.name}, step {step.step_index + 1}"
