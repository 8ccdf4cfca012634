"""Runs and plans as values, for tests that need no database; name only what a test is about."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pipeline.plans import Plan, PlannedAction
from shared.db.automations import AutomationState
from shared.model.actions import CreateNotification, SendWebhook
from shared.model.events import Context, Event, event_to_json
from shared.model.runs import Claim, ClaimedRun, FinishedAction, QueueKind, RunSource
from shared.model.statuses import AutomationStatus
from shared.rules.conditions import compile_conditions
from shared.rules.rendering import prepare_config

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LOCAL, HOOK = "CREATE_NOTIFICATION", "SEND_WEBHOOK"
CONFIGS = {LOCAL: CreateNotification(title="t"), HOOK: SendWebhook(url="https://example.test/")}


def event(context: Context | None = None, **payload: Any) -> Event:
    """Make an event with this payload."""
    return Event("1772366400000-0", "order.placed", "w1", payload, "e1", NOW, context, None, sanitized=False)


def claimed(*done: FinishedAction, **keys: Any) -> ClaimedRun:
    """Make a run claimed for the first time, with checkpoints where a test wants them."""
    told: Event = keys.pop("told", event())
    run = ClaimedRun(
        claim=Claim("r1", 1),
        workspace_id="w1",
        automation_id="a1",
        source=RunSource.EVENT,
        source_id="a1:e1",
        trigger_type="EVENT",
        event=event_to_json(told),
        depth=told.depth,
        root_run_id="r1",
        retry_count=0,
        failures=0,
        crash_count=0,
        started_at=NOW,
        queue=QueueKind.MAIN,
        stop_reason=None,
        finished=done,
    )
    return replace(run, **keys)


def done(position: int, type_: str = HOOK, **output: Any) -> FinishedAction:
    """Make a checkpoint."""
    return FinishedAction(position, type_, output)


def action(position: int = 1, type_: str = HOOK, retries: int = 8) -> PlannedAction:
    """Make an action of a plan."""
    return PlannedAction(
        position, type_, CONFIGS[type_], prepare_config(CONFIGS[type_]), retries, timedelta(seconds=30)
    )


def plan(*types: str, conditions: Mapping[str, Any] | None = None, **keys: Any) -> Plan:
    """Make the plan of an ACTIVE automation with actions of these types."""
    holds: Callable[[Mapping[str, object]], bool] = compile_conditions(conditions)
    made = Plan(
        automation_id="a1",
        name="An automation",
        state=AutomationState(1, AutomationStatus.ACTIVE, is_deleted=False),
        conditions=conditions,
        holds=holds,
        actions=tuple(action(at, type_) for at, type_ in enumerate(types, start=1)),
        reads_subject=False,
        fault=None,
    )
    return replace(made, **keys)
