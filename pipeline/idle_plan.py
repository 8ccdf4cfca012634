"""What a run of an idle step does: one action with literal values (docs/idle-sequences.md). Pure."""

from datetime import timedelta
from typing import Final

from pipeline.plans import Plan, PlannedAction
from pipeline.retrying import EVERY_MINUTE, NEVER
from pipeline.verdicts import Mark
from shared.db.automations import AutomationState
from shared.errors import KnockonError
from shared.model.actions import ActionConfig, Assign, Resolve, SendMessage
from shared.model.conversation_configs import RequestAssignment
from shared.model.events import event_from_json
from shared.model.idle_events import DueStep, idle_step_of
from shared.model.idle_steps import IdleAction
from shared.model.idle_titles import idle_title
from shared.model.runs import ClaimedRun
from shared.model.statuses import AutomationStatus
from shared.rules.idle_rules import AssignTarget, AssignType, IdleMode
from shared.rules.rendering import ConfigTemplate

STEP_RETRIES: Final = 2
EVENT_UNREADABLE: Final = "EVENT_UNREADABLE"
CLOSED_BY_STEPS: Final = "RESOLVE_AI_IDLE"
CLOSED_BY_RULE: Final = "RESOLVE"
GOES_ON: Final = AutomationState(version=0, status=AutomationStatus.ACTIVE, is_deleted=False)


def idle_plan(run: ClaimedRun, timeout: timedelta) -> Plan:
    """Make the plan of a step's run from its event; one that cannot be read is a plan with a fault."""
    try:
        step = idle_step_of(event_from_json(run.event))
        action = _planned(step, timeout)
    except (KnockonError, LookupError, TypeError, ValueError) as error:
        fault = f"the step cannot be read: {type(error).__name__}"
        return _plan(run.title or "", (), fault=fault)
    name = run.title or idle_title(step)
    return _plan(name, (action,), mark=Mark(step.conversation_id, {"idle_rule": _told(step)}))


def _plan(
    name: str, actions: tuple[PlannedAction, ...], mark: Mark | None = None, fault: str | None = None
) -> Plan:
    return Plan(
        automation_id="",
        name=name,
        state=GOES_ON,
        conditions=None,
        holds=lambda event: True,
        actions=actions,
        reads_subject=False,
        fault=fault,
        fault_code=EVENT_UNREADABLE,
        mark=mark,
    )


def _planned(step: DueStep, timeout: timedelta) -> PlannedAction:
    type_, config = _config(step)
    is_sequence = step.mode is IdleMode.STEPS
    return PlannedAction(
        position=1,
        type=type_,
        config=config,
        template=ConfigTemplate(config, {}, (), (), ()),
        retries=STEP_RETRIES if is_sequence else 0,
        timeout=timeout,
        policy=EVERY_MINUTE if is_sequence else NEVER,
    )


def _config(step: DueStep) -> tuple[str, ActionConfig]:
    """Give the action with its config, whose texts are literal: none of them is a template."""
    about = step.conversation_id
    match step.action:
        case IdleAction.FOLLOW_UP:
            return "SEND_MESSAGE", SendMessage.model_construct(
                conversation_id=about, content=step.message or "", private=False
            )
        case IdleAction.ASSIGN:
            if step.assign is None:
                raise ValueError("an assign step names nobody")
            return "ASSIGN", _assign(step, step.assign)
        case IdleAction.RESOLVE:
            is_sequence = step.mode is IdleMode.STEPS
            return "RESOLVE", Resolve.model_construct(
                conversation_id=about,
                message=step.message,
                closed_reason=CLOSED_BY_STEPS if is_sequence else CLOSED_BY_RULE,
            )


def _assign(step: DueStep, target: AssignTarget) -> Assign:
    about, said = step.conversation_id, step.message
    match target.type:
        case AssignType.AUTO:
            return RequestAssignment.model_construct(conversation_id=about, message=said)
        case AssignType.DIVISION:
            return Assign.model_construct(conversation_id=about, message=said, team_id=target.id)
        case AssignType.AGENT:
            return Assign.model_construct(conversation_id=about, message=said, assignee_id=target.id)


def _told(step: DueStep) -> dict[str, str | int | bool]:
    return {
        "step_index": step.step_index,
        "step_count": step.step_count,
        "is_last_step": step.is_last,
        "action": step.action,
        "rule": step.rule,
        "sequence_id": step.sequence_id,
    }
