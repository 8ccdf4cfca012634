"""Whether a step of an idle sequence still stands (docs/idle-sequences.md, "Firing"). Pure.

The matcher asks whenever something new is known of a conversation, the sweep before it makes a run, and the
run's own gate before each attempt.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shared.model.conversation_configs import ConversationStatus
from shared.model.field_writes import FieldWrite
from shared.model.idle_events import DueStep
from shared.model.idle_steps import IdleRuleKind, IdleStatus, IdleStepRow, IdleStop
from shared.model.messages import Direction, Message
from shared.model.stamps import Stamp
from shared.model.subjects import SubjectRow
from shared.rules.idle_rules import IdleMode, IdlePlan, IdleStepRule, RuleAsk, RuleFound

_STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class IdleFacts:
    """What is stored now about what steps wait for, by workspace and conversation; and the rules.

    `newest` has the newest message of each conversation that counts.
    """

    subjects: Mapping[tuple[str, str], SubjectRow]
    newest: Mapping[tuple[str, str], Message]
    rules: Mapping[RuleAsk, RuleFound]


def stop_of(row: IdleStepRow, facts: IdleFacts) -> IdleStop | None:
    """Say why a step is not to fire, by the first guard that says no; None where it may."""
    key = (row.workspace_id, row.conversation_id)
    stop = talk_stop(row, facts.subjects.get(key), facts.newest.get(key))
    return _rule_stop(row, facts.rules.get(rule_ask(row))) if stop is None else stop


def talk_stop(row: IdleStepRow, subject: SubjectRow | None, newest: Message | None) -> IdleStop | None:
    """Say why a step is not to fire, by its conversation alone; None where that lets it."""
    return end_since(subject, row.anchor.stamp) or reply_stop(row.anchor.stamp, newest)


def end_since(subject: SubjectRow | None, anchor: Stamp) -> IdleStop | None:
    """Say how a conversation ended since a message, or before and for longer; None while it goes on.

    One that was resolved in between, and opened again, has ended: what waited for it does not come back.
    """
    if subject is None or subject.deleted is not None or _is_before(anchor, subject.born_after):
        return IdleStop.CONVERSATION_GONE
    return IdleStop.CONVERSATION_CLOSED if _is_resolved_since(subject, anchor) else None


def reply_stop(anchor: Stamp, newest: Message | None) -> IdleStop | None:
    """Say what the newest message that counts does to a step; None where it changes nothing.

    Nothing waits after a customer's message: one that is older than the anchor came to be known late.
    """
    if newest is None:
        return None
    if newest.direction is Direction.INCOMING:
        return IdleStop.CUSTOMER_REPLIED
    return IdleStop.SUPERSEDED if newest.stamp > anchor else None


def status_of(stop: IdleStop) -> IdleStatus:
    """Give the status in which a step ends that was stopped so."""
    return IdleStatus.SUPERSEDED if stop is IdleStop.SUPERSEDED else IdleStatus.STOPPED


def rule_ask(row: IdleStepRow) -> RuleAsk:
    """Name whose rule a step follows."""
    holder = row.agent_id if row.rule is IdleRuleKind.AGENT else row.channel_id
    return row.workspace_id, row.rule, holder or ""


def step_of(row: IdleStepRow, plan: IdlePlan | None) -> IdleStepRule | None:
    """Give what a step does by the plan of now; None where the plan has no such step.

    The first step follows whichever mode there is, a later one those of several steps alone.
    """
    if plan is None or row.step_index >= len(plan.steps):
        return None
    if row.step_index > 0 and plan.mode is not IdleMode.STEPS:
        return None
    return plan.steps[row.step_index]


def due_step(row: IdleStepRow, found: RuleFound) -> DueStep | None:
    """Give a step as it fires by the rule of now; None where the rule has no such step."""
    rule = step_of(row, found.plan)
    if found.plan is None or rule is None:
        return None
    return DueStep(
        conversation_id=row.conversation_id,
        sequence_id=row.sequence_id,
        step_id=row.id,
        rule=row.rule,
        mode=found.plan.mode,
        agent_id=row.agent_id,
        channel_id=row.channel_id,
        name=found.name,
        step_index=row.step_index,
        step_count=len(found.plan.steps),
        action=rule.action,
        message=rule.message,
        assign=rule.assign,
    )


def is_edited(step: DueStep, row: IdleStepRow, facts: IdleFacts) -> bool:
    """Tell whether by the rule of now a step does or says anything else than when it was made a run of."""
    found = facts.rules.get(rule_ask(row))
    now = None if found is None else due_step(row, found)
    return now is None or _does(now) != _does(step)


def _does(step: DueStep) -> tuple[object, ...]:
    return step.mode, step.action, step.message, step.assign


def _rule_stop(row: IdleStepRow, found: RuleFound | None) -> IdleStop | None:
    if found is None or not found.is_there:
        return IdleStop.AGENT_GONE
    return IdleStop.CONFIG_CHANGED if step_of(row, found.plan) is None else None


def value_at(subject: SubjectRow, name: str, at: Stamp) -> object:
    """Give what a field held at an instant, in the life of the subject that is shown; None for nothing."""
    return next((value for stamp, value in reversed(_writes(subject, name)) if stamp <= at), None)


def _is_resolved_since(subject: SubjectRow, anchor: Stamp) -> bool:
    """Tell whether the conversation was resolved at the anchor, or at any time after it."""
    later = [status for stamp, status in _writes(subject, _STATUS) if stamp > anchor]
    return ConversationStatus.RESOLVED in [value_at(subject, _STATUS, anchor), *later]


def _writes(subject: SubjectRow, name: str) -> list[FieldWrite]:
    born = subject.born_after
    return [write for write in subject.fields.get(name, ()) if not _is_before(write[0], born)]


def _is_before(stamp: Stamp, other: Stamp | None) -> bool:
    return other is not None and stamp < other
