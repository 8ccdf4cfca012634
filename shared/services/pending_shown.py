"""Pending executions as documents: in JSON types, the same for command and HTTP."""

from dataclasses import asdict
from typing import Any

from shared.db.pending_reads import PendingSummary
from shared.model.delays import show_runs_after


def pending_document(row: PendingSummary) -> dict[str, Any]:
    """Show one in the names of the API."""
    shown = asdict(row)
    subject, minutes = shown.pop("subject"), shown.pop("delay_min")
    runs_after = show_runs_after(minutes)
    return {**shown, "subject_type": subject["type"], "subject_id": subject["id"], "runs_after": runs_after}
