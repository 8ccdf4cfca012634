"""Action types that other distributions bring, through the entry-point group `knockon.executors`.

They are looked for once in a process. One that cannot be used is told of by one log line and by `knockon
doctor`, both with the name of its distribution, and keeps nothing from working (`docs/plugins.md`).
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Final

import structlog
from pydantic import ValidationError
from structlog.typing import FilteringBoundLogger

from shared.model.action_config import ActionConfig
from shared.model.actions import ACTION_CONFIGS

GROUP: Final = "knockon.executors"
TYPE_MAX: Final = 100
_TYPE: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")

# Not by shared.logs: that knows the settings and so the drivers, and definitions are read without those.
log: FilteringBoundLogger = structlog.get_logger(part="plugins")


@dataclass(frozen=True, slots=True)
class Plugin:
    """One action type: `config` is what it takes, `execute` does it and gives an ActionResult.

    `execute` is called with the rendered config and the RunContext; it raises RetryableError or FatalError.
    """

    config: type[ActionConfig]
    execute: Callable[..., object]


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plug-in that can be used, and the distribution that brings it."""

    action_type: str
    distribution: str
    plugin: Plugin


@dataclass(frozen=True, slots=True)
class BrokenPlugin:
    """An entry point that cannot be used, and why."""

    name: str
    distribution: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plugins:
    """What was found, by action type, and what was refused."""

    found: Mapping[str, FoundPlugin]
    broken: tuple[BrokenPlugin, ...]


@cache
def installed_plugins() -> Plugins:
    """Give the plug-ins of this process; the first call looks for them and logs what is broken."""
    plugins = read_plugins(entry_points(group=GROUP), ACTION_CONFIGS)
    for each in plugins.broken:
        log.error("plugin_refused", name=each.name, distribution=each.distribution, reason=each.reason)
    return plugins


def read_plugins(entries: Iterable[EntryPoint], taken: Collection[str]) -> Plugins:
    """Load entry points. A name that is taken, or that two of them have, is refused."""
    ordered = sorted(entries, key=lambda entry: (entry.name, _distribution(entry)))
    counts = Counter(entry.name for entry in ordered)
    found: dict[str, FoundPlugin] = {}
    broken: list[BrokenPlugin] = []
    for entry in ordered:
        distribution = _distribution(entry)
        read = _bad_name(entry.name, taken, counts) or _load(entry)
        if isinstance(read, str):
            broken.append(BrokenPlugin(entry.name, distribution, read))
        else:
            found[entry.name] = FoundPlugin(entry.name, distribution, read)
    return Plugins(MappingProxyType(found), tuple(broken))


def validate_config(
    model: type[ActionConfig], given: object, context: Mapping[str, bool] | None = None
) -> ActionConfig:
    """Check a config by its model. Raises ValidationError, or ValueError where the check itself is broken."""
    try:
        return model.model_validate(given, context=context)
    except ValidationError:
        raise
    except Exception as error:
        log.warning("plugin_check_failed", config=model.__name__, exc_info=error)
        raise ValueError(f"could not be checked: {model.__name__} raised {type(error).__name__}") from error


def _bad_name(name: str, taken: Collection[str], counts: Mapping[str, int]) -> str | None:
    if _TYPE.fullmatch(name) is None or len(name) > TYPE_MAX:
        return f"an action type is written LIKE_THIS, with at most {TYPE_MAX} characters"
    if name in taken:
        return "the engine has an action type of this name"
    return "two plug-ins have this name" if counts[name] > 1 else None


def _load(entry: EntryPoint) -> Plugin | str:
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:  # whatever somebody's module does while it is imported
        log.debug("plugin_not_loaded", name=entry.name, exc_info=error)
        return f"cannot be loaded: {type(error).__name__}: {error}"[:300]
    if not isinstance(loaded, Plugin):
        return f"{entry.value} is no knockon.plugins.Plugin"
    model: object = loaded.config
    execute: object = loaded.execute
    if not (isinstance(model, type) and issubclass(model, ActionConfig)):
        return f"the config of {entry.value} is no knockon.plugins.ActionConfig"
    return loaded if callable(execute) else f"{entry.value} cannot be called"


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown"
