"""A line of the log as the API shows it, in lists and in the stream alike."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from shared.db.log_reads import LogRow
from shared.masking import mask_tree


class LogOut(BaseModel):
    """One line. `id` is its place in the log, from which a stream goes on."""

    id: str = Field(examples=["7041-3"])
    automation_id: str | None
    automation_key: str | None
    run_id: str | None
    level: str
    message: str
    data: Mapping[str, Any] | None
    at: datetime

    @classmethod
    def of(cls, row: LogRow) -> Self:
        """Show a line."""
        return cls(
            id=str(row.cursor),
            automation_id=row.automation_id,
            automation_key=row.automation_key,
            run_id=row.run_id,
            level=row.level,
            message=row.message,
            data=mask_tree(row.data),
            at=row.at,
        )
