"""What is to become of claimed idle steps, in the order of docs/idle-sequences.md, "Firing"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.logs import get_logger
from shared.model.events import Event
from shared.model.idle_events import idle_event
from shared.model.idle_steps import IdleStepRow, IdleStop, shown_idle
from shared.model.subjects import data
from shared.rules.idle_rules import RuleFound
from shared.rules.idling import IdleFacts, due_step, rule_ask, stop_of
from shared.services.idling import read_idle_facts

log: Final = get_logger("timers")


@dataclass(frozen=True, slots=True)
class Decisions:
    """Steps that fire, each with the event that its run is about, and those that do not and why."""

    firing: list[tuple[IdleStepRow, Event]] = field(default_factory=list)
    stopped: list[tuple[IdleStepRow, IdleStop]] = field(default_factory=list)


def decide(conn: Connection, rows: Sequence[IdleStepRow], now: datetime) -> Decisions:
    """Decide about locked steps by what is stored now."""
    facts = read_idle_facts(conn, rows)
    found = Decisions()
    for row in rows:
        rule = facts.rules[rule_ask(row)]
        stop, step = stop_of(row, facts), due_step(row, rule)
        if stop is not None or step is None:
            found.stopped.append((row, stop or IdleStop.CONFIG_CHANGED))
        else:
            found.firing.append((row, idle_event(row.workspace_id, step, _state(row, facts), now)))
        if stop in (None, IdleStop.CONFIG_CHANGED):
            _warn(row, rule)
    return found


def _state(row: IdleStepRow, facts: IdleFacts) -> Mapping[str, object]:
    return data(facts.subjects[row.workspace_id, row.conversation_id])


def _warn(row: IdleStepRow, rule: RuleFound) -> None:
    """Say once for each step what of its rule is never carried out."""
    if rule.malformed is not None:
        log.warning("idle_rule_malformed", reason=rule.malformed, **shown_idle(row))
    if rule.plan is not None and rule.plan.ignored:
        log.warning("idle_steps_ignored", ignored=rule.plan.ignored, **shown_idle(row))
