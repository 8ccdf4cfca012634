"""The `.env` of the working folder, held against its grammar before anything is taken from it.

What reads the settings passes over a line that it cannot read; here such a line is an error.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dotenv.parser import Binding, parse_stream

from shared.errors import SettingsError

ENV_FILE: Final = ".env"

_NAME: Final = re.compile(r"[\w.\-]+")


def names_in_file() -> list[str]:
    """Give the names that the file sets; none where there is no file.

    Raises SettingsError with the first line that cannot be read, without a word of what stands in it.
    """
    try:
        return list(_read_names(Path(ENV_FILE)))
    except UnicodeDecodeError:
        raise SettingsError(f"{ENV_FILE}: cannot be read: it is not UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{ENV_FILE}: cannot be read: {error.strerror}") from None


def _read_names(file: Path) -> Iterator[str]:
    if not file.exists() and not file.is_symlink():
        return
    if not file.is_file():
        raise SettingsError(f"{ENV_FILE}: cannot be read: it is not a file")
    with file.open(encoding="utf-8") as source:
        for binding in parse_stream(source):
            if binding.error or _lacks_a_part(binding):
                raise SettingsError(f"{ENV_FILE}: line {_line_of(binding)} cannot be read")
            if binding.key is not None:
                yield binding.key


def _lacks_a_part(binding: Binding) -> bool:
    """Tell whether a line with a name has no value, or a name that is none; comments have no name."""
    return binding.key is not None and (binding.value is None or not _NAME.fullmatch(binding.key))


def _line_of(binding: Binding) -> int:
    """Give the number of the line itself: empty lines before it are part of what was read with it."""
    text = binding.original.string
    before = text[: len(text) - len(text.lstrip())]
    return binding.original.line + before.count("\n")
