"""The Liquid environment: few tags, few filters, no loader, and a look at the text before it is parsed."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TextIO

from liquid import Environment, RenderContext, Undefined
from liquid.ast import Node
from liquid.builtin import content, illegal, output
from liquid.builtin.expressions import Filter, FilteredExpression, Path
from liquid.builtin.expressions.primitive import IntegerLiteral, RangeLiteral
from liquid.builtin.tags import (
    assign_tag,
    capture_tag,
    case_tag,
    comment_tag,
    for_tag,
    if_tag,
    inline_comment_tag,
    unless_tag,
)
from liquid.exceptions import LiquidSyntaxError, LiquidTypeError, LoopIterationLimitError
from liquid.expression import Expression
from liquid.template import BoundTemplate

from shared.rules.liquid_context import MAX_OUTPUT_BYTES, Absent, Budget, SandboxContext, Sink
from shared.rules.liquid_filters import add_filters
from shared.rules.liquid_tolls import add_tolls, weigh_sides
from shared.rules.plain_text import as_text

MAX_TEMPLATE_CHARS: Final = 65_536
MAX_MARK_CHARS: Final = 1_000
MAX_LOOPS: Final = 2_000
MAX_NESTING: Final = 10
MAX_LOCALS_BYTES: Final = 1_048_576
_CHARS_A_UNIT: Final = 25
_MARK: Final = re.compile(r"\{\{|\{%-?\s*(\w*|#)")
_TAG_NAMES: Final = frozenset(
    {
        *(
            "assign",
            "break",
            "capture",
            "case",
            "comment",
            "continue",
            "else",
            "elsif",
            "endcapture",
            "endcase",
        ),
        *("endcomment", "endfor", "endif", "endunless", "for", "if", "unless", "when", "#"),
    }
)


class _OutputNode(output.OutputNode):
    """`{{ … }}`: hands the value itself to the sink, which knows how to write it."""

    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        """Write the value; an absent one is noted and written as null."""
        value = put_out(self.expression.evaluate(context))
        written = buffer.put(value) if isinstance(buffer, Sink) else buffer.write(as_text(value))
        if isinstance(context, SandboxContext):
            context.spend(written // _CHARS_A_UNIT)
        return written


class _Output(output.Output):
    """Makes `_OutputNode`s."""

    node_class = _OutputNode


class _RangeEnd(Expression):
    """One end of a range, refused beyond the number of rounds that a loop may have."""

    __slots__ = ("_end",)

    def __init__(self, end: Expression) -> None:
        """Bound `end`."""
        super().__init__(end.token)
        self._end = end

    def evaluate(self, context: RenderContext) -> object:
        """Give the end's value if it is small enough."""
        value = self._end.evaluate(context)
        if isinstance(value, int | float) and not -MAX_LOOPS <= value <= MAX_LOOPS:
            raise LoopIterationLimitError(
                f"a range goes from {-MAX_LOOPS} to {MAX_LOOPS} at most", token=self.token
            )
        if isinstance(value, str):
            raise LiquidTypeError("a range needs numbers", token=self.token)
        return value

    def children(self) -> Iterable[Expression]:
        """Give the bounded expression."""
        return [self._end]


@dataclass(frozen=True, slots=True)
class Use:
    """A path in a template; a step that it computes stands as None.

    `filters` are those that follow it where it stands first in a `{{ … }}` that is put out; None for a path
    that stands anywhere else: as an argument, in a tag, in what is captured.
    """

    path: tuple[object, ...]
    filters: tuple[str, ...] | None


class SandboxEnvironment(Environment):
    """An environment for texts that nobody has read: see the module."""

    context_depth_limit = MAX_NESTING + 5
    block_nesting_limit = MAX_NESTING
    loop_iteration_limit = MAX_LOOPS
    local_namespace_limit = MAX_LOCALS_BYTES
    output_stream_limit = MAX_OUTPUT_BYTES
    shorthand_indexes = True

    def setup_tags_and_filters(self, **_options: object) -> None:
        """Register the tags and filters of the sandbox."""
        for tag in (
            *(content.Literal, _Output, illegal.Illegal, assign_tag.AssignTag, capture_tag.CaptureTag),
            *(case_tag.CaseTag, comment_tag.CommentTag, inline_comment_tag.InlineCommentTag, if_tag.IfTag),
            *(for_tag.ForTag, for_tag.BreakTag, for_tag.ContinueTag, unless_tag.UnlessTag),
        ):
            self.add_tag(tag)
        add_filters(self)


