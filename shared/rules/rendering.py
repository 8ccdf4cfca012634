"""Rendering of what holds templates: JSON trees, JSON texts, and the typed configurations of actions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final, Generic, NoReturn, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError

from shared.errors import FatalError
from shared.model.plain_words import words_for
from shared.rules.liquid_context import MAX_OUTPUT_BYTES, Budget, HtmlSink, JsonSink
from shared.rules.templates import TEMPLATE_ERROR, Rendered, has_template, render_into, render_text

CONFIG_INVALID: Final = "CONFIG_INVALID"
MAX_DEPTH: Final = 64
RENDERED: Final[Mapping[str, bool]] = MappingProxyType({"rendered": True})
_FAULTS_TOLD: Final = 3

ConfigT = TypeVar("ConfigT", bound=BaseModel)


@runtime_checkable
class Templated(Protocol):
    """A config that says how its keys are rendered; of any other all keys are rendered as a tree."""

    template_free: ClassVar[frozenset[str]]
    json_text: ClassVar[frozenset[str]]
    html_text: ClassVar[frozenset[str]]
    null_written: ClassVar[frozenset[str]]

    def renders_as_json(self) -> bool:
        """Tell whether the texts under the `json_text` keys are JSON documents."""
        ...


@dataclass(frozen=True, slots=True)
class RenderedConfig(Generic[ConfigT]):
    """A config without templates, and the paths that it needed and that the scope does not have."""

    config: ConfigT
    missing: tuple[str, ...]


def render_tree(value: object, scope: Mapping[str, object]) -> Rendered:
    """Render every text of a JSON tree; keys stay as they are.

    A text that is one `{{ path }}` keeps the type of its value, and becomes null where the path is absent.
    Raises FatalError TEMPLATE_ERROR as templates do, and for a tree that is deeper than 64.
    """
    missing: dict[str, None] = {}
    return Rendered(_Tree(scope, missing).render(value, 0), tuple(missing))


def render_json_text(template: str, scope: Mapping[str, object]) -> Rendered:
    """Render a text that is a JSON document with interpolations in it.

    Outside quotes a value becomes its JSON, null and absent `null`. Inside quotes it becomes escaped text,
    null and absent nothing, so that no reader meets the word null. Raises FatalError TEMPLATE_ERROR also
    where the result is no JSON.
    """
    rendered = render_into(JsonSink(limit=MAX_OUTPUT_BYTES), template, scope)
    said = json_text_fault(rendered.text)
    if said is not None:
        raise FatalError(TEMPLATE_ERROR, f"the rendered text {said}")
    return rendered


def render_html_text(template: str, scope: Mapping[str, object]) -> Rendered:
    """Render a text that is HTML: each interpolated value is escaped, what a filter made of it too."""
    return render_into(HtmlSink(limit=MAX_OUTPUT_BYTES), template, scope)


def json_text_fault(text: str) -> str | None:
    """Say what makes a text no JSON document; None if it is one."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return f"is no JSON ({_place(error)})"
    return None


