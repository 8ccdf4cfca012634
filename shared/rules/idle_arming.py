"""Steps of idle sequences as they begin to wait (docs/idle-sequences.md, "Arming"). Pure, but for new ids."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from shared.ids import new_id
from shared.model.events import id_text
from shared.model.idle_steps import IdleAnchor, IdleRuleKind, IdleStatus, IdleStepRow
from shared.model.messages import Direction, Message, SenderType
from shared.model.subjects import SubjectRow
from shared.rules.idle_rules import IdlePlan, RuleAsk
from shared.rules.idling import value_at

INBOX: Final = "inboxId"


def may_arm(message: Message) -> bool:
    """Tell whether a message is one of those that arm: public, of an agent or a bot and no machine."""
    if message.direction is not Direction.OUTGOING or message.private or message.auto_submitted:
        return False
    if message.sender_type is SenderType.BOT:
        return True
    return message.sender_type is SenderType.AGENT and message.agent_id is None


def arming_rule(message: Message, conversation: SubjectRow) -> RuleAsk | None:
    """Name whose rule a message arms, if that has one: its AI agent's, else that of the channel of then."""
    if not may_arm(message):
        return None
    if message.agent_id is not None:
        return message.workspace_id, IdleRuleKind.AGENT, message.agent_id
    inbox = id_text(value_at(conversation, INBOX, message.stamp))
    return None if inbox is None else (message.workspace_id, IdleRuleKind.CHANNEL, inbox)


def first_step(ask: RuleAsk, plan: IdlePlan, message: Message, now: datetime) -> IdleStepRow:
    """Begin a sequence: its first step waits from a message on."""
    workspace_id, kind, holder = ask
    rule, id_ = plan.steps[0], new_id()
    return IdleStepRow(
        id=id_,
        workspace_id=workspace_id,
        conversation_id=message.conversation_id,
        sequence_id=id_,
        rule=kind,
        agent_id=holder if kind is IdleRuleKind.AGENT else None,
        channel_id=holder if kind is IdleRuleKind.CHANNEL else None,
        step_index=0,
        step_count=len(plan.steps),
        action=rule.action,
        anchor=IdleAnchor(message.id, message.stamp),
        due_at=message.created_at + rule.duration,
        status=IdleStatus.PENDING,
        reason=None,
        run_id=None,
        version=1,
        claimed_at=None,
        ended_at=None,
        created_at=now,
        updated_at=now,
    )


def next_step(row: IdleStepRow, plan: IdlePlan, message: Message, now: datetime) -> IdleStepRow | None:
    """Go on with a sequence: what follows a step waits from the message of that step on; None at its end."""
    at = row.step_index + 1
    if at >= len(plan.steps):
        return None
    return replace(
        row,
        id=new_id(),
        step_index=at,
        step_count=len(plan.steps),
        action=plan.steps[at].action,
        anchor=IdleAnchor(message.id, message.stamp),
        due_at=message.created_at + plan.steps[at].duration,
        status=IdleStatus.PENDING,
        reason=None,
        run_id=None,
        version=1,
        claimed_at=None,
        ended_at=None,
        created_at=now,
        updated_at=now,
    )
