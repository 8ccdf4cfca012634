"""Conditions over whole events: templates as values, what an event changed, the reasons given."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.rules.conditions import AS_TEXT, LeafVerdict, compile_conditions, explain_conditions

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)


class TestTemplatedValues:
    """A value may be a template over the event itself."""

    @staticmethod
    def _judge(company: object, event: Mapping[str, object]) -> tuple[bool, str]:
        tree = {"field": "company.id", "op": "eq", "value": "{{ after.companyId }}"}
        data = {"company": {"id": company}, **event}
        (verdict,) = explain_conditions(tree, data)
        assert compile_conditions(tree)(data) is verdict.passed
        return verdict.passed, verdict.reason

    def test_a_present_null_is_null(self) -> None:
        assert self._judge("c1", {"after": {"companyId": None}})[0] is False
        assert self._judge(None, {"after": {"companyId": None}}) == (True, "")

    def test_an_absent_path_meets_nothing_and_is_named(self) -> None:
        for company in ("c1", None):
            passed, reason = self._judge(company, {"after": {}})
            assert not passed
            assert "after.companyId" in reason

    @pytest.mark.parametrize("op", ["ne", "not_contains", "gte", "starts_with", "changed_to"])
    def test_no_operator_is_met_by_an_absent_value(self, op: str) -> None:
        tree = {"field": "a", "op": op, "value": "{{ b }}"}
        assert not compile_conditions(tree)({"a": "x", "changedProperties": ["a"]})

    def test_types_are_kept(self) -> None:
        assert compile_conditions({"field": "a", "op": "gt", "value": "{{ b }}"})({"a": "10", "b": 9})
        assert compile_conditions({"field": "a", "op": "in", "value": "{{ b }}"})({"a": 2, "b": [1, 2]})
        assert compile_conditions({"field": "a", "op": "in", "value": ["x", "{{ b }}"]})({"a": 2, "b": 2})
        assert compile_conditions({"field": "a", "op": "eq", "value": "{{ b }}-{{ c }}"})(
            {"a": "1-2", "b": 1, "c": 2}
        )
        assert compile_conditions({"field": "a", "op": "before", "value": "{{ now }}"})(
            {"a": "2026-01-01", "now": NOW}
        )

    @pytest.mark.parametrize("op", ["contains", "starts_with", "ends_with"])
    @pytest.mark.parametrize("empty", ["", None])
    def test_an_empty_value_is_part_of_nothing(self, op: str, empty: object) -> None:
        assert not compile_conditions({"field": "a", "op": op, "value": "{{ b }}"})({"a": "x", "b": empty})

    def test_a_template_that_fails_meets_nothing(self) -> None:
        tree = {"field": "a", "op": "ne", "value": "{{ b | divided_by: 0 }}"}
        (verdict,) = explain_conditions(tree, {"a": 1, "b": 1})
        assert not verdict.passed
        assert verdict.reason


RECORD = {
    "type": "record.updated",
    "properties": {"status": "done", "note": "x"},
    "changedProperties": ["status"],
    "before": {"status": "open"},
}
CONVERSATION = {
    "type": "conversation.updated",
    "conversation": {"id": "c1", "status": "pending"},
    "changedProperties": ["status"],
    "before": {"conversation": {"status": "open"}},
}
ORDER = {
    "type": "order.updated",
    "subject": {"type": "order", "id": "o1"},
    "order": {"state": "paid"},
    "customer": {"state": "new"},
    "changedProperties": ["order.state"],
    "before": {"state": "due"},
}


@pytest.mark.parametrize(
    ("event", "field", "before", "after"),
    [
        (RECORD, "properties.status", "open", "done"),
        (RECORD, "status", "open", "done"),
        (RECORD, "payload.properties.status", "open", "done"),
        (CONVERSATION, "conversation.status", "open", "pending"),
        (ORDER, "order.state", "due", "paid"),
    ],
)
def test_a_change_is_found_by_either_name(event: dict[str, Any], field: str, before: str, after: str) -> None:
    def said(op: str, value: object = None) -> bool:
        return compile_conditions({"field": field, "op": op, "value": value})(event)

    assert said("changed")
    assert said("changed_to", after)
    assert not said("changed_to", before)
    assert said("changed_from", before)
    assert not said("changed_from", after)


def test_what_an_event_does_not_list_was_not_changed() -> None:
    for field, event in (
        ("properties.note", RECORD),
        ("customer.state", ORDER),
        ("conversation.id", CONVERSATION),
    ):
        assert not compile_conditions({"field": field, "op": "changed"})(event)
        assert compile_conditions({"not": {"field": field, "op": "changed"}})(event)


@pytest.mark.parametrize("listed", [None, [], "status", [None, 5], {"status": 1}])
def test_an_event_that_lists_no_change_changed_nothing(listed: object) -> None:
    event = {**RECORD, "changedProperties": listed}
    for op, value in (("changed", None), ("changed_to", "done"), ("changed_from", "open")):
        assert not compile_conditions({"field": "status", "op": op, "value": value})(event)


def test_a_property_that_was_not_there_before_came_from_null() -> None:
    tree = {"field": "status", "op": "changed_from", "value": None}
    assert compile_conditions(tree)({**RECORD, "before": {}})
    assert not compile_conditions(tree)({**RECORD, "before": None})


def test_an_explanation_names_each_leaf() -> None:
    tree = {
        "all": [
            {"field": "n", "op": "gt", "value": 5},
            {"any": [{"field": "who.name", "op": "eq", "value": "Ann"}]},
        ]
    }
    assert explain_conditions(tree, {"n": "abc", "who": {"name": "Ann"}}) == [
        LeafVerdict("conditions.all[0]", "n", "gt", 5, "abc", passed=False, reason="n must be a number"),
        LeafVerdict("conditions.all[1].any[0]", "who.name", "eq", "Ann", "Ann", passed=True, reason=""),
    ]


@pytest.mark.parametrize(
    ("tree", "event", "reason"),
    [
        ({"field": "a.b", "op": "eq", "value": 1}, {}, "a.b is not set"),
        ({"field": "a", "op": "eq", "value": 1}, {"a": None}, "a is null"),
        ({"field": "a", "op": "eq", "value": 1}, {"a": 2}, "a does not meet eq"),
        ({"field": "a", "op": "gt", "value": "9"}, {"a": "10"}, f"a does not meet gt{AS_TEXT}"),
        ({"field": "a", "op": "gte", "value": "9"}, {"a": "10"}, f"a does not meet gte{AS_TEXT}"),
        ({"field": "a", "op": "lt", "value": "10"}, {"a": "9"}, f"a does not meet lt{AS_TEXT}"),
        (
            {"field": "a", "op": "lte", "value": "{{ b }}"},
            {"a": "9", "b": "10"},
            f"a does not meet lte{AS_TEXT}",
        ),
        (
            {"field": "a", "op": "between", "value": ["2", "30"]},
            {"a": "10"},
            f"a does not meet between{AS_TEXT}",
        ),
        ({"field": "a", "op": "gt", "value": "9", "as": "text"}, {"a": "10"}, "a does not meet gt"),
        ({"field": "a", "op": "gt", "value": "9", "as": "number"}, {"a": "8"}, "a does not meet gt"),
        ({"field": "a", "op": "gt", "value": 9}, {"a": "8"}, "a does not meet gt"),
        ({"field": "a", "op": "gt", "value": "b"}, {"a": "10"}, "a does not meet gt"),
        ({"field": "a", "op": "eq", "value": "9"}, {"a": "10"}, "a does not meet eq"),
        ({"field": "a", "op": "between", "value": [1, 2]}, {"a": "x"}, "a must be a number"),
        ({"field": "a", "op": "changed"}, {"a": 1}, "a was not changed"),
        (
            {"field": "a", "op": "within_last", "value": "1h"},
            {"a": "2026-01-01"},
            "the present time is not known",
        ),
        ({"field": "a", "op": "eq", "value": "{{ b.c }}"}, {"a": 1}, "the value needs b.c, which is not set"),
    ],
)
def test_reasons(tree: dict[str, Any], event: dict[str, Any], reason: str) -> None:
    (verdict,) = explain_conditions(tree, event)
    assert (verdict.passed, verdict.reason) == (False, reason)
