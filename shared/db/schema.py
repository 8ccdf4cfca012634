"""All tables together: importing this module enters every one of them into METADATA."""

from shared.db import (
    tables_api,
    tables_bulk,
    tables_idle,
    tables_later,
    tables_pending,
    tables_people,
    tables_talk,
)
from shared.db.tables import METADATA

__all__ = [
    "METADATA",
    "tables_api",
    "tables_bulk",
    "tables_idle",
    "tables_later",
    "tables_pending",
    "tables_people",
    "tables_talk",
]
