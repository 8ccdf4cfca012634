"""AI agents of a workspace; what is deleted stays as a row, so that its id is never given again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import ALL, FIRST, sql
from shared.db.types import must_instant, read_any_json, write_instant


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An AI agent as it stands; `parameters`, an object unless SQL wrote it, holds the profile."""

    id: str
    name: str
    parameters: object
    created_at: datetime
    updated_at: datetime


LIST_AGENTS: Final = sql(
    """
    SELECT r.id, r.name, r.parameters, r.created_at, r.updated_at FROM ai_agents r
    WHERE r.workspace_id = :workspace_id AND r.id > :after AND r.deleted_at IS NULL
    ORDER BY r.workspace_id, r.id LIMIT :most
    """
)


def list_agents(
    conn: Connection, workspace_id: str, *, after: str = FIRST, most: int = ALL
) -> list[AgentRow]:
    """Give a workspace's agents by id, those behind the id `after`."""
    rows = LIST_AGENTS.run(conn, {"workspace_id": workspace_id, "after": after, "most": most})
    return [_agent(row) for row in rows]


FIND_AGENT: Final = sql(
    """
    SELECT r.id, r.name, r.parameters, r.created_at, r.updated_at FROM ai_agents r
    WHERE r.workspace_id = :workspace_id AND r.id = :id AND r.deleted_at IS NULL
    """
)


def find_agent(conn: Connection, workspace_id: str, agent_id: str) -> AgentRow | None:
    """Give an agent; None where there is none."""
    row = FIND_AGENT.run(conn, {"workspace_id": workspace_id, "id": agent_id}).first()
    return None if row is None else _agent(row)


LOCK_AGENT: Final = sql(
    """
    SELECT r.id, r.name, r.parameters, r.created_at, r.updated_at FROM ai_agents r
    WHERE r.workspace_id = :workspace_id AND r.id = :id AND r.deleted_at IS NULL {lock}
    """
)


def lock_agent(conn: Connection, workspace_id: str, agent_id: str) -> AgentRow | None:
    """Give an agent, locked until the transaction ends; None where there is none."""
    row = LOCK_AGENT.run(conn, {"workspace_id": workspace_id, "id": agent_id}).first()
    return None if row is None else _agent(row)


INSERT_AGENT: Final = sql(
    """
    INSERT INTO ai_agents (workspace_id, id, name, parameters, created_at, updated_at)
    SELECT workspace_id, id, name, parameters, :now, :now FROM {rows} WHERE true
    ON CONFLICT (workspace_id, id) DO NOTHING
    """,
    workspace_id="text",
    id="text",
    name="text",
    parameters="jsonb",
)


def insert_agent(conn: Connection, workspace_id: str, agent: AgentRow) -> bool:
    """Store a new agent; False where the id is taken, also by one that was deleted."""
    now = write_instant(agent.created_at)
    return INSERT_AGENT.run_set(conn, [_values(workspace_id, agent)], now=now).rowcount == 1


SAVE_AGENT: Final = sql(
    """
    UPDATE ai_agents SET name = x.name, parameters = x.parameters, updated_at = :now
    FROM {rows} WHERE ai_agents.workspace_id = x.workspace_id AND ai_agents.id = x.id
    """,
    workspace_id="text",
    id="text",
    name="text",
    parameters="jsonb",
)


def save_agent(conn: Connection, workspace_id: str, agent: AgentRow) -> None:
    """Write an agent over its row, which the caller holds locked."""
    SAVE_AGENT.run_set(conn, [_values(workspace_id, agent)], now=write_instant(agent.updated_at))


DELETE_AGENT: Final = sql(
    """
    UPDATE ai_agents SET deleted_at = :now, updated_at = :now
    WHERE workspace_id = :workspace_id AND id = :id
    """
)


def delete_agent(conn: Connection, workspace_id: str, agent_id: str, *, now: datetime) -> None:
    """Mark an agent as deleted, whose row the caller holds locked."""
    DELETE_AGENT.run(conn, {"workspace_id": workspace_id, "id": agent_id, "now": write_instant(now)})


def _values(workspace_id: str, agent: AgentRow) -> Mapping[str, Any]:
    return {
        "workspace_id": workspace_id,
        "id": agent.id,
        "name": agent.name,
        "parameters": agent.parameters,
    }


def _agent(row: Row[Any]) -> AgentRow:
    parameters = read_any_json(row.parameters)
    return AgentRow(row.id, row.name, parameters, must_instant(row.created_at), must_instant(row.updated_at))
