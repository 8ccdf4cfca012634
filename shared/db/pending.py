"""Delayed executions as rows: read, locked, armed, moved and closed as sets (docs/delayed.md).

Each change is a compare-and-set on `version`, and says which rows it changed. Whoever arms or closes holds
the subject locked, so that nobody else decides on the same episode at the same time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sheet import put, put_ids
from shared.db.sql import sql
from shared.db.subjects import SubjectKey
from shared.db.types import must_instant, read_instant, read_json, write_instant
from shared.model.pending import SPENT, WAITING, Anchor, Episode, PendingRow, PendingSkip, PendingStatus

OpenKey = tuple[str, str, str]
EpisodeKey = tuple[str, str, str, str]
_ABOUT: Final = ("automation_id", "subject_type", "subject_id")

COLUMNS: Final = """
    r.id, r.workspace_id, r.automation_id, r.subject_type, r.subject_id, r.anchor, r.message_id, r.anchor_ms,
    r.anchor_seq, r.trigger_event, r.episode_key, r.started_at, r.due_at, r.status, r.skip_reason, r.run_id,
    r.version, r.armed_at, r.claimed_at, r.ended_at, r.created_at, r.updated_at
"""
_STANDS: Final = """
    r.id, r.workspace_id, r.automation_id, r.subject_type, r.subject_id, r.anchor, r.message_id, r.anchor_ms,
    r.anchor_seq, r.episode_key, r.started_at, r.due_at, r.status, r.skip_reason, r.version, r.ended_at
