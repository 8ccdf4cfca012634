"""How a pending execution is shown, alone or beside the run that it made."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from shared.db.pending_reads import PendingSummary
from shared.model.pending import Anchor, PendingSkip, PendingStatus
from shared.services.pending_shown import pending_document


class PendingOut(BaseModel):
    """What waits, or has waited, for one episode of a subject."""

    id: str
    automation_id: str
    automation_key: str | None
    automation_name: str | None
    runs_after: str | None = Field(
        description="The automation's delay as it is now.", examples=["runs after 4h"]
    )
    subject_type: str
    subject_id: str
    anchor: Anchor
    message_id: str | None
    episode_key: str
    armed_by: str = Field(description="The entry that armed it.")
    started_at: datetime = Field(description="When the episode began; the clock runs from here.")
    due_at: datetime
    status: PendingStatus
    skip_reason: PendingSkip | None = Field(description="Why it did not run.")
    run_id: str | None
    ended_at: datetime | None = Field(description="When the episode ended; null while it lasts.")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: PendingSummary) -> Self:
        """Show one."""
        return cls.model_validate(pending_document(row))
