"""What an alert says, whichever way it travels (docs/operations.md, "Alerts"): stored with each sending.

It holds codes, masked messages, names and numbers, and nothing of any payload.
"""

from datetime import datetime
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from shared.rules.alerting import GroupState

SHOWN_PARTS: Final = 10
SHOWN_SHARES: Final = 5
EXACT: Final = ConfigDict(frozen=True, extra="forbid")


class AlertShare(BaseModel):
    """How many dead letters of a group one automation has."""

    model_config = EXACT

    automation_id: str
    automation: str
    count: int


class AlertPart(BaseModel):
    """One group: `count` dead letters in all, `more` of them since the message before, if there was one.

    Where several automations share it, `automations` counts them, and `shares` names those with the most.
    """

    model_config = EXACT

    group_id: str
    fingerprint: str
    state: GroupState
    automation_id: str | None
    automation: str
    host: str | None
    code: str
    title: str
    message: str
    run_id: str
    count: int
    more: int
    first_at: datetime
    last_at: datetime
    since: datetime | None
    automations: int = 1
    shares: Annotated[tuple[AlertShare, ...], Field(max_length=SHOWN_SHARES)] = ()

    @property
    def place(self) -> str:
        """Name what is in trouble: the other side's host, or the automation."""
        return self.host or self.automation


class AlertMessage(BaseModel):
    """A message: the groups that it shows, and how many more it only counts.

    `about` names the automation if all of them are of one. `quiet_until`: no other message follows before
    then, however many dead letters there are.
    """

    model_config = EXACT

    workspace_id: str
    about: str | None
    parts: Annotated[tuple[AlertPart, ...], Field(min_length=1, max_length=SHOWN_PARTS)]
    unshown_groups: int = 0
    unshown_letters: int = 0
    quiet_until: datetime | None = None

    @property
    def groups(self) -> int:
        """Count the groups that it tells of."""
        return len(self.parts) + self.unshown_groups

    @property
    def letters(self) -> int:
        """Count the dead letters that are new in it."""
        return sum(part.more for part in self.parts) + self.unshown_letters
