"""Templates: Liquid over plain JSON, bounded in time, memory and output.

Names are the scope's keys; a path may index lists (`items.0.name`) and objects by key
(`actions.1.output.id`). Null renders empty, and so does a path that leads nowhere, which is reported;
`default` is the way to expect it. Lists and objects inside a text render as JSON. Tags: assign, capture,
case, comment, for, if, unless.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from liquid.ast import Node
from liquid.builtin.expressions import FilteredExpression, Path
from liquid.builtin.output import OutputNode
from liquid.exceptions import LiquidError, LiquidInterrupt, LiquidSyntaxError, ResourceLimitError
from liquid.template import BoundTemplate

from shared.errors import FatalError
from shared.rules.liquid_context import MAX_OUTPUT_BYTES, Budget, SandboxContext, Sink
from shared.rules.liquid_engine import Use, parse_template, paths_in, put_out, uses_in
from shared.rules.plain_text import as_text

TEMPLATE_ERROR: Final = "TEMPLATE_ERROR"
_TEMPLATES_KEPT: Final = 512
_RENDER_ERRORS: Final = (
    LiquidError,
    LiquidInterrupt,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered value, and the paths that it needed and the scope lacks, in order, each once."""

    value: object
    missing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The value as a reader sees it."""
        return as_text(self.value)


@dataclass(frozen=True, slots=True)
class _Compiled:
    template: BoundTemplate
    only_path: Path | None


def has_template(text: str) -> bool:
    """Tell whether a text has anything to render."""
    return "{{" in text or "{%" in text


def check_template(text: str) -> str | None:
    """Say what is wrong with a template, for the moment it is saved; None if it can be rendered."""
    if not has_template(text):
        return None
    try:
        _compile(text)
    except LiquidError as error:
        return _where_and_what(error)
    return None


def template_paths(text: str) -> Iterator[tuple[object, ...]]:
    """Give every path that a text may follow, a computed step as None; none for what is no template."""
    if has_template(text):
        try:
            yield from paths_in(_compile(text).template)
        except LiquidError:
            return


def template_uses(text: str) -> Iterator[Use]:
    """Give every path that a text may follow with what is made of it; none for what is no template."""
    if has_template(text):
        try:
            yield from uses_in(_compile(text).template)
        except LiquidError:
            return


def render_text(template: str, scope: Mapping[str, object], budget: Budget | None = None) -> Rendered:
    """Render a template. One that is exactly one `{{ path }}` gives the value itself, with its JSON type.

    `budget` is shared by the templates of one tree. Raises FatalError TEMPLATE_ERROR for a template that
    cannot be parsed, fails or passes a limit.
    """
    if not has_template(template):
        return Rendered(template)
    compiled = _compile_or_fail(template)
    budget = budget or Budget()
    context = SandboxContext(compiled.template, scope, budget)
    try:
        if compiled.only_path is not None:
            value = _as_json_type(put_out(compiled.only_path.evaluate(context)))
        else:
            value = _run(compiled.template, context, Sink(limit=MAX_OUTPUT_BYTES))
        budget.take(len(as_text(value)))
    except _RENDER_ERRORS as error:
        raise _failure(error) from error
    return Rendered(value, tuple(context.missing))


def render_into(sink: Sink, template: str, scope: Mapping[str, object]) -> Rendered:
    """Render a template into another kind of sink; the value is all that it took. Raises as `render_text`."""
    compiled = _compile_or_fail(template)
    context = SandboxContext(compiled.template, scope, Budget())
    try:
        return Rendered(_run(compiled.template, context, sink), tuple(context.missing))
    except _RENDER_ERRORS as error:
        raise _failure(error) from error


@lru_cache(maxsize=_TEMPLATES_KEPT)
def _compile(text: str) -> _Compiled:
    template = parse_template(text)
    return _Compiled(template, _only_path(template.nodes))


def _only_path(nodes: list[Node]) -> Path | None:
    match nodes:
        case [OutputNode(expression=FilteredExpression(left=Path() as path, filters=None | []))]:
            return path
    return None


def _compile_or_fail(template: str) -> _Compiled:
    try:
        return _compile(template)
    except LiquidError as error:
        raise FatalError(TEMPLATE_ERROR, _where_and_what(error)) from error


def _run(template: BoundTemplate, context: SandboxContext, sink: Sink) -> str:
    for node in template.nodes:
        node.render(context, sink)
    return sink.getvalue()


def _as_json_type(value: object) -> object:
    match value:
        case None | str() | int() | float() | list() | dict():
            return value
        case Mapping():
            return dict(value)
        case tuple():
            return list(value)
    return as_text(value)


def _failure(error: Exception) -> FatalError:
    """Name the failure without its details, which may quote what was rendered."""
    if isinstance(error, LiquidSyntaxError | ResourceLimitError):
        return FatalError(TEMPLATE_ERROR, _where_and_what(error))
    place = _place(error) if isinstance(error, LiquidError) else ""
    return FatalError(TEMPLATE_ERROR, f"the template cannot be rendered ({type(error).__name__}){place}")


def _where_and_what(error: LiquidError) -> str:
    return f"{error.message}{_place(error)}"


def _place(error: LiquidError) -> str:
    try:
        context = error.context()
    except ValueError:
        return ""
    return f" (line {context[0]}, column {context[1] + 1})" if context else ""
