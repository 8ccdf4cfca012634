"""What a template sees while it renders: plain JSON and nothing else, within a budget of work."""

from collections.abc import ItemsView, Mapping, Sized
from html import escape
from io import StringIO
from typing import Final, TextIO

from liquid import RenderContext, Undefined
from liquid.exceptions import LiquidTypeError, ResourceLimitError
from liquid.output import LimitedStringIO
from liquid.template import BoundTemplate
from liquid.token import Token
from liquid.undefined import UNDEFINED
from liquid.utils import ReadOnlyChainMap

from shared.rules.plain_text import as_json, as_json_string_body, as_text

MAX_OUTPUT_BYTES: Final = 262_144
MAX_WORK: Final = 600_000  # units of a microsecond or so
UNITS_A_LOOKUP: Final = 10
MAX_TREE_CHARS: Final = 1_048_576

_NOWHERE: Final = object()


class Budget:
    """How much work and output is left to one render, be it of a single text or of a whole tree."""

    __slots__ = ("_chars_left", "_work_left")

    def __init__(self) -> None:
        """Start full."""
        self._work_left = MAX_WORK
        self._chars_left = MAX_TREE_CHARS

    def spend(self, units: int) -> None:
        """Take off work. Raises ResourceLimitError once it is used up."""
        self._work_left -= units
        if self._work_left < 0:
            raise ResourceLimitError("rendering takes too much work", token=None)

    def take(self, chars: int) -> None:
        """Take off output. Raises ResourceLimitError once it is used up."""
        self._chars_left -= chars
        if self._chars_left < 0:
            raise ResourceLimitError("rendering makes too much text", token=None)


class Absent(Undefined):
    """A path that leads nowhere: empty, and noted once it is put out, looped over or filtered."""

    __slots__ = ("_missing",)

    def __init__(self, name: str, missing: dict[str, None], token: Token | None) -> None:
        """Keep the whole path as the name, and where to note it."""
        super().__init__(name, token=token)
        self._missing = missing

    def note(self) -> None:
        """Note that the template needed this path."""
        self._missing[self.name] = None

    def items(self) -> ItemsView[str, object]:
        """Give nothing to loop over."""
        self.note()
        return {}.items()


class Sink(LimitedStringIO):
    """Where a text goes: values are written as a reader sees them."""

    def __init__(self, limit: int) -> None:
        """Take up to `limit` bytes, and leave line ends as they are."""
        super().__init__(limit, newline="")

    def put(self, value: object) -> int:
        """Write one interpolated value."""
        return self.write(as_text(value))


class HtmlSink(Sink):
    """Where an HTML document goes: a value is text in it, and never markup."""

    def put(self, value: object) -> int:
        """Write one interpolated value, escaped."""
        return self.write(escape(as_text(value)))


class JsonSink(Sink):
    """Where a JSON document goes: a value is escaped text inside quotes and JSON outside of them."""

    _in_string = False
    _after_backslash = False

    def put(self, value: object) -> int:
        """Write one interpolated value; refused after a backslash, which would swallow its start."""
        if self._after_backslash:
            raise LiquidTypeError("a value cannot follow a backslash", token=None)
        return super().write(as_json_string_body(value) if self._in_string else as_json(value))

    def write(self, text: str) -> int:
        """Write the author's own text and follow its quotes."""
        for char in text:
            if self._after_backslash:
                self._after_backslash = False
            elif char == '"':
                self._in_string = not self._in_string
            else:
                self._after_backslash = self._in_string and char == "\\"
        return super().write(text)


class SandboxContext(RenderContext):
    """The names of one render. It looks into objects by key and lists by index, never at attributes."""

    __slots__ = ("_budget", "missing")

    def __init__(self, template: BoundTemplate, scope: Mapping[str, object], budget: Budget) -> None:
        """Start with the scope alone: none of the library's own names, which read the clock."""
        super().__init__(template, globals=scope)
        self.scope = ReadOnlyChainMap(self.locals, self.globals, self.counters)
        self.missing: dict[str, None] = {}
        self._budget = budget

    def spend(self, units: int) -> None:
        """Take work off the budget. Raises ResourceLimitError once it is used up."""
        self._budget.spend(units)

    def get(self, path: list[object], *, token: Token | None, default: object = UNDEFINED) -> object:
        """Follow a path; an Absent where it leads nowhere."""
        self.spend(UNITS_A_LOOKUP)
        found = self._step(self.scope, path[0]) if isinstance(path[0], str) else _NOWHERE
        for step in path[1:]:
            found = self._step(found, step)
        if found is not _NOWHERE:
            return found
        return Absent(".".join(map(str, path)), self.missing, token) if default is UNDEFINED else default

    def raise_for_loop_limit(self, length: int = 1) -> None:
        """Refuse a loop that is too long by itself or in all."""
        super().raise_for_loop_limit(length)
        self.spend(UNITS_A_LOOKUP * length)

    def get_buffer(self, buf: TextIO | None = None) -> StringIO:
        """Give the buffer of a `capture`, which holds plain text even inside a JSON document."""
        return Sink(limit=MAX_OUTPUT_BYTES)

    @staticmethod
    def _step(tree: object, step: object) -> object:
        if isinstance(tree, Mapping):
            return tree.get(str(step), _NOWHERE)
        if isinstance(tree, list | tuple) and isinstance(step, int) and not isinstance(step, bool):
            return tree[step] if -len(tree) <= step < len(tree) else _NOWHERE
        return _size_or_end(tree, step)


def _size_or_end(tree: object, step: object) -> object:
    if step == "size" and isinstance(tree, Sized) and not isinstance(tree, Absent):
        return len(tree)
    if isinstance(tree, list | tuple) and tree and step in {"first", "last"}:
        return tree[0 if step == "first" else -1]
    return _NOWHERE
