"""What the run of an idle step is about: the step as it stood when it fired (docs/idle-sequences.md). Pure.

The sweep writes it, whoever carries the run out reads it; where the rule is edited meanwhile, it is not done.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from shared.model.events import Event
from shared.model.idle_steps import IdleAction, IdleRuleKind
from shared.rules.idle_rules import AssignTarget, AssignType, IdleMode
from shared.time.clock import epoch_ms

IDLE_EVENT: Final = "idle.step_due"
IDLE_TRIGGER: Final = "IDLE_STEP"


@dataclass(frozen=True, slots=True)
class DueStep:
    """A step that fires. `name` is that of the agent or channel whose rule it follows.

    `step_id` is the id of its row, `step_count` how many steps the rule has now.
    """

    conversation_id: str
    sequence_id: str
    step_id: str
    rule: IdleRuleKind
    mode: IdleMode
    agent_id: str | None
    channel_id: str | None
    name: str
    step_index: int
    step_count: int
    action: IdleAction
    message: str | None
    assign: AssignTarget | None

    @property
    def is_last(self) -> bool:
        """Tell whether no step follows this one."""
        return self.step_index + 1 >= self.step_count


def idle_event(workspace_id: str, step: DueStep, state: Mapping[str, Any], now: datetime) -> Event:
    """Make the event of a step that fires now; `state` is what is known of its conversation."""
    payload = {"conversation": {**state, "id": step.conversation_id}, "idle": _step_payload(step)}
    return Event(
        entry_id=f"{epoch_ms(now)}-0",
        type=IDLE_EVENT,
        workspace_id=workspace_id,
        payload=payload,
        id=None,
        occurred_at=now,
        context=None,
        source=None,
        sanitized=False,
    )


def idle_step_of(event: Event) -> DueStep:
    """Read back what `idle_event` wrote."""
    told = event.payload["idle"]
    return DueStep(
        conversation_id=event.payload["conversation"]["id"],
        sequence_id=told["sequenceId"],
        step_id=told["stepId"],
        rule=IdleRuleKind(told["rule"]),
        mode=IdleMode(told["mode"]),
        agent_id=told["agentId"],
        channel_id=told["channelId"],
        name=told["name"],
        step_index=told["stepIndex"],
        step_count=told["stepCount"],
        action=IdleAction(told["action"]),
        message=told["message"],
        assign=_target_of(told["assign"]),
    )


def _step_payload(step: DueStep) -> dict[str, Any]:
    return {
        "sequenceId": step.sequence_id,
        "stepId": step.step_id,
        "rule": step.rule.value,
        "mode": step.mode.value,
        "agentId": step.agent_id,
        "channelId": step.channel_id,
        "name": step.name,
        "stepIndex": step.step_index,
        "stepCount": step.step_count,
        "isLast": step.is_last,
        "action": step.action.value,
        "message": step.message,
        "assign": _target_payload(step.assign),
    }


def _target_payload(target: AssignTarget | None) -> dict[str, Any] | None:
    return None if target is None else {"type": target.type.value, "id": target.id, "name": target.name}


def _target_of(told: Mapping[str, Any] | None) -> AssignTarget | None:
    return None if told is None else AssignTarget(AssignType(told["type"]), told["id"], told["name"])
