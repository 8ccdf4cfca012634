"""Conditions: a tree of all, any and not over leaves `{field, op, value}`, decided over one flattened event.

The automation schema checks trees, the matcher and the pipeline compile them, explain and dry run explain
them. A compiled tree never raises, whatever the event holds. The rules:

- `field` is a dotted path; a step into a list is an index from 0. What a path does not reach counts as null.
- Null: `eq null`, `ne`, `not_in`, `not_contains` and `is_empty` are true, all other operators false.
- `as` (number, text, date, boolean) says how both sides are read. Without it the value's JSON type decides; a
  number on either side makes it a comparison of numbers, for which numeric text is a number too. Numbers are
  exact decimals.
- Text compares case-sensitively unless `ci: true`, and orders by code point. Booleans equal booleans only.
- Dates are RFC 3339 instants or `YYYY-MM-DD` days. Where either side is a day, both are compared as days in
  UTC.
- `within_last` takes a stretch such as `90m`, `2h` or `7d` (units s, m, h, d, w) that ends at the event's
  `now`; what is later than `now` is not within it.
- `in` and `not_in` on a list field ask about any of its members; `contains` on a list asks for a member, on a
  text for a part; `between` includes both ends; `matches` finds an RE2 pattern anywhere in a text.
- `changed`, `changed_to` and `changed_from` read `changedProperties` and `before`; `changes` has the rule for
  names.
- A value may be a template over the same event. Where one of its paths is absent the leaf is false and says
  so; a null that is present is null.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from shared.errors import DefinitionError, FatalError, Fault
from shared.rules.changes import is_changed, value_after, value_before
from shared.rules.comparing import Reading, kind_of
from shared.rules.condition_checks import GROUPS, ROOT, is_templated, kind_fault_of, tree_faults
from shared.rules.operators import OPERATORS, Operator, Question, Shape
from shared.rules.rendering import render_tree
from shared.rules.values import Absence, Kind, is_nothing, read_number

AS_TEXT: Final = " (compared as text; say as: number)"

Predicate = Callable[[Mapping[str, object]], bool]


@dataclass(frozen=True, slots=True)
class LeafVerdict:
    """What one leaf said of an event: `path` is its place in the tree, `reason` is empty when it passed."""

    path: str
    field: str
    op: str
    wanted: object
    found: object
    passed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class _Leaf:
    path: str
    field: str
    op: str
    operator: Operator
    steps: tuple[str, ...]
    wanted: object
    reading: Reading
    is_templated: bool


def check_conditions(tree: object) -> list[Fault]:
    """Find everything wrong with a tree, each fault with its path from `conditions` on; None is fine."""
    return [] if tree is None else tree_faults(tree)


def compile_conditions(tree: Mapping[str, object] | None) -> Predicate:
    """Turn a tree into a predicate over flattened events that never raises; None is always true.

    Raises DefinitionError with every fault of the tree.
    """
    _refuse_faults(tree)
    return _everything if tree is None else _compile(tree, ROOT)


def explain_conditions(tree: Mapping[str, object] | None, data: Mapping[str, object]) -> list[LeafVerdict]:
    """Judge every leaf of a tree, in order, also those that the verdict on the whole does not need.

    Raises DefinitionError with every fault of the tree.
    """
    _refuse_faults(tree)
    return [] if tree is None else [_judge(leaf, data) for leaf in _leaves(tree, ROOT)]


def compile_blame(
    tree: Mapping[str, object] | None,
) -> Callable[[Mapping[str, object]], list[LeafVerdict]]:
    """Read a tree once; the outcome names the leaves because of which it does not hold, none if it does.

    Under `not` it is a leaf that passed. Raises DefinitionError with every fault of the tree.
    """
    _refuse_faults(tree)
    if tree is None:
        return lambda data: []
    weigh = _compile_weighing(tree, ROOT)

    def blame(data: Mapping[str, object]) -> list[LeafVerdict]:
        weighed = weigh(data)
        return [] if weighed.holds else list(map(_blamed, weighed.leaves))

    return blame


def _refuse_faults(tree: object) -> None:
    faults = check_conditions(tree)
    if faults:
        raise DefinitionError(faults)


def _everything(_data: Mapping[str, object]) -> bool:
    return True


def _below(node: Mapping[str, object], path: str) -> tuple[str, list[tuple[Mapping[str, object], str]]]:
    """Split a checked node into its group's name and the nodes below it; no name for a leaf."""
    for group in GROUPS:
        match node.get(group):
            case list(nodes):
                return group, [(each, f"{path}.{group}[{index}]") for index, each in enumerate(nodes)]
            case Mapping() as inner:
                return group, [(inner, f"{path}.{group}")]
    return "", []


def _compile(node: Mapping[str, object], path: str) -> Predicate:
    group, below = _below(node, path)
    parts = tuple(_compile(each, place) for each, place in below)
    match group:
        case "all":
            return lambda data: all(part(data) for part in parts)
        case "any":
            return lambda data: any(part(data) for part in parts)
        case "not":
            return lambda data: not parts[0](data)
    leaf = _read_leaf(node, path)
    return lambda data: _passes(leaf, data)


@dataclass(frozen=True, slots=True)
class _Weighed:
    """Whether a node holds, and the leaves that make it so."""

    holds: bool
    leaves: tuple[LeafVerdict, ...]


