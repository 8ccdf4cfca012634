"""What an automation's actions would be handed for an event (docs/automations.md, "Dry run"). Pure.

Nothing is carried out and no secret is opened: a stand-in is rendered in its place, and masked as the secret
itself would be. What earlier actions would have given is not known; its name stands there in brackets.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from shared.errors import FatalError
from shared.hiding import Hider
from shared.masking import mask_definition, mask_tree
from shared.model.automation import Action, Automation
from shared.model.events import Event, flatten
from shared.model.sizes import cut_for_show
from shared.model.templated import walk_texts
from shared.plugins import validate_config
from shared.rules.rendering import CONFIG_INVALID, RENDERED, prepare_config, tell_faults
from shared.rules.scopes import Surroundings, template_scope
from shared.rules.secret_names import ROOT, secret_names
from shared.rules.templates import template_paths

ABSENT_CODE: Final = "SECRET_MISSING"
SHOWN_BYTES: Final = 65_536
RUN_ID: Final = "00000000-0000-7000-8000-000000000000"

_OUTPUT: Final = "output"


@dataclass(frozen=True, slots=True)
class Fault:
    """How an action would fail before it did anything: a stable code, and a text for a person."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class PreviewedAction:
    """One action as it would be handed to its executor, masked as it may be shown.

    `missing` are the paths that lead nowhere, `assumed` those that only an earlier action fills, `secrets`
    the names that it asks for. Where `assumed` or `secrets` name any, a fault may be a stand-in's.
    """

    position: int
    type: str
    config: Mapping[str, Any] | None
    missing: tuple[str, ...]
    assumed: tuple[str, ...]
    secrets: tuple[str, ...]
    fault: Fault | None


@dataclass(frozen=True, slots=True)
class Stage:
    """What templates see beside the event: what is known of the subject, and the secrets that are there."""

    at: datetime
    subject: Mapping[str, Any] | None = None
    secrets: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Scopes:
    """What templates see, and the same with everything masked that must not be shown."""

    real: Mapping[str, Any]
    shown: Mapping[str, Any]


def preview_actions(event: Event, automation: Automation, stage: Stage) -> list[PreviewedAction]:
    """Render each action of an automation for an event."""
    around = Surroundings(RUN_ID, 1, automation.id, automation.definition.name, event.workspace_id)
    seen = {**flatten(event), **({} if stage.subject is None else {"subject": stage.subject})}
    scopes = _Scopes(
        real=template_scope(seen, around, {}, stage.at),
        shown=template_scope(mask_tree(seen), around, {}, stage.at),
    )
    return [
        _preview(position, action, scopes, stage.secrets)
        for position, action in enumerate(automation.definition.actions, start=1)
    ]


def asked_secrets(automation: Automation) -> tuple[str, ...]:
    """Name the secrets that an automation's templates ask for."""
    return secret_names(text for action in automation.definition.actions for text in _texts(action))


def asks_for_subject(automation: Automation) -> bool:
    """Tell whether a template reads what is known of the subject."""
    texts = (text for action in automation.definition.actions for text in _texts(action))
    return any(path[0] == "subject" for text in texts if "subject" in text for path in template_paths(text))


def _preview(position: int, action: Action, scopes: _Scopes, known: frozenset[str]) -> PreviewedAction:
    texts = tuple(_texts(action))
    names = secret_names(texts)
    stand_ins = {name: _stand_in(name, action) for name in names}
    outputs, assumed = _assume(texts, position)
    added = {"actions": outputs, **({ROOT: stand_ins} if stand_ins else {})}
    config: Mapping[str, Any] | None = None
    missing: tuple[str, ...] = ()
    try:
        template = prepare_config(action.config)
        filled, missing = template.fill({**scopes.real, **added})
        fault = _fault(action, filled)
        shown, _ = template.fill({**scopes.shown, **added})
        config = cut_for_show(mask_definition(Hider(stand_ins.values()).tree(shown)), SHOWN_BYTES)
    except FatalError as failed:
        fault = Fault(failed.code, failed.message)
    unknown = [name for name in names if name not in known]
    if unknown:
        fault = Fault(ABSENT_CODE, f"there is no secret {', '.join(unknown)} in the workspace")
    missing = tuple(path for path in missing if path not in assumed)
    return PreviewedAction(position, action.type, config, missing, assumed, names, fault)


def _fault(action: Action, filled: Mapping[str, object]) -> Fault | None:
    """Say what is wrong with a rendered config; None if nothing is."""
    try:
        validate_config(type(action.config), filled, RENDERED)
    except ValidationError as error:
        return Fault(CONFIG_INVALID, tell_faults(error))
    except ValueError as error:
        return Fault(CONFIG_INVALID, str(error))
    return None


def _texts(action: Action) -> Iterator[str]:
    return (text for _, text in walk_texts(action.config.model_dump(mode="json")))


def _stand_in(name: str, action: Action) -> str:
    """Make what stands for a secret: text that could sign, and a URL where one begins with it."""
    text = base64.b64encode(f"stand-in of {name}"[:60].ljust(32).encode()).decode()
    url = getattr(action.config, "url", None)
    begins = url.lstrip().partition("}}")[0] if isinstance(url, str) else ""
    is_url = begins.startswith("{{") and (ROOT, name) in template_paths(f"{begins}}}}}")
    return f"https://stand-in.invalid/{text}" if is_url else text


def _assume(texts: Iterable[str], position: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Make outputs of the actions before `position` that have what texts ask for, and name that."""
    outputs: dict[str, Any] = {}
    assumed: dict[str, None] = {}
    for path in (path for text in texts if _OUTPUT in text for path in template_paths(text)):
        if len(path) < 3 or path[0] != "actions" or path[2] != _OUTPUT or not _is_before(path[1], position):
            continue
        name = ".".join(map(str, path))
        assumed[name] = None
        if all(isinstance(step, str) for step in path[3:]):
            _put(outputs, list(map(str, path[1:])), f"({name})")
    return outputs, tuple(assumed)


def _is_before(step: object, position: int) -> bool:
    text = str(step)
    return text.isdecimal() and text.isascii() and 1 <= int(text[:4]) < position


def _put(tree: dict[str, Any], steps: list[str], value: str) -> None:
    """Put a value into a tree; what is an object stays one."""
    for step in steps[:-1]:
        below = tree.get(step)
        if not isinstance(below, dict):
            below = tree[step] = {}
        tree = below
    tree.setdefault(steps[-1], value)