_ENVIRONMENT: Final = SandboxEnvironment()


def put_out(value: object) -> object:
    """Give what is written for an expression's value; notes an absent one. Raises LiquidTypeError."""
    if isinstance(value, Absent):
        value.note()
    if isinstance(value, for_tag.ForLoop):
        raise LiquidTypeError("a loop itself cannot be written", token=None)
    return None if isinstance(value, Undefined) else value


def paths_in(template: BoundTemplate) -> Iterator[tuple[object, ...]]:
    """Give every path that a template may follow; a step that it computes stands as None."""
    for expression in _all_expressions(template):
        if isinstance(expression, Path):
            yield _steps(expression)


def uses_in(template: BoundTemplate) -> Iterator[Use]:
    """Give every path that a template may follow, and what is made of it."""
    context = SandboxContext(template, {}, Budget())
    waiting: list[tuple[Node, bool]] = [(node, False) for node in template.nodes]
    while waiting:
        node, is_kept = waiting.pop()
        is_kept = is_kept or isinstance(node, capture_tag.CaptureNode)
        waiting.extend((child, is_kept) for child in node.children(context))
        rest = list(node.expressions())
        match node:
            case output.OutputNode(expression=FilteredExpression(left=Path() as path) as put) if not is_kept:
                yield Use(_steps(path), tuple(each.name for each in put.filters or ()))
                rest = [*path.children(), *put.children()[1:]]
        yield from (Use(_steps(each), None) for each in _with_parts(rest) if isinstance(each, Path))


def _steps(path: Path) -> tuple[object, ...]:
    return tuple(step if isinstance(step, str | int) else None for step in path.path)


def parse_template(text: str) -> BoundTemplate:
    """Parse a template in time linear in its length. Raises LiquidError."""
    _look_over(text)
    template = _ENVIRONMENT.from_string(text)
    for expression in _all_expressions(template):
        weigh_sides(expression)
        match expression:
            case RangeLiteral():
                expression.start, expression.stop = _bounded(expression.start), _bounded(expression.stop)
            case FilteredExpression(filters=list(filters)):
                _refuse_unknown(filters)
    add_tolls(template, SandboxContext(template, {}, Budget()))
    return template


def _refuse_unknown(filters: list[Filter]) -> None:
    for each in filters:
        if each.name not in _ENVIRONMENT.filters:
            raise LiquidSyntaxError(f"there is no filter {each.name!r}", token=each.token)


def _look_over(text: str) -> None:
    """Refuse what the library would take long to scan: long or open marks, and tags that are not ours."""
    if len(text) > MAX_TEMPLATE_CHARS:
        raise _refused(f"a template has at most {MAX_TEMPLATE_CHARS} characters")
    mark = _MARK.search(text)
    while mark:
        name = mark.group(1)
        if name is not None and name not in _TAG_NAMES:
            raise _refused(f"there is no tag {name!r}" if name else "a tag has no name")
        end = text.find("}}" if name is None else "%}", mark.end(), mark.start() + MAX_MARK_CHARS)
        if end < 0:
            opened = f"{mark.group()[:2]} at character {mark.start() + 1}"
            raise _refused(f"{opened} is not closed within {MAX_MARK_CHARS} characters")
        mark = _MARK.search(text, end + 2)


def _refused(message: str) -> LiquidSyntaxError:
    return LiquidSyntaxError(message, token=None)


def _all_expressions(template: BoundTemplate) -> Iterator[Expression]:
    nodes: list[Node] = list(template.nodes)
    context = SandboxContext(template, {}, Budget())
    while nodes:
        node = nodes.pop()
        nodes.extend(node.children(context))
        yield from _with_parts(node.expressions())


def _with_parts(expressions: Iterable[Expression]) -> Iterator[Expression]:
    waiting = list(expressions)
    while waiting:
        expression = waiting.pop()
        waiting.extend(expression.children())
        yield expression


def _bounded(end: Expression) -> Expression:
    bounded = _RangeEnd(end)
    if isinstance(end, IntegerLiteral):
        bounded.evaluate(SandboxContext(_EMPTY, {}, Budget()))
    return bounded


_EMPTY: Final = _ENVIRONMENT.from_string("")
