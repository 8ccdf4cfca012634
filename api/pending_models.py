"""How a pending execution is shown, alone or beside the run that it made."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

from shared.db.pending_reads import PendingSummary
from shared.model.delays import show_runs_after
from shared.model.pending import Anchor, PendingSkip, PendingStatus


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
        return cls(
            id=row.id,
            automation_id=row.automation_id,
            automation_key=row.automation_key,
            automation_name=row.automation_name,
            runs_after=show_runs_after(row.delay_min),
            subject_type=row.subject.type,
            subject_id=row.subject.id,
            anchor=row.anchor,
            message_id=row.message_id,
            episode_key=row.episode_key,
            started_at=row.started_at,
            due_at=row.due_at,
            status=row.status,
            skip_reason=row.skip_reason,
            run_id=row.run_id,
            ended_at=row.ended_at,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
