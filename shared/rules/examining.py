"""Why an event starts an automation or not, check by check (docs/automations.md, "Why did it not run?").

Pure, and free of effects: explain, dry run and backtest read what is known and ask here. What the matcher and
the guards of a run decide is decided by the same functions.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from shared.model.automation import MAX_ACTIONS, Automation
from shared.model.events import Event
from shared.model.statuses import AutomationStatus
from shared.model.subjects import SubjectRow
from shared.model.triggers import DATABASE_TRIGGERS, TriggerType
from shared.rules.conditions import LeafVerdict, compile_blame, compile_conditions, explain_conditions
from shared.rules.episodes import compile_standing
from shared.rules.examining_delay import DELETED, Answer, delay_said
from shared.rules.guarding import is_own_event, is_too_deep, may_have_actions
from shared.rules.scopes import gate_scope
from shared.rules.standing_scope import standing_scope
from shared.rules.talk import Talk
from shared.rules.triggering import (
    FED_BY,
    changed_properties,
    database_of,
    feeds,
    is_active,
    is_delayed,
    is_from_a_person,
    is_in_scope,
    is_late_enough,
    is_of_workspace,
    is_watched,
    may_name,
)
from shared.time.clock import from_epoch_ms


class CheckName(StrEnum):
    """The checks, in their order."""

    DEFINITION = "definition"
    WORKSPACE = "workspace"
    STATUS = "status"
    ACTIVATION = "activation"
    AGE = "age"
    TRIGGER = "trigger"
    DATABASE = "database"
    PROPERTIES = "properties"
    SENDER = "sender"
    DELAY = "delay"
    DUPLICATE = "duplicate"
    SELF_TRIGGER = "self_trigger"
    DEPTH = "depth"
    ACTIONS = "actions"
    CONDITIONS = "conditions"


@dataclass(frozen=True, slots=True)
class Earlier:
    """Another entry of the same key came first; `same` tells whether it held the same payload.

    `run_id` is None where no run of it is on record.
    """

    run_id: str | None
    entry_id: str | None
    same: bool


@dataclass(frozen=True, slots=True)
class Known:
    """What has to be known beside event and automation. `at` is when conditions are decided.

    Events before `oldest_ms` match nothing any more. What waits is decided by `subject`, which is what is
    known of the event's, and a message by `talk`, how its conversation stands; either may be unknown.
    """

    at: datetime
    depth_max: int
    oldest_ms: int = 0
    earlier: Earlier | None = None
    deleted_at: datetime | None = None
    subject: SubjectRow | None = None
    talk: Talk | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """What one check said; `reason` is empty when it passed."""

    name: CheckName
    wanted: Any
    found: Any
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Tell whether it said yes."""
        return not self.reason


@dataclass(frozen=True, slots=True)
class Examination:
    """Every check in order, every leaf of the conditions, and those that are to blame for what they say."""

    checks: tuple[Check, ...]
    leaves: tuple[LeafVerdict, ...] = ()
    blamed: tuple[LeafVerdict, ...] = ()

    @property
    def stopped_by(self) -> Check | None:
        """Give the first check that says no; None if the event starts a run that acts."""
        return next((check for check in self.checks if not check.passed), None)


class Examiner:
    """One automation, made ready to be asked about many events."""

    def __init__(self, automation: Automation) -> None:
        """Compile its conditions. Raises DefinitionError for conditions that cannot be."""
        self._automation = automation
        self._holds = compile_conditions(automation.definition.conditions)
        self._blame = compile_blame(automation.definition.conditions)
        self._standing = compile_standing(automation.definition.conditions)

    def examine(self, event: Event, known: Known) -> Examination:
        """Ask every check and every leaf, also those that the verdict does not need."""
        leaves = explain_conditions(self._automation.definition.conditions, self._scope(event, known))
        return Examination(tuple(self._checks(event, known)), tuple(leaves), self.blamed(event, known))

    def first_no(self, event: Event, known: Known) -> Check | None:
        """Give the first check that says no, and ask no other after it; None if there is none."""
        return next((check for check in self._checks(event, known) if not check.passed), None)

    def blamed(self, event: Event, known: Known) -> tuple[LeafVerdict, ...]:
        """Name the leaves because of which the conditions do not hold; none if they do."""
        return tuple(self._blame(self._scope(event, known)))

    def _scope(self, event: Event, known: Known) -> dict[str, Any]:
        """Give what the conditions see: of one that waits, the subject's state, as far as it is known."""
        if known.subject is None or not is_delayed(self._automation.definition):
            return gate_scope(event, known.at)
        return standing_scope(event, known.subject, None, known.at)

    def _holds_for(self, event: Event, known: Known) -> bool:
        if known.subject is None or not is_delayed(self._automation.definition):
            return self._holds(gate_scope(event, known.at))
        return self._standing.arms(event, known.subject, known.at)

    def _checks(self, event: Event, known: Known) -> Iterator[Check]:
        yield Check(CheckName.DEFINITION, "readable", "readable")
        for name in _ASKED:
            ask = _ASK.get(name, self._ask_delay)
            yield Check(name, *ask(event, self._automation, known))
        holds = self._holds_for(event, known)
        found, reason = ("hold", "") if holds else ("do not hold", "the conditions do not hold")
        yield Check(CheckName.CONDITIONS, "hold", found, reason)

    def _ask_delay(self, event: Event, automation: Automation, known: Known) -> Answer:
        return delay_said(event, automation, self._standing, known.subject, known.talk)


