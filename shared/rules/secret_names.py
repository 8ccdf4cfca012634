"""Which secrets templates ask for (docs/automations.md, "Secrets"): `{{ secrets.NAME }}`, by a written name.

So it is known when an automation is saved whether it uses any, and before an action which ones it needs.
"""

import re
from collections.abc import Iterable
from typing import Final

from shared.rules.liquid_engine import Use
from shared.rules.templates import template_paths, template_uses

ROOT: Final = "secrets"
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
TRIMMING: Final = frozenset({"strip", "lstrip", "rstrip"})
ENCODING: Final = frozenset({"base64_encode", "escape", "json", "url_encode"})
HINT: Final = "a key of the event that is called secrets is {{ payload.secrets }}"

_WHY: Final = "what came of it could not be masked"
_ALLOWED: Final = ", ".join(sorted(TRIMMING | ENCODING))


def secret_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Give the names of the secrets that texts ask for, each once, in order."""
    paths = (path for text in texts if ROOT in text for path in template_paths(text))
    return tuple(sorted({str(path[1]) for path in paths if path[0] == ROOT and _is_name(path[1:])}))


def check_secrets(text: str) -> str | None:
    """Say what is wrong with the way in which a text asks for secrets; None if nothing is.

    A secret is put out and nothing else, as it is or in a form in which it is found again and masked.
    """
    uses = list(template_uses(text)) if ROOT in text else []
    asking = [use for use in uses if use.path[0] == ROOT]
    if not all(_is_name(use.path[1:]) for use in asking):
        return f"asks for secrets other than by name, as in {{{{ secrets.API_TOKEN }}}}; {HINT}"
    if asking and any(use.path[0] is None for use in uses):
        return "asks for secrets and has a path whose first step is computed"
    return next(filter(None, map(_fault_of_use, asking)), None)


def _fault_of_use(use: Use) -> str | None:
    name = ".".join(map(str, use.path))
    if use.filters is None:
        return f"{name} stands elsewhere than first in a mark of its own, {{{{ {name} }}}}: {_WHY}; {HINT}"
    odd = [each for each in use.filters if each not in TRIMMING | ENCODING]
    if odd:
        return f"{name} goes through {odd[0]}: {_WHY}; a secret may go through {_ALLOWED}"
    if sum(each in ENCODING for each in use.filters) > 1:
        return f"{name} is encoded twice: {_WHY}; one of {', '.join(sorted(ENCODING))} is allowed"
    return None


def check_without_secrets(text: str) -> str | None:
    """Say that a text asks for secrets where they would be recorded; None if it does not."""
    if ROOT in text and any(path[0] == ROOT for path in template_paths(text)):
        return f"secrets are for actions that call the outside (SEND_WEBHOOK): this would record them; {HINT}"
    return None


def _is_name(steps: tuple[object, ...]) -> bool:
    return len(steps) == 1 and isinstance(steps[0], str) and NAME.fullmatch(steps[0]) is not None
