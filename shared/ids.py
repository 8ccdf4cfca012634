"""Identifiers: UUIDv7 text, so that ids sort by the time they were made, and one type a noun."""

from datetime import datetime
from typing import Final, NewType

import uuid_utils

WorkspaceId = NewType("WorkspaceId", str)
AutomationId = NewType("AutomationId", str)
RunId = NewType("RunId", str)

ID_LENGTH: Final = 36


def new_id() -> str:
    """Make a fresh UUIDv7 in its canonical 36 characters."""
    return str(uuid_utils.uuid7())


def first_id(at: datetime) -> str:
    """Give the least id that can be made at this instant; all that were made before it sort before it."""
    stamp = f"{int(at.timestamp() * 1000):012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7000-8000-000000000000"
