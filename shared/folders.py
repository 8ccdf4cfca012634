"""Folders that hold what nobody else on the machine should read."""

from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter, unless it is there; one that is there stays as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
