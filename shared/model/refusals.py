"""Why a definition is refused: every fault with its path, in words for the author who has to mend it.

Paths read `actions[1].config.url`. Values are named only where they are one of a known few, since any other
may hold a secret.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from shared.errors import Fault
from shared.model.plain_words import words_for

_NEAREST: Final = 3
_SHOWN_MAX: Final = 60
_QUOTED: Final = re.compile(r"'([^']*)'")
_CHOICES: Final = ("enum", "literal_error")

Location = tuple[int | str, ...]


class Refused(ValueError):
    """Several faults of one value; their paths begin at that value. Validators raise it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in faults))


def faults_of(error: ValidationError, model: type[BaseModel]) -> list[Fault]:
    """List what is wrong with a value that `model` refused; paths begin at that value."""
    return [fault for details in error.errors(include_url=False) for fault in _faults(details, model)]


def unknown(value: object, known: Iterable[str]) -> str:
    """Say that a word is not one of the known ones, and which of those come near."""
    names = list(known)
    near = difflib.get_close_matches(
        str(value)[:_SHOWN_MAX].upper(), {name.upper() for name in names}, _NEAREST
    )
    close = sorted(
        (name for name in names if name.upper() in near), key=lambda name: near.index(name.upper())
    )
    shown = repr(value) if len(repr(value)) <= _SHOWN_MAX else f"{repr(value)[:_SHOWN_MAX]}..."
    if close:
        return f"{shown} is unknown; did you mean {' or '.join(close)}?"
    return f"{shown} is unknown; known are {', '.join(names)}"


def join(prefix: str, path: str) -> str:
    """Put two paths together; either may be empty, and an index needs no dot."""
    return f"{prefix}.{path}" if prefix and path and not path.startswith("[") else f"{prefix}{path}"


def _faults(details: ErrorDetails, model: type[BaseModel]) -> list[Fault]:
    path = _path(details["loc"])
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, Refused):
        return [Fault(join(path, fault.path), fault.message) for fault in cause.faults]
    return [Fault(path, _message(details, model))]


def _message(details: ErrorDetails, model: type[BaseModel]) -> str:
    kind = details["type"]
    if kind == "extra_forbidden":
        return unknown(details["loc"][-1], _keys_at(model, details["loc"][:-1]))
    if kind in _CHOICES:
        return unknown(details["input"], _QUOTED.findall(details.get("ctx", {}).get("expected", "")))
    return words_for(details)


def _path(location: Location) -> str:
    path = ""
    for step in location:
        path = join(path, f"[{step}]" if isinstance(step, int) else step)
    return path


def _keys_at(model: type[BaseModel], location: Location) -> list[str]:
    for step in location:
        if isinstance(step, str):
            model = _model_under(model, step)
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_under(model: type[BaseModel], key: str) -> type[BaseModel]:
    fields: Mapping[str, Any] = {field.alias or name: field for name, field in model.model_fields.items()}
    annotation = fields[key].annotation
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return model
