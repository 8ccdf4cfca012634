"""What an author writes: the schema of an automation, and how it is read and refused."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    Field,
    JsonValue,
    SerializeAsAny,
    StrictInt,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from shared.action_types import action_types, config_model
from shared.errors import DefinitionError, Fault
from shared.masking import is_masked
from shared.model.action_config import ActionConfig
from shared.model.names import check_name
from shared.model.parts import Part, counted
from shared.model.plain_tree import tree_faults
from shared.model.refusals import Refused, faults_of, join, unknown
from shared.model.statuses import AutomationStatus
from shared.model.templated import walk_texts
from shared.model.triggers import DATABASE_TRIGGERS, EVENTLESS_TRIGGERS, MESSAGE_TRIGGERS, Name, Trigger
from shared.model.yaml_text import WHOLE, read_yaml
from shared.plugins import validate_config
from shared.rules.condition_checks import GROUPS
from shared.rules.conditions import check_conditions
from shared.rules.secret_names import check_secrets, check_without_secrets
from shared.rules.templates import check_template

MAX_ACTIONS: Final = 50
MAX_DELAY_MINUTES: Final = 43_200
MAX_RETRIES: Final = 100
MAX_TIMEOUT_MS: Final = 3_600_000
LIST_KEY: Final = "automations"
_IS_MASKED: Final = "is masked; give the value itself, or leave out what does not change"
_KEY: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_MESSAGE: Final = ("message", "payload.message")


def _check_key(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise ValueError(
            "must be 1 to 100 of the characters a to z, 0 to 9, - and _, with a letter or digit in front"
        )
    return key


Key = Annotated[str, AfterValidator(_check_key)]
Title = Annotated[str, AfterValidator(check_name)]


class Action(Part):
    """One step: what it does, and how often and how long it may try (else the engine's defaults)."""

    type: str
    config: SerializeAsAny[ActionConfig]
    retries: Annotated[StrictInt, Field(ge=0, le=MAX_RETRIES)] | None = None
    timeout_ms: Annotated[StrictInt, Field(ge=1, le=MAX_TIMEOUT_MS)] | None = None

    @field_validator("type")
    @classmethod
    def _check_type(cls, name: str) -> str:
        if config_model(name) is None:
            raise ValueError(unknown(name, action_types()))
        return name

    @field_validator("config", mode="plain")
    @classmethod
    def _check_config(cls, given: object, info: ValidationInfo) -> ActionConfig:
        model = config_model(info.data.get("type", ""))
        if model is None:
            return ActionConfig()
        try:
            config = validate_config(model, given)
        except ValidationError as error:
            raise Refused(faults_of(error, model)) from error
        faults = list(_template_faults(config))
        if faults:
            raise Refused(faults)
        return config


class Definition(Part):
    """An automation as its author wrote it. Without a `status` it is ACTIVE: what is applied runs."""

    key: Key
    name: Title
    status: AutomationStatus = AutomationStatus.ACTIVE
    trigger: Trigger
    database_id: Name | None = Field(default=None, alias="databaseId")
    conditions: dict[str, JsonValue] | None = None
    execution_delay: Annotated[StrictInt, Field(ge=1, le=MAX_DELAY_MINUTES)] | None = None
    actions: Annotated[tuple[Action, ...], counted(1, MAX_ACTIONS)]

    @field_validator("database_id")
    @classmethod
    def _check_scope(cls, database_id: str | None, info: ValidationInfo) -> str | None:
        trigger = _trigger(info)
        if database_id is not None and trigger is not None and trigger.type not in DATABASE_TRIGGERS:
            raise ValueError(f"does not go with {trigger.type}, which is about no database")
        return database_id

    @field_validator("conditions")
    @classmethod
    def _check_conditions(
        cls, tree: dict[str, JsonValue] | None, info: ValidationInfo
    ) -> dict[str, JsonValue] | None:
        if tree is None:
            return None
        faults = [
            Fault(fault.path.removeprefix("conditions").lstrip("."), fault.message)
            for fault in check_conditions(tree)
        ]
        trigger = _trigger(info)
        if not faults and trigger is not None and trigger.type not in MESSAGE_TRIGGERS:
            faults = [
                Fault(path, f"reads a message, which {trigger.type} has not")
                for path in _message_fields(tree)
            ]
        if faults:
            raise Refused(faults)
        return tree

    @field_validator("execution_delay")
    @classmethod
    def _check_delay(cls, minutes: int | None, info: ValidationInfo) -> int | None:
        trigger = _trigger(info)
        if minutes is not None and trigger is not None and trigger.type in EVENTLESS_TRIGGERS:
            raise ValueError(f"does not go with {trigger.type}")
        return minutes

    @property
    def scope_database_id(self) -> str | None:
        """The database whose events count; None means any."""
        return self.database_id or self.trigger.config.database_id


@dataclass(frozen=True, slots=True)
class Automation:
    """An automation as it is stored. Events before `activated_ms` never match; None: never active yet."""

    id: str
    workspace_id: str
    version: int
    definition: Definition
    activated_ms: int | None
    created_at: datetime


def parse_definition(raw: Mapping[str, Any]) -> Definition:
    """Read a definition from its JSON tree. Raises DefinitionError with every fault and its path."""
    faults = tree_faults(raw)
    if faults:
        raise DefinitionError(faults)
    try:
        return Definition.model_validate(raw)
    except ValidationError as error:
        raise DefinitionError(faults_of(error, Definition)) from error


def definition_to_json(definition: Definition) -> dict[str, Any]:
    """Write a definition as the JSON tree that `parse_definition` reads; keys that were left out stay out."""
    return definition.model_dump(mode="json", by_alias=True)


def load_yaml(text: str) -> list[Definition]:
    """Read a file of automations: a list, one mapping, or `automations:` with a list.

    Raises DefinitionError with the faults of all of them; a list's paths begin with the position (`[2].key`).
    """
    document = read_yaml(text)
    definitions: list[Definition] = []
    faults: list[Fault] = []
    first_of: dict[str, str] = {}
    for where, raw in _entries(document):
        try:
            definition = parse_authored(raw)
        except DefinitionError as error:
            faults += [Fault(join(where, fault.path) or WHOLE, fault.message) for fault in error.faults]
            continue
        if definition.key in first_of:
            faults.append(
                Fault(join(where, "key"), f"{definition.key!r} is the key of {first_of[definition.key]} too")
            )
        first_of.setdefault(definition.key, where)
        definitions.append(definition)
    if faults:
        raise DefinitionError(faults)
    return definitions


def parse_authored(raw: Any) -> Definition:
    """Read what an author hands in: as `parse_definition` does, but never what was masked for showing."""
    masked = () if tree_faults(raw) else tuple(path for path, text in walk_texts(raw) if is_masked(text))
    faults = [Fault(path, _IS_MASKED) for path in masked]
    try:
        definition = parse_definition(raw)
    except DefinitionError as error:
        faults = [*faults, *(fault for fault in error.faults if fault.path not in masked)]
        raise DefinitionError(faults) from error
    if faults:
        raise DefinitionError(faults)
    return definition


def _entries(document: Any) -> list[tuple[str, Any]]:
    prefix = ""
    if isinstance(document, dict) and LIST_KEY in document:
        surplus = [Fault(str(key), f"does not go with {LIST_KEY}") for key in document if key != LIST_KEY]
        if surplus:
            raise DefinitionError(surplus)
        prefix, document = LIST_KEY, document[LIST_KEY]
    elif isinstance(document, dict):
        return [("", document)]
    if not isinstance(document, list) or not document:
        raise DefinitionError([Fault(prefix or WHOLE, "must hold at least one automation")])
    return [(f"{prefix}[{index}]", raw) for index, raw in enumerate(document)]


def _trigger(info: ValidationInfo) -> Trigger | None:
    """Give the trigger, which is read first; None if it was refused."""
    found = info.data.get("trigger")
    return found if isinstance(found, Trigger) else None


def _template_faults(config: ActionConfig) -> Iterator[Fault]:
    given = config.model_dump(mode="json")
    rendered = {key: value for key, value in given.items() if key not in config.template_free}
    check_asking = check_secrets if config.takes_secrets else check_without_secrets
    for path, text in walk_texts(rendered):
        said = check_template(text) or check_asking(text)
        if said is not None:
            yield Fault(path, said)


def _message_fields(tree: JsonValue, path: str = "") -> Iterator[str]:
    """Give the path of every leaf's field that is a message or inside one; the tree has been checked."""
    if not isinstance(tree, dict):
        return
    for group in GROUPS:
        below = tree.get(group)
        if isinstance(below, list):
            for index, each in enumerate(below):
                yield from _message_fields(each, join(path, f"{group}[{index}]"))
        else:
            yield from _message_fields(below, join(path, group))
    field = tree.get("field")
    if isinstance(field, str) and any(field == name or field.startswith(f"{name}.") for name in _MESSAGE):
        yield join(path, "field")