def examine(event: Event, automation: Automation, known: Known) -> Examination:
    """Say of every check in order what it says about an event and an automation."""
    return Examiner(automation).examine(event, known)


def unreadable(reason: str) -> Examination:
    """Say that nothing can be asked, because the stored definition cannot be read."""
    return Examination((Check(CheckName.DEFINITION, "readable", "unreadable", reason),))


def _ask_workspace(event: Event, automation: Automation, _known: Known) -> Answer:
    reason = "" if is_of_workspace(event, automation) else "the event is of another workspace"
    return automation.workspace_id, event.workspace_id, reason


def _ask_status(event: Event, automation: Automation, known: Known) -> Answer:
    status = automation.definition.status
    if known.deleted_at is not None:
        return AutomationStatus.ACTIVE, DELETED, "the automation was deleted"
    if is_active(event, automation):
        return AutomationStatus.ACTIVE, status, ""
    said = "the automation has never been active" if status is AutomationStatus.ACTIVE else ""
    return AutomationStatus.ACTIVE, status, said or f"the automation is {status}"


def _ask_activation(event: Event, automation: Automation, _known: Known) -> Answer:
    since = automation.activated_ms
    wanted = None if since is None else from_epoch_ms(since)
    reason = "" if is_late_enough(event, automation) else "the event is older than the activation"
    return wanted, from_epoch_ms(event.stamp[0]), reason


def _ask_age(event: Event, _automation: Automation, known: Known) -> Answer:
    is_young = event.stamp[0] >= known.oldest_ms
    reason = "" if is_young else "the event is older than RETENTION_DAYS less one day"
    return from_epoch_ms(known.oldest_ms), from_epoch_ms(event.stamp[0]), reason


def _ask_trigger(event: Event, automation: Automation, _known: Known) -> Answer:
    trigger = automation.definition.trigger
    if trigger.type is TriggerType.EVENT:
        wanted: Any = trigger.config.event_type
    else:
        wanted = [name for name, fed in FED_BY.items() if trigger.type in fed]
    fits = may_name if is_delayed(automation.definition) else feeds
    reason = "" if fits(event, automation) else f"{event.type} does not feed {trigger.type}"
    return wanted, event.type, reason


def _ask_database(event: Event, automation: Automation, _known: Known) -> Answer:
    wanted, found = automation.definition.scope_database_id, database_of(event)
    if automation.definition.trigger.type not in DATABASE_TRIGGERS:
        return None, None, ""
    said = "the event names no database" if found is None else "the event is of another database"
    return wanted, found, "" if is_in_scope(event, automation) else said


def _ask_properties(event: Event, automation: Automation, _known: Known) -> Answer:
    if automation.definition.trigger.type is not TriggerType.PROPERTY_CHANGED:
        return None, None, ""
    wanted, found = automation.definition.trigger.config.properties, sorted(changed_properties(event))
    if is_watched(event, automation):
        return wanted, found, ""
    said = "none of these properties has changed" if found else "the event names no changedProperties"
    return wanted, found, said


def _ask_sender(event: Event, automation: Automation, _known: Known) -> Answer:
    if is_from_a_person(event, automation):
        return "no machine", "no machine", ""
    return "no machine", "a machine", "an incoming message that no person wrote starts nothing"


def _ask_duplicate(event: Event, _automation: Automation, known: Known) -> Answer:
    earlier = known.earlier
    if earlier is None:
        return None, None, ""
    first = f"entry {earlier.entry_id}" if earlier.entry_id else "another event"
    run = f" and started run {earlier.run_id}" if earlier.run_id else ""
    said = "" if earlier.same else ", with another payload"
    reason = f"{first} came first under the key {event.key}{run}{said}"
    return None, earlier.run_id or earlier.entry_id, reason


def _ask_self_trigger(event: Event, automation: Automation, _known: Known) -> Answer:
    emitter = event.context.automation_id if event.context else None
    reason = "its own run emitted the event" if is_own_event(event, automation.id) else ""
    return None, emitter, reason


def _ask_depth(event: Event, _automation: Automation, known: Known) -> Answer:
    reason = f"the chain ends at depth {known.depth_max}" if is_too_deep(event.depth, known.depth_max) else ""
    return f"below {known.depth_max}", event.depth, reason


def _ask_actions(_event: Event, automation: Automation, _known: Known) -> Answer:
    count = len(automation.definition.actions)
    reason = "" if may_have_actions(count) else f"an automation has 1 to {MAX_ACTIONS} actions"
    return f"1 to {MAX_ACTIONS}", count, reason


_ASK: Final[Mapping[CheckName, Callable[[Event, Automation, Known], Answer]]] = MappingProxyType(
    {
        CheckName.WORKSPACE: _ask_workspace,
        CheckName.STATUS: _ask_status,
        CheckName.ACTIVATION: _ask_activation,
        CheckName.AGE: _ask_age,
        CheckName.TRIGGER: _ask_trigger,
        CheckName.DATABASE: _ask_database,
        CheckName.PROPERTIES: _ask_properties,
        CheckName.SENDER: _ask_sender,
        CheckName.DUPLICATE: _ask_duplicate,
        CheckName.SELF_TRIGGER: _ask_self_trigger,
        CheckName.DEPTH: _ask_depth,
        CheckName.ACTIONS: _ask_actions,
    }
)

# What waits is asked about by what the examiner has read of its conditions.
_ASKED: Final = (*[name for name in CheckName if name in _ASK or name is CheckName.DELAY],)
