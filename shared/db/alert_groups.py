"""Troubles: dead letters of one kind, counted, with what each channel was told of them.

One process at a time decides for a workspace; the others pass it over.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, read_json, write_instant
from shared.rules.alerting import Group, Told


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group as it is stored, with what shows its newest dead letter.

    `automations` counts the dead letters of each automation, of at most `shared.db.alerts.AUTOMATIONS_KEPT`.
    """

    group: Group
    fingerprint: str
    title: str
    body: str
    code: str
    target: str
    run_id: str
    told: int
    times: int
    first_at: datetime
    last_at: datetime
    automations: Mapping[str, int]


DUE_WORKSPACES: Final = sql(
    "SELECT DISTINCT r.workspace_id FROM alert_groups r WHERE r.due_at <= :now LIMIT :most"
)
LOCK_WORKSPACE: Final = sql("SELECT r.id FROM workspaces r WHERE r.id = :workspace_id {skip_locked}")
LOCK_DUE: Final = sql(
    """
    SELECT r.*, r.count AS letters FROM alert_groups r
    WHERE r.due_at <= :now AND r.workspace_id = :workspace_id
    ORDER BY r.due_at, r.id LIMIT :most {skip_locked}
    """
)


def due_workspaces(conn: Connection, *, now: datetime, most: int) -> list[str]:
    """Name workspaces that have groups to decide about."""
    return list(DUE_WORKSPACES.run(conn, {"now": write_instant(now), "most": most}).scalars())


def lock_due_groups(conn: Connection, workspace_id: str, *, now: datetime, most: int) -> list[GroupRow]:
    """Lock a workspace's groups that are to be decided about; none while another process decides for it."""
    if LOCK_WORKSPACE.run(conn, {"workspace_id": workspace_id}).scalar() is None:
        return []
    values = {"workspace_id": workspace_id, "now": write_instant(now), "most": most}
    return [_group(row) for row in LOCK_DUE.run(conn, values)]


LIST_GROUPS: Final = sql(
    """
    SELECT r.*, r.count AS letters FROM alert_groups r WHERE r.workspace_id = :workspace_id
    ORDER BY r.last_at DESC, r.id DESC LIMIT :most
    """
)
FIND_GROUP: Final = sql(
    "SELECT r.*, r.count AS letters FROM alert_groups r WHERE r.workspace_id = :workspace_id"
    " AND (r.fingerprint = :reference OR r.id = :reference) {lock}"
)


def list_groups(conn: Connection, workspace_id: str, *, most: int) -> list[GroupRow]:
    """Give a workspace's groups, that with the newest dead letter first."""
    return [_group(row) for row in LIST_GROUPS.run(conn, {"workspace_id": workspace_id, "most": most})]


def lock_group(conn: Connection, workspace_id: str, reference: str) -> GroupRow | None:
    """Lock and give the group with this fingerprint or id, or None."""
    row = FIND_GROUP.run(conn, {"workspace_id": workspace_id, "reference": reference}).first()
    return _group(row) if row else None


def _group(row: Row[Any]) -> GroupRow:
    told = {
        channel: Told(each["count"], must_instant(each["at"]))
        for channel, each in read_json(row.tellings).items()
    }
    return GroupRow(
        group=Group(
            row.id,
            row.automation_id,
            row.letters,
            read_instant(row.regressed_at),
            read_instant(row.muted_until),
            told,
        ),
        fingerprint=row.fingerprint,
        title=row.title,
        body=row.body,
        code=row.code,
        target=row.target,
        run_id=row.run_id,
        told=row.told,
        times=row.times,
        first_at=must_instant(row.first_at),
        last_at=must_instant(row.last_at),
        automations=read_json(row.automations),
    )


SAVE_GROUPS: Final = sql(
    """
    UPDATE alert_groups SET tellings = x.tellings, told = x.told, times = alert_groups.times + x.messages,
        told_at = CASE WHEN x.messages > 0 THEN :now ELSE alert_groups.told_at END, due_at = x.due_at
    FROM {rows} WHERE alert_groups.id = x.id
    """,
    id="text",
    tellings="jsonb",
    told="integer",
    messages="integer",
    due_at="timestamptz",
)


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided about a group: what each channel knows now, in how many messages, when to go on."""

    group_id: str
    told: Mapping[str, Told]
    messages: int
    due_at: datetime | None


def save_decisions(conn: Connection, decided: Iterable[Decided], *, now: datetime) -> None:
    """Write what was decided about locked groups."""
    rows = [
        {
            "id": each.group_id,
            "tellings": {
                channel: {"count": told.count, "at": write_instant(told.at)}
                for channel, told in each.told.items()
            },
            "told": max((told.count for told in each.told.values()), default=0),
            "messages": each.messages,
            "due_at": each.due_at and write_instant(each.due_at),
        }
        for each in decided
    ]
    SAVE_GROUPS.run_set(conn, rows, now=write_instant(now))


MUTE_GROUP: Final = sql(
    """
    UPDATE alert_groups SET muted_until = :until,
        due_at = CASE WHEN due_at IS NULL THEN due_at ELSE :now END
    WHERE id = :id
    """
)


def mute_group(conn: Connection, group_id: str, until: datetime, *, now: datetime) -> None:
    """Keep a group from being told of until then. What it counts meanwhile is told afterwards."""
    values = {"id": group_id, "until": write_instant(until), "now": write_instant(now)}
    MUTE_GROUP.run(conn, values)
