"""Identifiers: UUIDv7 text, so that ids sort by the time they were made, and one type a noun."""

from typing import Final, NewType

import uuid_utils

WorkspaceId = NewType("WorkspaceId", str)
AutomationId = NewType("AutomationId", str)
RunId = NewType("RunId", str)

ID_LENGTH: Final = 36


def new_id() -> str:
    """Make a fresh UUIDv7 in its canonical 36 characters."""
    return str(uuid_utils.uuid7())
