"""What an idle rule says, as it is stored with an AI agent or a channel (docs/idle-sequences.md). Pure.

Whatever was stored can be read: what cannot be carried out raises MalformedIdleRule, or is no plan, and never
anything else.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeGuard

from shared.errors import ConfigError
from shared.model.flag_states import FlagState
from shared.model.idle_steps import IdleAction, IdleRuleKind

STEPS_MAX: Final = 3
DURATION_S_MAX: Final = 86_400
LEGACY_DURATION_S_MAX: Final = 2_592_000
MESSAGE_CHARS_MAX: Final = 4_096
TARGET_ID_CHARS_MAX: Final = 200
NO_OBJECT: Final = "must be an object"

# Whose rule is asked for: a workspace, an agent's or a channel's, its id.
RuleAsk = tuple[str, IdleRuleKind, str]

# Characters of no width, and spaces: nothing of them is seen.
_UNSEEN: Final = frozenset({"Cf", "Zs"})
_SAYS: Final = frozenset({IdleAction.FOLLOW_UP, IdleAction.RESOLVE})


class AssignType(StrEnum):
    """Whom a step gives the conversation to."""

    AUTO = "auto"
    DIVISION = "division"
    AGENT = "agent"


class IdleMode(StrEnum):
    """By which part of a configuration a plan goes."""

    STEPS = "steps"
    LEGACY = "legacy"
    CHANNEL = "channel"


class MalformedIdleRule(ConfigError):
    """A rule cannot be carried out: `field` is the one at fault, of the step `index`, counted from 0.

    `index` is None where no single step is at fault; a step at fault as a whole has the field `steps`.
    """

    def __init__(self, field: str, reason: str, index: int | None = None) -> None:
        """Keep all of it; the message joins them."""
        self.field = field
        self.reason = reason
        self.index = index
        super().__init__(f"{self.path} {reason}")

    @property
    def path(self) -> str:
        """Name the field with the step that it is of."""
        if self.index is None:
            return self.field
        step = f"steps[{self.index}]"
        return step if self.field == "steps" else f"{step}.{self.field}"


@dataclass(frozen=True, slots=True)
class AssignTarget:
    """Whom a conversation goes to: a division or an agent by its id, or whoever is chosen."""

    type: AssignType
    id: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class IdleStepRule:
    """One step: what it does, after which silence. `assign` is there for an assign step alone."""

    action: IdleAction
    duration: timedelta
    message: str | None
    assign: AssignTarget | None


@dataclass(frozen=True, slots=True)
class IdlePlan:
    """The steps that a rule has at a moment; `ignored` counts the stored ones that never run."""

    mode: IdleMode
    steps: tuple[IdleStepRule, ...]
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class RuleFound:
    """An agent or a channel with the plan of its rule, None for none that could run.

    `malformed` says what is wrong with a rule that cannot be carried out. What is not there has no name.
    """

    plan: IdlePlan | None
    name: str
    is_there: bool
    malformed: str | None


def agent_plan(parameters: object, state: FlagState) -> IdlePlan | None:
    """Give what an AI agent's rule is, with the flag in this state; None for no rule that could run.

    Raises MalformedIdleRule for steps that cannot be carried out, if the flag is on, and for no object.
    """
    if not isinstance(parameters, Mapping):
        raise MalformedIdleRule("parameters", NO_OBJECT)
    rule = idle_rule_of(parameters)
    if rule is None:
        return None
    steps = rule.get("steps")
    if state is FlagState.ON and steps not in (None, [], ()):
        return _steps_plan(steps)
    return _legacy_plan(rule)


def channel_plan(settings: object) -> IdlePlan | None:
    """Give a channel's rule, a single step; None for one that is off. Raises MalformedIdleRule."""
    if not isinstance(settings, Mapping):
        raise MalformedIdleRule("settings", NO_OBJECT)
    rule = settings.get("idle_rule")
    if rule is None:
        return None
    if not isinstance(rule, Mapping):
        raise MalformedIdleRule("idle_rule", NO_OBJECT)
    enabled = rule.get("enabled")
    if not isinstance(enabled, bool):
        raise MalformedIdleRule("enabled", "must be true or false")
    return IdlePlan(IdleMode.CHANNEL, (_step(rule, None),)) if enabled else None


