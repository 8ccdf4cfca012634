"""Folders and files that hold what nobody else on the machine should read."""

import os
from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter, unless it is there; one that is there stays as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def make_private_file(file: Path) -> None:
    """Make an empty file that only its owner can use, unless it is there; then it stays as it is."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
