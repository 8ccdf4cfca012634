"""How a row of `idle_steps` is read."""

from typing import Any, Final

from sqlalchemy import Row

from shared.db.types import must_instant, read_instant
from shared.model.idle_steps import (
    IdleAction,
    IdleAnchor,
    IdleRuleKind,
    IdleStatus,
    IdleStepRow,
    IdleStop,
)

IDLE_COLUMNS: Final = """
    r.id, r.workspace_id, r.conversation_id, r.sequence_id, r.rule, r.agent_id, r.channel_id, r.step_index,
    r.step_count, r.action, r.anchor_message_id, r.anchor_ms, r.anchor_seq, r.due_at, r.status, r.reason,
    r.run_id, r.version, r.claimed_at, r.ended_at, r.created_at, r.updated_at
"""


def idle_step_row(row: Row[Any]) -> IdleStepRow:
    """Read a row of `IDLE_COLUMNS`."""
    return IdleStepRow(
        id=row.id,
        workspace_id=row.workspace_id,
        conversation_id=row.conversation_id,
        sequence_id=row.sequence_id,
        rule=IdleRuleKind(row.rule),
        agent_id=row.agent_id,
        channel_id=row.channel_id,
        step_index=row.step_index,
        step_count=row.step_count,
        action=IdleAction(row.action),
        anchor=IdleAnchor(row.anchor_message_id, (row.anchor_ms, row.anchor_seq)),
        due_at=must_instant(row.due_at),
        status=IdleStatus(row.status),
        reason=IdleStop(row.reason) if row.reason else None,
        run_id=row.run_id,
        version=row.version,
        claimed_at=read_instant(row.claimed_at),
        ended_at=read_instant(row.ended_at),
        created_at=must_instant(row.created_at),
        updated_at=must_instant(row.updated_at),
    )
