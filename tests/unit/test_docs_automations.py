"""What the documentation says about automations is what the schema takes."""

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from executors.classify import TRANSIENT_ERRNOS, TRANSIENT_STATES
from executors.send_webhook import sign
from pipeline.guards import guard
from pipeline.plans import Plan, PlannedAction
from shared.db.automations import AutomationState
from shared.model.actions import EmitEvent
from shared.model.automation import Action, Definition, load_yaml
from shared.model.events import Context, decode_entry
from shared.model.moves import SkipReason
from shared.model.runs import Claim, ClaimedRun, Failed, FinishedAction, QueueKind, RunSource, Succeeded
from shared.model.statuses import AutomationStatus
from shared.model.triggers import TAKES, Settings, TriggerType
from shared.rules.conditions import check_conditions
from shared.rules.liquid_engine import MAX_LOOPS, MAX_MARK_CHARS, MAX_NESTING, MAX_TEMPLATE_CHARS
from shared.rules.liquid_filters import (
    ENVIRONMENT_TEXT_FILTERS,
    ENVIRONMENT_VALUE_FILTERS,
    TEXT_FILTERS,
    VALUE_FILTERS,
)
from shared.rules.operators import OPERATORS, Shape
from shared.rules.rendering import prepare_config
from shared.rules.triggering import FED_BY
from tests.pages import names, page

PAGE = page("automations.md")
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


@pytest.mark.parametrize(("at", "model"), [(0, Definition), (1, Action)])
def test_the_keys_of_a_definition_are_those_of_the_model(at: int, model: type[BaseModel]) -> None:
    documented = {names(row[0])[0]: row[2] for row in PAGE.table("The definition", at)}
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    assert documented.keys() == fields.keys()
    for name, field in fields.items():
        assert (documented[name] == "required") is field.is_required()


def test_each_trigger_has_its_events_and_settings() -> None:
    documented = {names(row[0])[0]: row[1:] for row in PAGE.table("Triggers")}
    assert documented.keys() == {each.value for each in TriggerType}
    for kind in TriggerType:
        started_by, needs, may_have = documented[kind]
        takes = TAKES.get(kind, Settings())
        assert (names(needs), names(may_have)) == ([*takes.needed], [*takes.allowed])
        for event_type in (each for each, fed in FED_BY.items() if kind in fed):
            assert started_by == f"`{event_type}`"


def test_each_operator_has_its_readings() -> None:
    documented = {names(row[0])[0]: (row[1], row[2]) for row in PAGE.table("Operators")}
    assert documented.keys() == OPERATORS.keys()
    for name, operator in OPERATORS.items():
        value, kinds = documented[name]
        assert {each for each in kinds.split(", ") if each} == {kind.value for kind in operator.kinds}
        assert (value == "none") is (operator.shape is Shape.NOTHING)


def test_the_filters_are_all_there() -> None:
    written = re.search(r"^Filters: (.+?)\.$", PAGE.text, re.DOTALL | re.MULTILINE)
    assert written is not None
    tables = (TEXT_FILTERS, VALUE_FILTERS, ENVIRONMENT_TEXT_FILTERS, ENVIRONMENT_VALUE_FILTERS)
    known = {"default"}.union(*tables)
    assert set(names(written[1])) == known


def test_the_limits_of_templates_are_told() -> None:
    limits = next(line for line in PAGE.text.splitlines() if line.startswith("Limits: "))
    assert [int(each.replace(",", "")) for each in re.findall(r"[\d,]*\d", limits)[:4]] == [
        MAX_TEMPLATE_CHARS,
        MAX_MARK_CHARS,
        MAX_LOOPS,
        MAX_NESTING,
    ]


def test_what_may_be_tried_again_is_told() -> None:
    told = " ".join(" ".join(row) for row in PAGE.table("Errors") if row[1] == "yes")
    assert all(state in told for state in TRANSIENT_STATES)
    assert all(name in told for name in TRANSIENT_ERRNOS.values())