def idle_rule_of(parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give an agent's rule as it is stored: the profile's, else its own; None where there is none."""
    profile = parameters.get("profile")
    rule = profile.get("idle_rule") if isinstance(profile, Mapping) else None
    found = parameters.get("idle_rule") if rule is None else rule
    return found if isinstance(found, Mapping) else None


def read_steps(steps: object) -> tuple[IdleStepRule, ...]:
    """Read steps that somebody wants to store. Raises MalformedIdleRule."""
    if not _is_list(steps) or not 1 <= len(steps) <= STEPS_MAX:
        raise MalformedIdleRule("steps", f"must contain between 1 and {STEPS_MAX} entries")
    return tuple(_step(entry, index) for index, entry in enumerate(steps))


def legacy_fault(rule: Mapping[str, Any]) -> MalformedIdleRule | None:
    """Say why the legacy keys of a rule could never run; None if they could, or there are none."""
    if rule.get("action") is None:
        return None
    try:
        _legacy_step(rule)
    except MalformedIdleRule as fault:
        return fault
    return None


def _steps_plan(steps: object) -> IdlePlan:
    if not _is_list(steps):
        raise MalformedIdleRule("steps", "must be a list")
    read = tuple(_step(entry, index) for index, entry in enumerate(steps[:STEPS_MAX]))
    return IdlePlan(IdleMode.STEPS, read, ignored=len(steps) - len(read))


def _legacy_plan(rule: Mapping[str, Any]) -> IdlePlan | None:
    if rule.get("action") is None or legacy_fault(rule) is not None:
        return None
    return IdlePlan(IdleMode.LEGACY, (_legacy_step(rule),))


def _step(entry: object, index: int | None) -> IdleStepRule:
    if not isinstance(entry, Mapping):
        raise MalformedIdleRule("steps", NO_OBJECT, index)
    action = _action(entry.get("action"), index)
    duration = _duration(entry.get("duration"), DURATION_S_MAX, "duration", index)
    message = _message(entry.get("message"), index)
    if action in _SAYS and message is None:
        raise MalformedIdleRule("message", f"is required for action {action}", index)
    target = _target(entry.get("assign"), "assign", index) if action is IdleAction.ASSIGN else None
    return IdleStepRule(action, duration, message, target)


def _legacy_step(rule: Mapping[str, Any]) -> IdleStepRule:
    """Read the one action of the legacy keys, whose values stand under its name."""
    action = _action(rule["action"], None)
    given = rule.get(action)
    if not isinstance(given, Mapping):
        raise MalformedIdleRule(action, NO_OBJECT)
    duration = _duration(given.get("duration"), LEGACY_DURATION_S_MAX, f"{action}.duration", None)
    message = _filled(given.get("message"))
    if action is IdleAction.FOLLOW_UP and message is None:
        raise MalformedIdleRule(f"{action}.message", f"is required for action {action}")
    target = _target(given, action, None) if action is IdleAction.ASSIGN else None
    return IdleStepRule(action, duration, message, target)


def _action(value: object, index: int | None) -> IdleAction:
    if not isinstance(value, str) or value not in list(IdleAction):
        raise MalformedIdleRule("action", f"must be one of {', '.join(IdleAction)}", index)
    return IdleAction(value)


def _duration(value: object, most: int, field: str, index: int | None) -> timedelta:
    """Read whole seconds, written as an integer: neither 600.0 nor true is one."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise MalformedIdleRule(field, f"must be a whole number between 1 and {most} seconds", index)
    return timedelta(seconds=value)


def _message(value: object, index: int | None) -> str | None:
    if value is not None and not isinstance(value, str):
        raise MalformedIdleRule("message", "must be a text", index)
    if isinstance(value, str) and len(value) > MESSAGE_CHARS_MAX:
        raise MalformedIdleRule("message", f"must have at most {MESSAGE_CHARS_MAX:,} characters", index)
    return _filled(value)


def _target(value: object, field: str, index: int | None) -> AssignTarget:
    if not isinstance(value, Mapping):
        raise MalformedIdleRule(field, "target is required for action assign", index)
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in list(AssignType):
        raise MalformedIdleRule(field, f"type must be one of {', '.join(AssignType)}", index)
    if kind == AssignType.AUTO:
        return AssignTarget(AssignType.AUTO, None, None)
    named = value.get(kind)
    id_ = _target_id(named.get("id")) if isinstance(named, Mapping) else None
    if not isinstance(named, Mapping) or id_ is None:
        raise MalformedIdleRule(field, f"target is incomplete: {kind}.id is required", index)
    if len(id_) > TARGET_ID_CHARS_MAX:
        most = f"must have at most {TARGET_ID_CHARS_MAX} characters"
        raise MalformedIdleRule(field, f"target cannot be used: {kind}.id {most}", index)
    return AssignTarget(AssignType(kind), id_, _filled(named.get("name")))


def _target_id(value: object) -> str | None:
    """Read an id: a text, or a whole number as its digits."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return str(value)
    return _filled(value)


def _filled(value: object) -> str | None:
    """Give a text with a character that can be seen; None for any other."""
    return value if isinstance(value, str) and any(map(_is_seen, value)) else None


def _is_seen(char: str) -> bool:
    return not char.isspace() and unicodedata.category(char) not in _UNSEEN


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)
