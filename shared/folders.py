"""Folders and files that hold what nobody else on the machine should read."""

import os
from pathlib import Path

from shared.errors import ConfigError


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter, unless it is there; one that is there stays as it is.

    Raises ConfigError if something else is there.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ConfigError(f"{folder} is no folder, or does not lie in one") from error


def make_private_file(file: Path) -> None:
    """Make an empty file that only its owner can use, unless it is there; then it stays as it is."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
