"""Condition trees: how they combine, and what is refused when they are saved."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import DefinitionError
from shared.rules.conditions import check_conditions, compile_conditions, explain_conditions
from shared.rules.operators import OPERATORS

TRUE = {"field": "yes", "op": "eq", "value": True}
FALSE = {"field": "yes", "op": "eq", "value": False}
DATA = {"yes": True}

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["2026-01-01", "7"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=8,
)
VALUES: Mapping[str, Any] = {
    "in": ["x", 7],
    "not_in": ["x", 7],
    "between": [1, 5],
    "before": "2026-01-01",
    "after": "2026-01-01T00:00:00Z",
    "within_last": "2h",
    "matches": "^x+$",
}
NO_VALUE = frozenset({"is_empty", "is_not_empty", "changed"})


def leaf(op: str) -> dict[str, Any]:
    """Make a valid leaf of an operator."""
    named = {"field": "a.b", "op": op}
    return named if op in NO_VALUE else {**named, "value": VALUES.get(op, "7")}


LEAVES = st.sampled_from([leaf(op) for op in OPERATORS])
TREES = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.builds(lambda each: {"all": each}, st.lists(below, min_size=1, max_size=3)),
        st.builds(lambda each: {"any": each}, st.lists(below, min_size=1, max_size=3)),
        st.builds(lambda each: {"not": each}, below),
    ),
    max_leaves=6,
)
EVENTS = st.dictionaries(
    st.sampled_from(["a", "b", "now", "before", "changedProperties", "subject", "properties"]),
    JSON,
    max_size=6,
)


def holds(tree: Mapping[str, object] | None, data: Mapping[str, object] = DATA) -> bool:
    return compile_conditions(tree)(data)


def fault_paths(tree: object) -> list[str]:
    return [fault.path for fault in check_conditions(tree)]


def combine(tree: Mapping[str, Any], path: str, passed: Mapping[str, bool]) -> bool:
    """Decide a tree from the verdicts on its leaves."""
    if "all" in tree:
        return all(combine(each, f"{path}.all[{at}]", passed) for at, each in enumerate(tree["all"]))
    if "any" in tree:
        return any(combine(each, f"{path}.any[{at}]", passed) for at, each in enumerate(tree["any"]))
    if "not" in tree:
        return not combine(tree["not"], f"{path}.not", passed)
    return passed[path]


def test_no_conditions_are_always_met() -> None:
    assert holds(None)
    assert explain_conditions(None, DATA) == []
    assert check_conditions(None) == []


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (TRUE, True),
        (FALSE, False),
        ({"all": [TRUE, TRUE]}, True),
        ({"all": [TRUE, FALSE, TRUE]}, False),
        ({"any": [FALSE, TRUE]}, True),
        ({"any": [FALSE, FALSE]}, False),
        ({"not": FALSE}, True),
        ({"not": {"all": [TRUE, FALSE]}}, True),
        ({"any": [TRUE, {"all": [FALSE, FALSE]}]}, True),
        ({"any": [FALSE, {"all": [TRUE, FALSE]}]}, False),
    ],
)
def test_groups(tree: dict[str, Any], expected: bool) -> None:
    assert holds(tree) is expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"status": "published", "notify": False, "user": "u1"}, False),
        ({"title": "x"}, False),
        ({"status": "published", "notify": True, "user": "u1"}, True),
    ],
)
def test_all_needs_every_leg_and_an_absent_field_matches_none(event: dict[str, Any], expected: bool) -> None:
    tree = {
        "all": [
            {"field": "status", "op": "eq", "value": "published"},
            {"field": "notify", "op": "eq", "value": True},
            {"field": "user", "op": "is_not_empty"},
        ]
    }
    assert holds(tree, event) is expected


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_what_an_absent_path_and_a_null_do(op: str) -> None:
    expected = op in {"ne", "not_in", "not_contains", "is_empty"}
    assert holds(leaf(op), {}) is expected
    assert holds(leaf(op), {"a": {"b": None}}) is expected
    assert holds(leaf(op), {"a": "text"}) is expected


def test_null_equals_null_and_what_is_absent() -> None:
    tree = {"field": "a", "op": "eq", "value": None}
    assert holds(tree, {"a": None})
    assert holds(tree, {})
    assert not holds(tree, {"a": ""})


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ([], "conditions"),
        ("x", "conditions"),
        ({}, "conditions.op"),
        ({"all": []}, "conditions.all"),
        ({"any": []}, "conditions.any"),
        ({"any": TRUE}, "conditions.any"),
        ({"not": []}, "conditions.not"),
        ({"all": [TRUE], "any": [TRUE]}, "conditions.any"),
        ({"all": [TRUE], "field": "a"}, "conditions.field"),
        ({"all": [TRUE, 5]}, "conditions.all[1]"),
        ({"all": [{"field": "a", "op": "equals", "value": 1}]}, "conditions.all[0].op"),
        ({"all": [{"field": "a", "op": ["eq"], "value": 1}]}, "conditions.all[0].op"),
        ({"not": {"field": "a", "op": "eq", "value": 1, "colour": 2}}, "conditions.not.colour"),
        ({"field": "a..b", "op": "is_empty"}, "conditions.field"),
        ({"field": "", "op": "is_empty"}, "conditions.field"),
        ({"field": "x" * 201, "op": "is_empty"}, "conditions.field"),
        ({"op": "is_empty"}, "conditions.field"),
        ({"field": "a", "op": "eq"}, "conditions.value"),
        ({"field": "a", "op": "is_empty", "value": 1}, "conditions.value"),
        ({"field": "a", "op": "changed", "value": True}, "conditions.value"),
        ({"field": "a", "op": "in", "value": "x"}, "conditions.value"),
        ({"field": "a", "op": "in", "value": []}, "conditions.value"),
        ({"field": "a", "op": "not_in", "value": [None]}, "conditions.value"),
        ({"field": "a", "op": "gt", "value": True}, "conditions.value"),
        ({"field": "a", "op": "gt", "value": None}, "conditions.value"),
        ({"field": "a", "op": "gt", "value": [1]}, "conditions.value"),
        ({"field": "a", "op": "gt", "value": float("nan")}, "conditions.value"),
        ({"field": "a", "op": "eq", "value": float("inf")}, "conditions.value"),
        ({"field": "a", "op": "eq", "value": {"x": [float("nan")]}}, "conditions.value"),
        ({"field": "a", "op": "between", "value": [1]}, "conditions.value"),
        ({"field": "a", "op": "contains", "value": ""}, "conditions.value"),
        ({"field": "a", "op": "starts_with", "value": 5}, "conditions.value"),
        ({"field": "a", "op": "before", "value": "yesterday"}, "conditions.value"),
        ({"field": "a", "op": "before", "value": None}, "conditions.value"),
        ({"field": "a", "op": "within_last", "value": "2 fortnights"}, "conditions.value"),
        ({"field": "a", "op": "within_last", "value": 2}, "conditions.value"),
        ({"field": "a", "op": "within_last", "value": "0h"}, "conditions.value"),
        ({"field": "a", "op": "matches", "value": "("}, "conditions.value"),
        ({"field": "a", "op": "matches", "value": "(?=x)"}, "conditions.value"),
        ({"field": "a", "op": "matches", "value": "x" * 201}, "conditions.value"),
        ({"field": "a", "op": "matches", "value": "((x{100}){100}){100}"}, "conditions.value"),
        ({"field": "a", "op": "matches", "value": "{{ pattern }}"}, "conditions.value"),
        ({"field": "a", "op": "eq", "value": "{{ open"}, "conditions.value"),
        ({"field": "a", "op": "in", "value": ["{{ a | nothing }}"]}, "conditions.value"),
        ({"field": "a", "op": "gt", "value": 1, "as": "boolean"}, "conditions.as"),
        ({"field": "a", "op": "eq", "value": 1, "as": "decimal"}, "conditions.as"),
        ({"field": "a", "op": "eq", "value": 1, "as": None}, "conditions.as"),
        ({"field": "a", "op": "before", "value": "2026-01-01", "as": "text"}, "conditions.as"),
        ({"field": "a", "op": "eq", "value": "x", "as": "number"}, "conditions.value"),
        ({"field": "a", "op": "eq", "value": "true", "as": "boolean"}, "conditions.value"),
        ({"field": "a", "op": "gt", "value": "soon", "as": "date"}, "conditions.value"),
        ({"field": "a", "op": "eq", "value": "x", "ci": "yes"}, "conditions.ci"),
    ],
)
def test_what_is_refused_and_where(tree: object, path: str) -> None:
    assert path in fault_paths(tree)
    if isinstance(tree, dict):
        with pytest.raises(DefinitionError):
            compile_conditions(tree)


def test_every_fault_is_named_at_once() -> None:
    tree = {
        "all": [{"field": "a", "op": "eqq", "value": 1}, {"field": "b", "op": "in", "value": 1}, {"any": []}]
    }
    assert fault_paths(tree) == ["conditions.all[0].op", "conditions.all[1].value", "conditions.all[2].any"]


def test_an_unknown_operator_is_told_its_nearest_name() -> None:
    (fault,) = check_conditions({"field": "a", "op": "starts_wth", "value": "x"})
    assert "starts_with" in fault.message


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_a_sound_leaf_of_every_operator_is_taken(op: str) -> None:
    assert check_conditions(leaf(op)) == []


def nested(levels: int) -> dict[str, Any]:
    tree: dict[str, Any] = dict(TRUE)
    for _ in range(levels):
        tree = {"not": tree}
    return tree


def test_depth_is_bounded() -> None:
    assert holds(nested(10))
    assert fault_paths(nested(11)) == ["conditions" + ".not" * 10]
    assert fault_paths(nested(100_000)) == ["conditions" + ".not" * 10]


def test_leaves_are_bounded() -> None:
    assert check_conditions({"any": [FALSE] * 100}) == []
    assert fault_paths({"any": [{"all": [FALSE] * 50}, {"all": [FALSE] * 51}]}) == ["conditions"]


def test_a_deep_value_is_refused() -> None:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    assert fault_paths({"field": "a", "op": "eq", "value": value}) == ["conditions.value"]


@settings(deadline=None)
@given(tree=TREES, data=EVENTS)
def test_nothing_raises_and_an_explanation_agrees(tree: dict[str, Any], data: dict[str, Any]) -> None:
    passed = {verdict.path: verdict.passed for verdict in explain_conditions(tree, data)}
    assert holds(tree, data) is combine(tree, "conditions", passed)


@settings(deadline=None)
@given(tree=TREES, data=EVENTS)
def test_not_turns_a_verdict_and_turns_it_back(tree: dict[str, Any], data: dict[str, Any]) -> None:
    verdict = holds(tree, data)
    assert holds({"not": tree}, data) is not verdict
    assert holds({"not": {"not": tree}}, data) is verdict


@settings(deadline=None)
@given(tree=JSON)
def test_checking_takes_any_json(tree: object) -> None:
    check_conditions(tree)


@settings(deadline=None)
@given(op=st.sampled_from(sorted(OPERATORS)), value=JSON, data=EVENTS)
def test_whatever_value_is_taken_never_raises(op: str, value: object, data: dict[str, Any]) -> None:
    tree = {"field": "a", "op": op, "value": value}
    if not check_conditions(tree):
        holds(tree, data)
