"""Names in the environment and in `.env` that look like a setting of ours which is misspelt."""

import os
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from shared.env_file import names_in_file
from shared.faults import VARIABLE
from shared.settings import Settings

OUR_PREFIX: Final = "KNOCKON_"
LIKENESS: Final = 0.85

_NO_SETTINGS: Final = frozenset({"KNOCKON_WORKSPACE", VARIABLE})


def find_misspelt() -> dict[str, str]:
    """Give the misspelt names of the environment and of `.env`, each with the one that may be meant."""
    return misspelt([*os.environ, *names_in_file()])


def misspelt(names: Iterable[str]) -> dict[str, str]:
    """Tell which of these names nobody reads but resemble one of ours, and which; foreign ones are left out.

    A foreign name is one that resembles none, begins with another letter, or stands beside the one of ours.
    """
    given = {name.upper(): name for name in names}
    ours = {(field.alias or name).upper() for name, field in Settings.model_fields.items()} | _NO_SETTINGS
    missing = sorted(ours - given.keys())
    found: dict[str, str] = {}
    for upper in sorted(given.keys() - ours):
        if meant := _meant(upper, missing):
            found[given[upper]] = meant
    return found


def _meant(name: str, ours: Iterable[str]) -> str | None:
    for written in dict.fromkeys((name, name.removeprefix(OUR_PREFIX))):
        same_letter = [each for each in ours if each[:1] == written[:1]]
        if close := get_close_matches(written, same_letter, 1, LIKENESS):
            return close[0]
    return None