"""


@dataclass(frozen=True, slots=True)
class Stand:
    """What arming has to know of a row; its event, which may be large, is read where it is needed."""

    id: str
    workspace_id: str
    automation_id: str
    subject_type: str
    subject_id: str
    episode: Episode
    due_at: datetime
    status: PendingStatus
    skip_reason: PendingSkip | None
    version: int
    ended_at: datetime | None

    @property
    def is_waiting(self) -> bool:
        """Tell whether it may still fire."""
        return self.status in WAITING

    @property
    def is_spent(self) -> bool:
        """Tell whether its episode has had its run, or is to have none."""
        return self.status is PendingStatus.EXECUTED or self.skip_reason in SPENT


LOCK_OPEN: Final = sql(
    f"""
    SELECT {_STANDS} FROM pending_executions r
    JOIN {{rows}} ON r.automation_id = x.automation_id AND r.subject_type = x.subject_type
        AND r.subject_id = x.subject_id
    WHERE r.ended_at IS NULL ORDER BY r.id {{lock}}
    """,
    automation_id="text",
    subject_type="text",
    subject_id="text",
)


def lock_open(conn: Connection, keys: Iterable[OpenKey]) -> list[Stand]:
    """Lock the rows of automations and subjects whose episode goes on; give how they stand, by id."""
    return list(map(_stand, put(conn, LOCK_OPEN, _named(_ABOUT, keys))))


LOCK_ABOUT: Final = sql(
    f"""
    SELECT {_STANDS} FROM pending_executions r
    JOIN {{rows}} ON r.workspace_id = x.workspace_id AND r.subject_type = x.subject_type
        AND r.subject_id = x.subject_id
    WHERE r.ended_at IS NULL ORDER BY r.id {{lock}}
    """,
    workspace_id="text",
    subject_type="text",
    subject_id="text",
)


def lock_about(conn: Connection, subjects: Iterable[SubjectKey]) -> list[Stand]:
    """Lock all rows about these subjects whose episode goes on; give how they stand, by id."""
    names = ("workspace_id", "subject_type", "subject_id")
    return list(map(_stand, put(conn, LOCK_ABOUT, _named(names, subjects))))


LOCK_EPISODES: Final = sql(
    f"""
    SELECT {_STANDS} FROM pending_executions r
    JOIN {{rows}} ON r.automation_id = x.automation_id AND r.subject_type = x.subject_type
        AND r.subject_id = x.subject_id AND r.episode_key = x.episode_key
    ORDER BY r.id {{lock}}
    """,
    automation_id="text",
    subject_type="text",
    subject_id="text",
    episode_key="text",
)


def lock_episodes(conn: Connection, keys: Iterable[EpisodeKey]) -> dict[EpisodeKey, Stand]:
    """Lock the rows that these episodes have already, going on or over; an episode has one at most."""
    found = map(_stand, put(conn, LOCK_EPISODES, _named((*_ABOUT, "episode_key"), keys)))
    return {
        (each.automation_id, each.subject_type, each.subject_id, each.episode.key): each for each in found
    }


LOCK_LAPSED: Final = sql(
    f"""
    WITH k AS MATERIALIZED (SELECT (SELECT p.id FROM pending_executions p
        WHERE p.automation_id = x.automation_id AND p.subject_type = x.subject_type
            AND p.subject_id = x.subject_id AND p.anchor = 'awaiting_agent' AND p.ended_at IS NOT NULL
        ORDER BY p.anchor_ms DESC, p.anchor_seq DESC, p.id DESC LIMIT 1) AS id FROM {{rows}})
    SELECT {_STANDS} FROM pending_executions r JOIN k ON r.id = k.id ORDER BY r.id {{lock}}
    """,
    automation_id="text",
    subject_type="text",
    subject_id="text",
)


def lock_lapsed(conn: Connection, keys: Iterable[OpenKey]) -> dict[OpenKey, Stand]:
    """Lock the newest row that waited for an agent of each automation and subject, and waits no longer."""
    found = map(_stand, put(conn, LOCK_LAPSED, _named(_ABOUT, keys)))
    return {(each.automation_id, each.subject_type, each.subject_id): each for each in found}


FIND_EVENTS: Final = sql(
    "SELECT r.id, r.trigger_event FROM pending_executions r JOIN {rows} ON r.id = x.id", id="text"
)


def find_trigger_events(conn: Connection, ids: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """Give the events that armed these rows, whole, by the id of the row."""
    rows = put(conn, FIND_EVENTS, ({"id": each} for each in sorted(set(ids))))
    return {row.id: read_json(row.trigger_event) for row in rows}


INSERT_PENDING: Final = sql(
    """
    INSERT INTO pending_executions (id, workspace_id, automation_id, subject_type, subject_id, anchor,
        message_id, anchor_ms, anchor_seq, trigger_event, episode_key, started_at, due_at, status, version,
        armed_at, created_at, updated_at)
    SELECT id, workspace_id, automation_id, subject_type, subject_id, anchor, message_id, anchor_ms,
        anchor_seq, trigger_event, episode_key, started_at, due_at, 'pending', 1, armed_at, created_at,
        created_at
    FROM {rows} WHERE true ORDER BY automation_id, subject_type, subject_id, episode_key
    ON CONFLICT DO NOTHING RETURNING id
    """,
    id="text",
    workspace_id="text",
    automation_id="text",
    subject_type="text",
    subject_id="text",
    anchor="text",
    message_id="text",
    anchor_ms="bigint",
    anchor_seq="bigint",
    trigger_event="jsonb",
    episode_key="text",
    started_at="timestamptz",
    due_at="timestamptz",
    armed_at="timestamptz",
    created_at="timestamptz",
)


def insert_pending(conn: Connection, rows: Iterable[PendingRow]) -> frozenset[str]:
    """Insert rows as PENDING; give the ids of the new ones. An episode that has a row gets no second one."""
    return put_ids(conn, INSERT_PENDING, map(_inserted, rows))


@dataclass(frozen=True, slots=True)
class Ending:
    """An episode that is over: `reason` is why a row that still waits for it will not run."""

    id: str
    version: int
    reason: PendingSkip


CLOSE: Final = sql(
    """
    WITH k AS (SELECT r.id, x.reason FROM pending_executions r
        JOIN {rows} ON r.id = x.id AND r.version = x.version WHERE r.ended_at IS NULL ORDER BY r.id {lock})
    UPDATE pending_executions SET
        skip_reason = CASE WHEN status IN ('pending', 'processing') THEN k.reason ELSE skip_reason END,
        status = CASE WHEN status IN ('pending', 'processing') THEN 'skipped' ELSE status END,
        claimed_at = NULL, ended_at = :now, version = version + 1, updated_at = :now
    FROM k WHERE pending_executions.id = k.id RETURNING pending_executions.id AS id
    """,
    id="text",
    version="integer",
    reason="text",
)


def close_pending(conn: Connection, endings: Iterable[Ending], *, now: datetime) -> frozenset[str]:
    """End episodes: rows that wait become skipped, others only learn that it is over. Give the ids."""
    wanted = ({"id": each.id, "version": each.version, "reason": each.reason} for each in endings)
    return put_ids(conn, CLOSE, wanted, now=write_instant(now))


def pending_row(row: Row[Any]) -> PendingRow:
    """Read a row of `COLUMNS`."""
    return PendingRow(
        id=row.id,
        workspace_id=row.workspace_id,
        automation_id=row.automation_id,
        subject_type=row.subject_type,
        subject_id=row.subject_id,
        episode=_episode(row),
        trigger_event=read_json(row.trigger_event),
        due_at=must_instant(row.due_at),
        status=PendingStatus(row.status),
        skip_reason=_reason(row),
        run_id=row.run_id,
        version=row.version,
        armed_at=must_instant(row.armed_at),
        claimed_at=read_instant(row.claimed_at),
        ended_at=read_instant(row.ended_at),
        created_at=must_instant(row.created_at),
        updated_at=must_instant(row.updated_at),
    )


def episode_columns(episode: Episode) -> dict[str, Any]:
    """Give an episode as it stands in a row."""
    return {
        "anchor": episode.anchor,
        "message_id": episode.message_id,
        "anchor_ms": episode.anchor_stamp[0],
        "anchor_seq": episode.anchor_stamp[1],
        "episode_key": episode.key,
        "started_at": write_instant(episode.started_at),
    }


def _named(names: Sequence[str], keys: Iterable[tuple[str, ...]]) -> Iterable[dict[str, str]]:
    """Give keys as rows with these names, each once and in order."""
    return (dict(zip(names, key, strict=True)) for key in sorted(set(keys)))


def _stand(row: Row[Any]) -> Stand:
    return Stand(
        id=row.id,
        workspace_id=row.workspace_id,
        automation_id=row.automation_id,
        subject_type=row.subject_type,
        subject_id=row.subject_id,
        episode=_episode(row),
        due_at=must_instant(row.due_at),
        status=PendingStatus(row.status),
        skip_reason=_reason(row),
        version=row.version,
        ended_at=read_instant(row.ended_at),
    )


def _inserted(row: PendingRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "workspace_id": row.workspace_id,
        "automation_id": row.automation_id,
        "subject_type": row.subject_type,
        "subject_id": row.subject_id,
        **episode_columns(row.episode),
        "trigger_event": row.trigger_event,
        "due_at": write_instant(row.due_at),
        "armed_at": write_instant(row.armed_at),
        "created_at": write_instant(row.created_at),
    }


def _episode(row: Row[Any]) -> Episode:
    return Episode(
        Anchor(row.anchor),
        row.episode_key,
        must_instant(row.started_at),
        (row.anchor_ms, row.anchor_seq),
        row.message_id,
    )


def _reason(row: Row[Any]) -> PendingSkip | None:
    return None if row.skip_reason is None else PendingSkip(row.skip_reason)