def test_the_examples_are_taken() -> None:
    examples = PAGE.blocks("yaml")
    definitions = [load_yaml(block.text) for block in examples if block.section == "The definition"]
    assert [each.key for each in definitions[0]] == ["tell-shop"]
    (scheduled,) = [load_yaml(block.text) for block in examples if block.section == "Schedules"]
    assert [each.trigger.type for each in scheduled] == [TriggerType.SCHEDULE]


def test_the_conditions_of_the_example_are_taken() -> None:
    (example,) = [block for block in PAGE.blocks("yaml") if block.section == "Conditions"]
    action = "actions: [{type: CREATE_NOTIFICATION, config: {title: t}}]"
    text = f"key: k\nname: n\ntrigger: {{type: CONVERSATION_UPDATED}}\n{action}\n{example.text}"
    assert check_conditions(load_yaml(text)[0].conditions) == []


def test_the_receiver_of_the_example_knows_a_genuine_call() -> None:
    (example,) = PAGE.blocks("python")
    shown: dict[str, Any] = {}
    exec(compile(example.text, "automations.md", "exec"), shown)
    at, body = datetime.now(UTC), '{"name":"Zoë"}'.encode()
    headers = {
        "webhook-id": "0190-run:1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": sign(SECRET, "0190-run:1", at, body),
    }
    assert shown["is_genuine"](SECRET, headers, body)
    assert not shown["is_genuine"](SECRET, headers, body + b" ")
    assert not shown["is_genuine"](SECRET, {**headers, "webhook-timestamp": "1000000000"}, body)


def test_the_guards_are_in_the_order_of_the_page() -> None:
    rows = PAGE.table("Guards")
    told = [names(row[2])[-1] for row in rows[:-1]]
    assert told == list(endings_one_after_the_other())
    assert names(rows[-1][2])[-1] == SkipReason.CONDITIONS


def endings_one_after_the_other() -> Iterator[str]:
    """Break everything that a guard looks at, then mend it in the order in which the guards complain."""
    state = AutomationState(version=1, status=AutomationStatus.PAUSED, is_deleted=True)
    plan = Plan("a", "A", state, None, lambda event: True, (), reads_subject=False, fault="unreadable")
    run = claimed(stop_reason="CANCELLED")
    event = decode_entry("1-0", {b"type": b"x.y", b"workspaceId": b"w", b"payload": b"{}"})
    event = replace(event, context=Context("a", "r", "r", 9))
    config = EmitEvent(event_type="x.y")
    action = PlannedAction(1, "EMIT_EVENT", config, prepare_config(config), 0, timedelta(seconds=1))
    yield ending(guard(run, plan, event, 5))
    plan = replace(plan, state=replace(state, is_deleted=False))
    yield ending(guard(run, plan, event, 5))
    run = replace(run, stop_reason=None)
    yield ending(guard(run, plan, event, 5))
    run = replace(run, finished=(FinishedAction(1, "SEND_WEBHOOK", {}),))
    yield ending(guard(run, plan, event, 5))
    event = replace(event, context=None)
    yield ending(guard(run, plan, event, 5))
    run = replace(run, depth=0)
    yield ending(guard(run, plan, event, 5))
    plan = replace(plan, fault=None)
    yield ending(guard(run, plan, event, 5))
    plan = replace(plan, actions=(action,))
    yield ending(guard(run, plan, event, 5))


def ending(outcome: Succeeded | Failed | None) -> str:
    assert outcome is not None
    return str(outcome.skipped) if isinstance(outcome, Succeeded) else outcome.error.code


def claimed(stop_reason: str | None) -> ClaimedRun:
    return ClaimedRun(
        claim=Claim("r", 1),
        workspace_id="w",
        automation_id="a",
        source=RunSource.EVENT,
        source_id="a:e",
        trigger_type="EVENT",
        event={},
        depth=9,
        root_run_id="r",
        retry_count=0,
        failures=0,
        crash_count=0,
        started_at=datetime.now(UTC),
        queue=QueueKind.MAIN,
        finished=(),
        stop_reason=stop_reason,
    )
