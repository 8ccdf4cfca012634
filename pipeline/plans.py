"""The automation as a run needs it: conditions compiled, actions in order.

Kept by version, checked at each claim.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection

from pipeline.retrying import BY_JUDGEMENT, RetryPolicy
from pipeline.verdicts import Mark
from shared.action_types import config_model
from shared.db.automations import AutomationRow, AutomationState, automation_states, find_automations
from shared.errors import DefinitionError
from shared.model.actions import ActionConfig
from shared.model.automation import parse_definition
from shared.model.statuses import AutomationStatus
from shared.model.templated import walk_texts
from shared.rules.conditions import compile_conditions
from shared.rules.rendering import ConfigTemplate, prepare_config
from shared.rules.secret_names import secret_names
from shared.rules.templates import has_template
from shared.settings import Settings

KEPT: Final = 10_000
DEFINITION_INVALID: Final = "DEFINITION_INVALID"
UNKNOWN_ACTION: Final = "UNKNOWN_ACTION"


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """One action of a plan. `position` counts from 1; `retries` caps the attempts after the first.

    `secrets` are the names of those that its templates ask for.
    """

    position: int
    type: str
    config: ActionConfig
    template: ConfigTemplate[ActionConfig]
    retries: int
    timeout: timedelta
    secrets: tuple[str, ...] = ()
    policy: RetryPolicy = BY_JUDGEMENT


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run does. `fault` is set where the definition cannot be read any more.

    `automation_id` is empty where there is no automation; what such a run does may leave a `mark`.
    """

    automation_id: str
    name: str
    state: AutomationState
    conditions: Mapping[str, Any] | None
    holds: Callable[[Mapping[str, object]], bool]
    actions: tuple[PlannedAction, ...]
    reads_subject: bool
    fault: str | None
    fault_code: str = DEFINITION_INVALID
    mark: Mark | None = None


GONE: Final = AutomationState(version=0, status=AutomationStatus.ARCHIVED, is_deleted=True)


class Plans:
    """Compiled automations of this process, the newest versions only."""

    def __init__(self, settings: Settings, kept: int = KEPT) -> None:
        """Take the defaults for retries and timeouts from the settings; remember `kept` plans at most."""
        self._retries = settings.auto_run_max_retries
        self._timeout = timedelta(milliseconds=settings.action_timeout_ms)
        self._kept_most = kept
        self._kept: dict[str, Plan] = {}

    def current(self, conn: Connection, automation_ids: Iterable[str]) -> dict[str, Plan]:
        """Give each automation's plan as it stands in this transaction.

        One that was erased counts as deleted.
        """
        wanted = sorted(set(automation_ids))
        states = automation_states(conn, wanted)
        plans = {
            automation_id: kept
            for automation_id in wanted
            if (kept := self._kept.get(automation_id)) and kept.state == states.get(automation_id)
        }
        stale = [automation_id for automation_id in wanted if automation_id not in plans]
        rows = find_automations(conn, stale) if stale else {}
        for automation_id in stale:
            plans[automation_id] = self._compile(automation_id, rows.get(automation_id))
            self._keep(automation_id, plans[automation_id])
        return plans

    def _keep(self, automation_id: str, plan: Plan) -> None:
        self._kept.pop(automation_id, None)
        if len(self._kept) >= self._kept_most:
            self._kept.pop(next(iter(self._kept)))
        self._kept[automation_id] = plan

    def _compile(self, automation_id: str, row: AutomationRow | None) -> Plan:
        if row is None:
            return _empty(automation_id, "", GONE, None)
        state = AutomationState(row.version, row.status, row.deleted_at is not None)
        try:
            definition = parse_definition(row.definition)
        except DefinitionError as error:
            return _unreadable(automation_id, row, state, error)
        actions = tuple(
            PlannedAction(
                position=position,
                type=action.type,
                config=action.config,
                template=prepare_config(action.config),
                retries=self._retries if action.retries is None else action.retries,
                timeout=timedelta(milliseconds=action.timeout_ms) if action.timeout_ms else self._timeout,
                secrets=_secrets_of(action.config),
            )
            for position, action in enumerate(definition.actions, start=1)
        )
        return Plan(
            automation_id=automation_id,
            name=definition.name,
            state=state,
            conditions=definition.conditions,
            holds=compile_conditions(definition.conditions),
            actions=actions,
            reads_subject=_reads_subject(row.definition.get("actions")),
            fault=None,
        )


def _reads_subject(actions: Any) -> bool:
    """Tell whether a template may ask for the subject; one that only seems to costs a read."""
    return any(has_template(text) and "subject" in text for _, text in walk_texts(actions))


def _secrets_of(config: ActionConfig) -> tuple[str, ...]:
    return secret_names(text for _, text in walk_texts(config.model_dump(mode="json")))


def _unreadable(
    automation_id: str, row: AutomationRow, state: AutomationState, error: DefinitionError
) -> Plan:
    """Make the plan of a definition that this process cannot read: it lacks a plug-in, or it is invalid."""
    plan = _empty(automation_id, row.name, state, str(error))
    missing = [name for name in _types_in(row.definition) if config_model(name) is None]
    if not missing:
        return plan
    said = f"no executor does {', '.join(missing)}: its plug-in is not installed here, or broken"
    return replace(plan, fault=said, fault_code=UNKNOWN_ACTION)


def _types_in(definition: Mapping[str, Any]) -> list[str]:
    actions = definition.get("actions")
    written = actions if isinstance(actions, list) else []
    return [str(each["type"]) for each in written if isinstance(each, Mapping) and "type" in each]


def _empty(automation_id: str, name: str, state: AutomationState, fault: str | None) -> Plan:
    return Plan(automation_id, name, state, None, lambda event: False, (), reads_subject=False, fault=fault)