@dataclass(frozen=True, slots=True)
class ConfigTemplate(Generic[ConfigT]):
    """A config made ready: `given` is its tree; `texts` to `pages` are the keys to render, each in its way.

    `null_written`: keys whose null has a meaning of its own, which no template gives.
    """

    config: ConfigT
    given: Mapping[str, object]
    texts: tuple[str, ...]
    documents: tuple[str, ...]
    pages: tuple[str, ...]
    null_written: frozenset[str] = frozenset()

    def render(self, scope: Mapping[str, object]) -> RenderedConfig[ConfigT]:
        """Render the texts and check the outcome by the config's own model; without any it is the config.

        The model is told by the context RENDERED that no template is left. Raises FatalError TEMPLATE_ERROR
        as templates do, and CONFIG_INVALID with paths where the model refuses it.
        """
        if not self.texts and not self.documents and not self.pages:
            return RenderedConfig(self.config, ())
        filled, missing = self.fill(scope)
        try:
            checked = type(self.config).model_validate(filled, context=RENDERED)
        except ValidationError as error:
            raise FatalError(CONFIG_INVALID, tell_faults(error)) from error
        return RenderedConfig(checked, missing)

    def fill(self, scope: Mapping[str, object]) -> tuple[dict[str, object], tuple[str, ...]]:
        """Render the texts, and leave the outcome unchecked: give the tree, and the paths the scope lacks.

        Raises FatalError TEMPLATE_ERROR.
        """
        missing: dict[str, None] = {}
        tree = _Tree(scope, missing)
        filled = dict(self.given)
        for key in self.texts:
            filled[key] = tree.render(self.given[key], 0)
            if filled[key] is None and key in self.null_written:
                raise FatalError(
                    CONFIG_INVALID, f"{key}: its template gave nothing; write null where that is meant"
                )
        for key in self.documents:
            filled[key] = tree.note(render_json_text(str(self.given[key]), scope))
        for key in self.pages:
            filled[key] = tree.note(render_html_text(str(self.given[key]), scope))
        return filled, tuple(missing)


def prepare_config(config: ConfigT) -> ConfigTemplate[ConfigT]:
    """Find out once what of a config has to be rendered each time."""
    given: dict[str, object] = config.model_dump(by_alias=True, exclude_unset=True)
    free, as_json, as_html, null_written = _own_rules(config)
    documents = tuple(key for key in given if key in as_json - free and isinstance(given[key], str))
    pages = tuple(key for key in given if key in as_html - free and _has_templates(given[key]))
    left = free.union(documents, pages)
    texts = tuple(key for key, value in given.items() if key not in left and _has_templates(value))
    return ConfigTemplate(config, given, texts, documents, pages, null_written)


def render_config(config: ConfigT, scope: Mapping[str, object]) -> RenderedConfig[ConfigT]:
    """Render a config's texts and check the outcome; raises as `ConfigTemplate.render` does."""
    return prepare_config(config).render(scope)


def _own_rules(config: BaseModel) -> tuple[frozenset[str], ...]:
    """Give the keys never rendered, those of JSON documents, those of HTML, those whose null is written."""
    if not isinstance(config, Templated):
        return (frozenset(),) * 4
    as_json = config.json_text if config.renders_as_json() else frozenset[str]()
    return config.template_free, as_json, config.html_text, config.null_written


def _has_templates(value: object, depth: int = 0) -> bool:
    match value:
        case str():
            return has_template(value)
        case Mapping():
            return depth >= MAX_DEPTH or any(_has_templates(each, depth + 1) for each in value.values())
        case list() | tuple():
            return depth >= MAX_DEPTH or any(_has_templates(each, depth + 1) for each in value)
    return False


class _Tree:
    """The rendering of one tree: one scope, one budget, one list of what was missing."""

    def __init__(self, scope: Mapping[str, object], missing: dict[str, None]) -> None:
        self.scope = scope
        self._missing = missing
        self._budget = Budget()

    def render(self, value: object, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise FatalError(TEMPLATE_ERROR, f"the tree is nested deeper than {MAX_DEPTH} levels")
        match value:
            case str():
                return self.note(render_text(value, self.scope, self._budget))
            case Mapping():
                return {key: self.render(each, depth + 1) for key, each in value.items()}
            case list() | tuple():
                return [self.render(each, depth + 1) for each in value]
        return value

    def note(self, rendered: Rendered) -> object:
        self._missing.update(dict.fromkeys(rendered.missing))
        return rendered.value


def tell_faults(error: ValidationError) -> str:
    """Name the places and what is wrong there, and never the values, which may be secret."""
    faults = error.errors(include_url=False, include_input=False)[:_FAULTS_TOLD]
    return "; ".join(f"{_path(fault['loc'])}: {words_for(fault)}" for fault in faults)


def _path(steps: tuple[int | str, ...]) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return path.removeprefix(".") or "config"


def _place(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    return type(error).__name__


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
