"""Rows of subjects as JSON, which is how the database keeps them."""

from collections.abc import Mapping
from typing import Any

from shared.model.subjects import SubjectRow, Touch


def row_to_json(row: SubjectRow) -> dict[str, Any]:
    """Give the row in JSON types."""
    return {
        "workspaceId": row.workspace_id,
        "type": row.type,
        "id": row.id,
        "fields": {
            name: [[stamp[0], stamp[1], value] for stamp, value in writes]
            for name, writes in row.fields.items()
        },
        "touches": [[*touch.stamp, touch.event_key, touch.deletes] for touch in row.touches],
    }


def row_from_json(written: Mapping[str, Any]) -> SubjectRow:
    """Read back what `row_to_json` wrote."""
    return SubjectRow(
        written["workspaceId"],
        written["type"],
        written["id"],
        {
            name: tuple(((ms, seq), value) for ms, seq, value in writes)
            for name, writes in written["fields"].items()
        },
        tuple(Touch((ms, seq), event_key, deletes) for ms, seq, event_key, deletes in written["touches"]),
    )
