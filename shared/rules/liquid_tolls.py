"""What a block of a template costs each time it is gone through, charged before its first statement.

Paths, filters and what is put out charge for themselves as they go. Statements that need none of these would
be free, and a loop could hold thousands of them. Comparisons are charged for what they read.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TextIO

from liquid import RenderContext
from liquid.ast import BlockNode, Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions import Path
from liquid.builtin.expressions.logical import (
    ContainsExpression,
    EqExpression,
    GeExpression,
    GtExpression,
    LeExpression,
    LtExpression,
    NeExpression,
)
from liquid.builtin.tags.case_tag import _AnyExpression
from liquid.expression import Expression
from liquid.template import BoundTemplate
from liquid.token import Token

from shared.rules.liquid_context import SandboxContext

UNITS_A_STEP: Final = 2
CHARS_A_UNIT: Final = 256
CHARS_COMPARED_A_UNIT: Final = 600


class Weighed(Expression):
    """A side of a comparison: what it looks up is charged by its size, since it is read from end to end."""

    __slots__ = ("_side",)

    def __init__(self, side: Expression) -> None:
        """Charge for `side`."""
        super().__init__(side.token)
        self._side = side

    def evaluate(self, context: RenderContext) -> object:
        """Give the value, once it is paid for."""
        value = self._side.evaluate(context)
        if isinstance(context, SandboxContext) and isinstance(value, str | list | tuple | Mapping):
            context.spend(_weight(value))
        return value

    def children(self) -> Iterable[Expression]:
        """Give what is charged for."""
        return [self._side]


class TollNode(Node):
    """The first statement of a block, which takes off the work of all that follow."""

    __slots__ = ("_units",)

    def __init__(self, token: Token, units: int) -> None:
        """Charge `units` each time."""
        super().__init__(token)
        self._units = units

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        """Charge, and write nothing."""
        if isinstance(context, SandboxContext):
            context.spend(self._units)
        return 0


def add_tolls(template: BoundTemplate, context: SandboxContext) -> None:
    """Put a toll in front of each block of the template; `context` is any one of it."""
    for node in list(_all_nodes(template.nodes, context)):
        if isinstance(node, BlockNode):
            node.nodes = [
                TollNode(node.token, sum(_units(each, context) for each in node.nodes)),
                *node.nodes,
            ]


def weigh_sides(comparison: Expression) -> None:
    """Charge a comparison for what it reads, if the expression is one."""
    match comparison:
        case (
            EqExpression()
            | NeExpression()
            | LtExpression()
            | LeExpression()
            | GtExpression()
            | GeExpression()
            | ContainsExpression()
        ):
            comparison.left, comparison.right = _weighed(comparison.left), _weighed(comparison.right)
        case _AnyExpression():
            comparison.expressions = [_weighed(each) for each in comparison.expressions]


def _weighed(side: Expression) -> Expression:
    return Weighed(side) if isinstance(side, Path) else side


def _weight(value: object) -> int:
    """Count the values of a tree, and its texts by their length."""
    units, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            units += len(each) // CHARS_COMPARED_A_UNIT
        elif isinstance(each, Mapping):
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
        units += 1
    return units


def _units(node: Node, context: SandboxContext) -> int:
    """Count a statement with its expressions and branches, but not what stands inside its blocks."""
    units = len(node.text) // CHARS_A_UNIT if isinstance(node, ContentNode) else 0
    units += UNITS_A_STEP + UNITS_A_STEP * sum(map(_steps, node.expressions()))
    for child in node.children(context):
        units += UNITS_A_STEP if isinstance(child, BlockNode) else _units(child, context)
    return units


def _steps(expression: Expression) -> int:
    return 1 + sum(map(_steps, expression.children()))


def _all_nodes(nodes: list[Node], context: SandboxContext) -> Iterator[Node]:
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children(context))
        yield node
