"""Rows of subjects as JSON, which is how the database keeps them."""

from collections.abc import Mapping, Sequence
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
        "touches": [_touch_to_json(touch) for touch in row.touches],
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
        tuple(map(_touch_from_json, written["touches"])),
    )


def _touch_to_json(touch: Touch) -> list[Any]:
    written = [*touch.stamp, touch.event_key, touch.deletes]
    return [*written, list(touch.names)] if touch.names else written


def _touch_from_json(written: Sequence[Any]) -> Touch:
    ms, seq, event_key, deletes, *names = written
    return Touch((ms, seq), event_key, deletes, tuple(names[0]) if names else ())
