"""What may be wrong with a condition tree, found when it is saved. `conditions` offers it to the schema."""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from shared.errors import Fault
from shared.rules.comparing import Reading
from shared.rules.operators import MAX_PATTERN_CHARS, OPERATORS, BadPattern, Operator, Shape, compile_pattern
from shared.rules.secret_names import check_without_secrets
from shared.rules.templates import check_template, has_template
from shared.rules.values import Kind, is_number, read_moment, read_number, read_stretch, read_text

MAX_DEPTH: Final = 10
MAX_LEAVES: Final = 100
MAX_FIELD_CHARS: Final = 200
MAX_LISTED: Final = 1_000
MAX_VALUE_DEPTH: Final = 16
GROUPS: Final = ("all", "any", "not")
ROOT: Final = "conditions"
_LEAF_KEYS: Final = ("field", "op", "value", "as", "ci")


def tree_faults(tree: object) -> list[Fault]:
    """Find everything wrong with a tree, each fault with its path."""
    faults = list(_node_faults(tree, ROOT, 0))
    leaves = _count_leaves(tree, 0)
    if leaves > MAX_LEAVES:
        faults.append(Fault(ROOT, f"holds {leaves} leaves, at most {MAX_LEAVES} are allowed"))
    return faults


def _count_leaves(node: object, depth: int) -> int:
    if not isinstance(node, Mapping) or depth > MAX_DEPTH:
        return 0
    group = next((key for key in GROUPS if key in node), None)
    if group is None:
        return 1
    below = node[group] if isinstance(node[group], list) else [node[group]]
    return sum(_count_leaves(each, depth + 1) for each in below)


def _node_faults(node: object, path: str, depth: int) -> Iterable[Fault]:
    if not isinstance(node, Mapping):
        yield Fault(path, "must be an object: all, any, not or a leaf with field and op")
        return
    groups = [key for key in GROUPS if key in node]
    if not groups:
        yield from _leaf_faults(node, path)
        return
    yield from (Fault(f"{path}.{key}", f"does not go with {groups[0]}") for key in node if key != groups[0])
    if depth >= MAX_DEPTH:
        yield Fault(path, f"is nested deeper than {MAX_DEPTH} levels")
        return
    yield from _group_faults(node[groups[0]], f"{path}.{groups[0]}", depth)


def _group_faults(below: object, path: str, depth: int) -> Iterable[Fault]:
    if path.endswith(".not"):
        yield from _node_faults(below, path, depth + 1)
    elif not isinstance(below, list) or not below:
        yield Fault(path, "must be a list with at least one condition")
    else:
        for index, each in enumerate(below):
            yield from _node_faults(each, f"{path}[{index}]", depth + 1)


def _leaf_faults(leaf: Mapping[str, object], path: str) -> Iterable[Fault]:
    for key in leaf:
        if key not in _LEAF_KEYS:
            yield Fault(f"{path}.{key}", f"is unknown; a leaf has {', '.join(_LEAF_KEYS)}")
    if not _is_field(leaf.get("field")):
        yield Fault(f"{path}.field", f"must be a dotted path of at most {MAX_FIELD_CHARS} characters")
    if not isinstance(leaf.get("ci", False), bool):
        yield Fault(f"{path}.ci", "must be true or false")
    name = leaf.get("op")
    operator = OPERATORS.get(name) if isinstance(name, str) else None
    if operator is None:
        yield Fault(f"{path}.op", _unknown_operator(name))
        return
    kind_fault = _kind_fault(leaf, operator)
    if kind_fault:
        yield Fault(f"{path}.as", kind_fault)
        return
    said = _value_fault(leaf, operator)
    if said:
        yield Fault(f"{path}.value", said)


def _is_field(field: object) -> bool:
    return isinstance(field, str) and len(field) <= MAX_FIELD_CHARS and all(field.split("."))


def _unknown_operator(name: object) -> str:
    known = ", ".join(OPERATORS)
    if not isinstance(name, str):
        return f"must be one of {known}"
    near = difflib.get_close_matches(name[:40], OPERATORS, n=1)
    return f"is unknown; did you mean {near[0]}?" if near else f"is unknown; known are {known}"


def _kind_fault(leaf: Mapping[str, object], operator: Operator) -> str | None:
    named = leaf.get("as")
    if "as" not in leaf:
        return None
    if not isinstance(named, str) or named not in list(Kind):
        return f"must be one of {', '.join(Kind)}"
    return None if Kind(named) in operator.kinds else f"{named} does not go with {leaf['op']}"


