"""Whether an automation takes part. Apart from its schema, so that readers of rows need not load that."""

from enum import StrEnum


class AutomationStatus(StrEnum):
    """Whether an automation takes part."""

    DRAFT = "DRAFT"
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"
    ARCHIVED = "ARCHIVED"
