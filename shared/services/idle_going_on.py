"""What follows an idle step that has fired (docs/idle-sequences.md, "Firing")."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from shared.db.idle_steps import ConversationKey
from shared.model.events import event_from_json, id_text
from shared.model.idle_events import DueStep, idle_step_of
from shared.model.idle_steps import IdleAction, IdleRuleKind, IdleStepRow
from shared.model.messages import Message
from shared.model.runs import ClaimedRun
from shared.model.subjects import data
from shared.rules.idle_arming import INBOX, first_step, next_step
from shared.rules.idle_rules import IdleMode, RuleAsk
from shared.rules.idling import rule_ask
from shared.services.idle_rules import read_rules
from shared.services.idling import find_conversations


@dataclass(frozen=True, slots=True)
class Fired:
    """A step that has acted, its run, and the message that it has left."""

    row: IdleStepRow
    run: ClaimedRun
    message: Message

    @property
    def step(self) -> DueStep:
        """The step as it was carried out."""
        return idle_step_of(event_from_json(self.run.event))


def arm_next(conn: Connection, fired: Sequence[Fired], now: datetime) -> list[IdleStepRow]:
    """Give the steps that wait from now on: the next of a sequence, or the rule of the channel.

    The rules are those of now. A step that closes is the last; a channel's rule has but one.
    """
    asks = _asks(conn, fired)
    rules = read_rules(conn, (ask for _, ask in asks)) if asks else {}
    armed: list[IdleStepRow | None] = []
    for each, ask in asks:
        plan = rules[ask].plan
        if plan is None:
            continue
        if ask[1] is IdleRuleKind.CHANNEL:
            armed.append(first_step(ask, plan, each.message, now))
        elif plan.mode is IdleMode.STEPS:
            armed.append(next_step(each.row, plan, each.message, now))
    return [row for row in armed if row is not None]


def _asks(conn: Connection, fired: Sequence[Fired]) -> list[tuple[Fired, RuleAsk]]:
    """Name whose rule goes on after each step; one that nothing follows is left out."""
    asks: list[tuple[Fired, RuleAsk]] = []
    followed: dict[ConversationKey, Fired] = {}
    for each in fired:
        step, row = each.step, each.row
        if step.mode is IdleMode.STEPS and step.action is not IdleAction.RESOLVE:
            asks.append((each, rule_ask(row)))
        elif step.mode is IdleMode.LEGACY and step.action is IdleAction.FOLLOW_UP:
            followed[row.workspace_id, row.conversation_id] = each
    for (workspace_id, id_), found in find_conversations(conn, followed).items() if followed else ():
        inbox = id_text(data(found).get(INBOX))
        if inbox is not None:
            asks.append((followed[workspace_id, id_], (workspace_id, IdleRuleKind.CHANNEL, inbox)))
    return asks