def _compile_weighing(node: Mapping[str, object], path: str) -> Callable[[Mapping[str, object]], _Weighed]:
    group, below = _below(node, path)
    parts = tuple(_compile_weighing(each, place) for each, place in below)
    if group == "not":
        return lambda data: _turned(parts[0](data))
    if group:
        decide = all if group == "all" else any
        return lambda data: _grouped([part(data) for part in parts], decide)
    leaf = _read_leaf(node, path)
    return lambda data: _alone(_judge(leaf, data))


def _alone(verdict: LeafVerdict) -> _Weighed:
    return _Weighed(verdict.passed, (verdict,))


def _turned(weighed: _Weighed) -> _Weighed:
    return _Weighed(not weighed.holds, weighed.leaves)


def _grouped(parts: list[_Weighed], decide: Callable[[Iterable[object]], bool]) -> _Weighed:
    holds = decide(part.holds for part in parts)
    return _Weighed(holds, tuple(leaf for part in parts if part.holds is holds for leaf in part.leaves))


def _blamed(leaf: LeafVerdict) -> LeafVerdict:
    return replace(leaf, reason=f"{leaf.field} meets {leaf.op}, under not") if leaf.passed else leaf


def _leaves(node: Mapping[str, object], path: str) -> Iterator[_Leaf]:
    group, below = _below(node, path)
    if not group:
        yield _read_leaf(node, path)
    for each, place in below:
        yield from _leaves(each, place)


def _read_leaf(node: Mapping[str, object], path: str) -> _Leaf:
    field, op, wanted = str(node["field"]), str(node["op"]), node.get("value")
    kind = Kind(str(node["as"])) if "as" in node else None
    operator = OPERATORS[op]
    return _Leaf(
        path=path,
        field=field,
        op=op,
        operator=operator,
        steps=tuple(field.split(".")),
        wanted=wanted,
        reading=Reading(kind, node.get("ci") is True),
        is_templated=operator.shape not in {Shape.PATTERN, Shape.STRETCH} and is_templated(wanted),
    )


def _passes(leaf: _Leaf, data: Mapping[str, object]) -> bool:
    ask = _ask(leaf, data)
    return isinstance(ask, Question) and leaf.operator.holds(ask)


def _ask(leaf: _Leaf, data: Mapping[str, object]) -> Question | str:
    """Put the leaf's question, or say why it cannot be put."""
    if not leaf.is_templated:
        return Question(data, leaf.steps, leaf.wanted, leaf.reading)
    try:
        rendered = render_tree(leaf.wanted, data)
    except FatalError as error:
        return error.message
    if rendered.missing:
        return f"the value needs {', '.join(rendered.missing)}, which is not set"
    return Question(data, leaf.steps, rendered.value, leaf.reading)


def _judge(leaf: _Leaf, data: Mapping[str, object]) -> LeafVerdict:
    ask = _ask(leaf, data)
    if isinstance(ask, str):
        found = Question(data, leaf.steps, None, leaf.reading).found
        return _verdict(leaf, leaf.wanted, found, ask)
    reason = "" if leaf.operator.holds(ask) else _why_not(leaf, ask)
    return _verdict(leaf, ask.wanted, _found(leaf, ask), reason)


def _verdict(leaf: _Leaf, wanted: object, found: object, reason: str) -> LeafVerdict:
    shown = None if found is Absence.ABSENT else found
    return LeafVerdict(leaf.path, leaf.field, leaf.op, wanted, shown, not reason, reason)


def _found(leaf: _Leaf, ask: Question) -> object:
    match leaf.op:
        case "changed" | "changed_to":
            return value_after(ask.data, ask.field)
        case "changed_from":
            return value_before(ask.data, ask.field)
    return ask.found


def _why_not(leaf: _Leaf, ask: Question) -> str:
    found = _found(leaf, ask)
    if leaf.op.startswith("changed") and not is_changed(ask.data, ask.field):
        return f"{leaf.field} was not changed"
    if is_nothing(found):
        return f"{leaf.field} is {'null' if found is None else 'not set'}"
    if leaf.operator.shape is Shape.STRETCH and kind_fault_of(ask.data.get("now") or "", Kind.DATE):
        return "the present time is not known"
    kind = _compared_kind(leaf, ask, found)
    said = kind_fault_of(found, kind)
    if said:
        return f"{leaf.field} {said}"
    hint = AS_TEXT if _are_numbers_as_text(leaf, ask) else ""
    return f"{leaf.field} does not meet {leaf.op}{hint}"


def _are_numbers_as_text(leaf: _Leaf, ask: Question) -> bool:
    """Tell whether texts that could be numbers were put in the order of texts, and nobody said so."""
    match leaf.operator.shape:
        case Shape.BOUND:
            bounds = [ask.wanted]
        case Shape.BOUNDS if isinstance(ask.wanted, list):
            bounds = ask.wanted
        case _:
            return False
    if leaf.reading.kind is not None or read_number(ask.found) is None:
        return False
    return any(
        kind_of(ask.found, bound, ask.reading) is Kind.TEXT and read_number(bound) is not None
        for bound in bounds
    )


def _compared_kind(leaf: _Leaf, ask: Question, found: object) -> Kind | None:
    match leaf.operator.shape:
        case Shape.MOMENT | Shape.STRETCH:
            return Kind.DATE
        case Shape.BOUND | Shape.ANY:
            return kind_of(found, ask.wanted, ask.reading)
        case Shape.BOUNDS if isinstance(ask.wanted, list) and ask.wanted:
            return kind_of(found, ask.wanted[0], ask.reading)
    return None
