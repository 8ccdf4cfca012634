"""The tree of a delayed automation's conditions: what its `changed*` leaves count for, which last. Pure.

`changed`, `changed_to` and `changed_from` ask about one event, so they count when it arms. Afterwards they
never hinder: each is as good as true, under an odd number of `not` as good as false.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from shared.rules.conditions import compile_conditions

MARKS: Final = "@changed"  # where the scope says what each of the changed* leaves counts for

Node = Mapping[str, object]

_CHANGES: Final = frozenset({"changed", "changed_to", "changed_from"})


@dataclass(frozen=True, slots=True)
class ChangeLeaf:
    """A leaf that asks what an event changed: its answer for one, and what it counts for afterwards."""

    holds: Callable[[Mapping[str, object]], bool]
    afterwards: bool


def mark_changes(tree: Node) -> tuple[Node, tuple[ChangeLeaf, ...]]:
    """Put a look at the scope's MARKS in the place of each changed* leaf; all else stays where it is."""
    found: list[ChangeLeaf] = []
    return _marked(tree, 0, found), tuple(found)


def lasting_leaves(tree: Node) -> tuple[Node, ...]:
    """Give the leaves that still decide once no changed* leaf hinders; none if nothing is open."""
    kept = _kept(tree, 0)
    return () if isinstance(kept, bool) else kept


def _marked(node: Node, nots: int, found: list[ChangeLeaf]) -> Node:
    match node:
        case {"all": list(below)}:
            return {"all": [_marked(each, nots, found) for each in below]}
        case {"any": list(below)}:
            return {"any": [_marked(each, nots, found) for each in below]}
        case {"not": Mapping() as inner}:
            return {"not": _marked(inner, nots + 1, found)}
    if node["op"] not in _CHANGES:
        return node
    found.append(ChangeLeaf(compile_conditions(node), _counts_afterwards(nots)))
    return {"field": f"{MARKS}.{len(found) - 1}", "op": "eq", "value": True}


def _kept(node: Node, nots: int) -> tuple[Node, ...] | bool:
    match node:
        case {"all": list(below)}:
            return _joined("all", [_kept(each, nots) for each in below])
        case {"any": list(below)}:
            return _joined("any", [_kept(each, nots) for each in below])
        case {"not": Mapping() as inner}:
            kept = _kept(inner, nots + 1)
            return not kept if isinstance(kept, bool) else kept
    return _counts_afterwards(nots) if node["op"] in _CHANGES else (node,)


def _joined(group: str, parts: list[tuple[Node, ...] | bool]) -> tuple[Node, ...] | bool:
    decides = group == "any"
    if any(part is decides for part in parts):
        return decides
    leaves = tuple(leaf for part in parts if not isinstance(part, bool) for leaf in part)
    return leaves or not decides


def _counts_afterwards(nots: int) -> bool:
    return nots % 2 == 0
