"""What one action must not leave behind in rows and logs: its secrets, and what its own config hides."""

import re
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from shared.hiding import Hider
from shared.masking import SCHEMES, is_secret_name
from shared.model.actions import ActionConfig, SendWebhook
from shared.model.effects import Effect
from shared.signing import split_secrets

_SCHEME: Final = re.compile(rf"(?i)^\s*{SCHEMES}\s+(?:token=)?")


def hider_of(secrets: Mapping[str, str], config: ActionConfig | None) -> Hider:
    """Give what masks an action's traces; `config` is the rendered one, None if it came to none."""
    return Hider((*secrets.values(), *(_own(config) if isinstance(config, SendWebhook) else ())))


def masked_effects(effects: tuple[Effect, ...], hider: Hider) -> tuple[Effect, ...]:
    """Give what an action wants changed as it may be written into rows."""
    if not hider.hides():
        return effects
    return tuple(
        replace(effect, **{part.name: hider.tree(getattr(effect, part.name)) for part in fields(effect)})
        for effect in effects
    )


class MaskedError(Exception):
    """An error as a log may show it; its traceback is put into words and masked once somebody reads it."""

    def __init__(self, error: Exception, hider: Hider) -> None:
        """Keep both for later."""
        super().__init__()
        self._error = error
        self._hider = hider

    def __str__(self) -> str:
        """Tell the error with its traceback and its causes."""
        return self._hider.text("".join(traceback.format_exception(self._error)).rstrip())


def masked_error(error: Exception, hider: Hider) -> Exception:
    """Give an error as a log may show it: itself, if nothing is to be hidden."""
    return MaskedError(error, hider) if hider.hides() else error


def _own(config: SendWebhook) -> Iterator[str]:
    """Give what an author may have written into a webhook in plain text."""
    yield from split_secrets(config.secret or "")
    for name, value in config.headers.items():
        if is_secret_name(name):
            yield _SCHEME.sub("", value)
    try:
        parts = urlsplit(config.url)
        queried = parse_qsl(parts.query)
    except ValueError:
        return
    yield from (value for name, value in queried if is_secret_name(name))
    if parts.password:
        yield from (unquote(parts.password), f"{unquote(parts.username or '')}:{unquote(parts.password)}")
