"""Steps of idle sequences as documents: in JSON types, the same for command and HTTP."""

from typing import Any, Final

from shared.db.idle_lists import IdleStepShown
from shared.model.event_fields import format_instant
from shared.model.idle_steps import IdleStatus, IdleStepRow

_STANDS: Final = {
    IdleStatus.PROCESSING: "being carried out",
    IdleStatus.FIRED: "fired",
    IdleStatus.STOPPED: "stopped",
    IdleStatus.SUPERSEDED: "superseded",
    IdleStatus.FAILED: "failed",
}


def step_document(step: IdleStepShown) -> dict[str, Any]:
    """Show one in the names of the API."""
    row = step.row
    return {
        "id": row.id,
        "sequence_id": row.sequence_id,
        "conversation_id": row.conversation_id,
        "rule": row.rule,
        "name": step.holder_name,
        "agent_id": row.agent_id,
        "channel_id": row.channel_id,
        "step_index": row.step_index,
        "step_count": row.step_count,
        "action": row.action,
        "words": step_words(row),
        "anchor_message_id": row.anchor.message_id,
        "due_at": row.due_at,
        "status": row.status,
        "reason": row.reason,
        "run_id": row.run_id,
        "claimed_at": row.claimed_at,
        "ended_at": row.ended_at,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def step_words(row: IdleStepRow) -> str:
    """Say which step it is, and how it stands: `step 2 of 3: follow_up, due 2026-03-01T12:10:00Z`."""
    return f"step {row.step_index + 1} of {row.step_count}: {row.action}, {_stands(row)}"


def _stands(row: IdleStepRow) -> str:
    if row.status is IdleStatus.PENDING:
        return f"due {format_instant(row.due_at)}"
    stands = _STANDS[row.status]
    return stands if row.reason is None or row.reason.value == stands else f"{stands}: {row.reason}"
