"""What idle rules are read from, as sets: AI agents, channels, and the flag in both its halves."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from shared.db.sheet import put
from shared.db.sql import Sql, sql
from shared.db.types import read_any_json

# A workspace and an id in it.
Place = tuple[str, str]

READ_AGENTS: Final = sql(
    """
    SELECT r.workspace_id, r.id, r.name, r.parameters AS config
    FROM {rows} JOIN ai_agents r ON r.workspace_id = x.workspace_id AND r.id = x.id
    WHERE r.deleted_at IS NULL
    """,
    workspace_id="text",
    id="text",
)
READ_CHANNELS: Final = sql(
    """
    SELECT r.workspace_id, r.id, r.name, CASE WHEN r.enabled = 1 THEN r.settings END AS config
    FROM {rows} JOIN channels r ON r.workspace_id = x.workspace_id AND r.id = x.id
    """,
    workspace_id="text",
    id="text",
)


@dataclass(frozen=True, slots=True)
class RuleHolder:
    """An AI agent or a channel: its name, and what holds its rule, as it was stored; None where it is off."""

    name: str
    config: object


def read_agent_holders(conn: Connection, places: Iterable[Place]) -> dict[Place, RuleHolder]:
    """Give those of the agents that are there."""
    return _holders(conn, READ_AGENTS, places)


def read_channel_holders(conn: Connection, places: Iterable[Place]) -> dict[Place, RuleHolder]:
    """Give those of the channels that are there."""
    return _holders(conn, READ_CHANNELS, places)


WHERE_ON: Final = sql(
    """
    SELECT r.workspace_id FROM {rows}
    JOIN flags r ON r.workspace_id = x.workspace_id AND r.name = :name AND r.enabled = 1
    JOIN feature_flags f ON f.name = r.name AND f.enabled = 1
    """,
    workspace_id="text",
)


def workspaces_with(conn: Connection, name: str, workspace_ids: Iterable[str]) -> frozenset[str]:
    """Give those of the workspaces that have a flag on, which is on for the whole installation too."""
    rows = put(conn, WHERE_ON, ({"workspace_id": each} for each in sorted(set(workspace_ids))), name=name)
    return frozenset(row.workspace_id for row in rows)


def _holders(conn: Connection, statement: Sql, places: Iterable[Place]) -> dict[Place, RuleHolder]:
    wanted = ({"workspace_id": workspace_id, "id": id_} for workspace_id, id_ in sorted(set(places)))
    return {
        (row.workspace_id, row.id): RuleHolder(row.name, read_any_json(row.config))
        for row in put(conn, statement, wanted)
    }