def _value_fault(leaf: Mapping[str, object], operator: Operator) -> str | None:
    value = leaf.get("value")
    if operator.shape is Shape.NOTHING:
        return None if value is None else f"{leaf['op']} takes no value"
    if "value" not in leaf:
        return f"is missing; {leaf['op']} needs one"
    kind = Kind(str(leaf["as"])) if "as" in leaf else None
    if operator.shape is Shape.PATTERN:
        return _pattern_fault(value, Reading(kind, leaf.get("ci") is True))
    if operator.shape is Shape.STRETCH:
        return (
            None if read_stretch(value) else "must be a stretch of time such as 90m, 2h or 7d (s, m, h, d, w)"
        )
    if isinstance(value, str) and has_template(value):
        return check_template(value) or check_without_secrets(value)
    return _SHAPE_FAULTS[operator.shape](value, kind) or _json_fault(value)


def _list_fault(value: object, kind: Kind | None) -> str | None:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_LISTED:
        return f"must be a list of 1 to {MAX_LISTED} values"
    return next(filter(None, (_listed_fault(each, kind) for each in value)), None)


def _listed_fault(value: object, kind: Kind | None) -> str | None:
    if value is None or isinstance(value, Mapping | list):
        return "must hold texts, numbers or booleans; for null there is is_empty"
    return kind_fault_of(value, kind)


def _bounds_fault(value: object, kind: Kind | None) -> str | None:
    if not isinstance(value, list) or len(value) != 2:
        return "must be a list of two values, the lower one first"
    return _bound_fault(value[0], kind) or _bound_fault(value[1], kind)


def _bound_fault(value: object, kind: Kind | None) -> str | None:
    if not is_number(value) and not (isinstance(value, str) and value):
        return "must be a number or a text, which have an order"
    return kind_fault_of(value, kind)


def _part_fault(value: object, kind: Kind | None) -> str | None:
    if not isinstance(value, str | int | float) or value == "":
        return "must be a text, a number or a boolean, not empty"
    return kind_fault_of(value, kind)


def _text_fault(value: object, kind: Kind | None) -> str | None:
    return kind_fault_of(value, kind) if isinstance(value, str) and value else "must be a text, not empty"


def _moment_fault(value: object, _kind: Kind | None) -> str | None:
    return "must be a date" if value is None else kind_fault_of(value, Kind.DATE)


def kind_fault_of(value: object, kind: Kind | None) -> str | None:
    """Say what a value must be to be read as `kind`; None if it is, or if it is a template or null."""
    if kind is None or value is None or (isinstance(value, str) and has_template(value)):
        return None
    is_read, wanted = _KIND_READERS[kind]
    return None if is_read(value) else f"must be {wanted}"


_KIND_READERS: Final[Mapping[Kind, tuple[Callable[[object], bool], str]]] = {
    Kind.NUMBER: (lambda value: read_number(value) is not None, "a number"),
    Kind.TEXT: (lambda value: read_text(value) is not None, "a text"),
    Kind.DATE: (
        lambda value: read_moment(value) is not None,
        "a date: YYYY-MM-DD, or RFC 3339 with Z or an offset",
    ),
    Kind.BOOLEAN: (lambda value: isinstance(value, bool), "true or false"),
}

_SHAPE_FAULTS: Final[Mapping[Shape, Callable[[object, Kind | None], str | None]]] = {
    Shape.ANY: kind_fault_of,
    Shape.LIST: _list_fault,
    Shape.PART: _part_fault,
    Shape.TEXT: _text_fault,
    Shape.BOUND: _bound_fault,
    Shape.BOUNDS: _bounds_fault,
    Shape.MOMENT: _moment_fault,
}


def _json_fault(value: object) -> str | None:
    waiting = [(value, 0)]
    while waiting:
        each, depth = waiting.pop()
        if depth > MAX_VALUE_DEPTH:
            return f"is nested deeper than {MAX_VALUE_DEPTH} levels"
        said = _scalar_fault(each)
        if said:
            return said
        below = list(each.values()) if isinstance(each, Mapping) else each
        if isinstance(below, list):
            waiting.extend((item, depth + 1) for item in below)
    return None


def is_templated(value: object) -> bool:
    """Tell whether a checked value has a template anywhere in it."""
    match value:
        case str():
            return has_template(value)
        case Mapping():
            return any(map(is_templated, value.values()))
        case list():
            return any(map(is_templated, value))
    return False


def _scalar_fault(value: object) -> str | None:
    if isinstance(value, str) and has_template(value):
        return check_template(value) or check_without_secrets(value)
    is_json = value is None or isinstance(value, str | bool | int | Mapping | list)
    is_finite = isinstance(value, float) and math.isfinite(value)
    return None if is_json or is_finite else "must be a JSON value; numbers must be finite"


def _pattern_fault(value: object, reading: Reading) -> str | None:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_PATTERN_CHARS:
        return f"must be a pattern of 1 to {MAX_PATTERN_CHARS} characters"
    if has_template(value):
        return "must be the pattern itself, not a template"
    try:
        compile_pattern(value, reading)
    except BadPattern as error:
        return f"is no RE2 pattern: {error}"
    return None
