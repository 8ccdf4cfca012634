"""Dead letters on their way to people: a row for each, folded into a row for each trouble.

Several processes may fold at once: rows that one of them has locked are passed over by the others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, read_json, write_instant
from shared.ids import new_id
from shared.rules.alerting import QUIET

AUTOMATIONS_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Alert:
    """One dead letter as people are told of it; all texts may be shown."""

    workspace_id: str
    fingerprint: str
    automation_id: str | None
    run_id: str
    title: str
    body: str
    code: str
    target: str


INSERT_ALERTS: Final = sql(
    """
    INSERT INTO alerts (id, workspace_id, fingerprint, automation_id, run_id, title, body, code, target,
        created_at)
    SELECT id, workspace_id, fingerprint, automation_id, run_id, title, body, code, target, :now FROM {rows}
    """,
    id="text",
    workspace_id="text",
    fingerprint="text",
    automation_id="text",
    run_id="text",
    title="text",
    body="text",
    code="text",
    target="text",
)


def insert_alerts(conn: Connection, alerts: Iterable[Alert], *, now: datetime) -> None:
    """Write alerts, in the transaction of the dead letters that they tell of."""
    rows = [
        {
            "id": new_id(),
            "workspace_id": alert.workspace_id,
            "fingerprint": alert.fingerprint,
            "automation_id": alert.automation_id,
            "run_id": alert.run_id,
            "title": alert.title,
            "body": alert.body,
            "code": alert.code,
            "target": alert.target,
        }
        for alert in alerts
    ]
    if rows:
        INSERT_ALERTS.run_set(conn, rows, now=write_instant(now))


TAKE_ALERTS: Final = sql("SELECT r.* FROM alerts r ORDER BY r.id LIMIT :most {skip_locked}")
DROP_ALERTS: Final = sql("DELETE FROM alerts WHERE id IN (SELECT x.id FROM {rows})", id="text")
LOCK_LAST: Final = sql(
    """
    SELECT r.workspace_id, r.fingerprint, r.last_at, r.automations FROM alert_groups r
    JOIN {rows} ON r.workspace_id = x.workspace_id AND r.fingerprint = x.fingerprint
    ORDER BY r.workspace_id, r.fingerprint {lock}
    """,
    workspace_id="text",
    fingerprint="text",
)
FOLD: Final = sql(
    """
    INSERT INTO alert_groups (id, workspace_id, fingerprint, automation_id, title, body, code, target, run_id,
        count, told, times, first_at, last_at, due_at, regressed_at, automations, tellings)
    SELECT id, workspace_id, fingerprint, automation_id, title, body, code, target, run_id,
        count, 0, 0, first_at, last_at, :now, regressed_at, automations, '{}' FROM {rows} WHERE true
    ON CONFLICT (workspace_id, fingerprint) DO UPDATE SET
        automation_id = excluded.automation_id, title = excluded.title, body = excluded.body,
        code = excluded.code, target = excluded.target, run_id = excluded.run_id,
        count = alert_groups.count + excluded.count,
        last_at = CASE WHEN excluded.last_at > alert_groups.last_at
            THEN excluded.last_at ELSE alert_groups.last_at END,
        due_at = COALESCE(alert_groups.due_at, excluded.due_at),
        regressed_at = COALESCE(excluded.regressed_at, alert_groups.regressed_at),
        automations = {json_merge}(alert_groups.automations, excluded.automations)
    """,
    id="text",
    workspace_id="text",
    fingerprint="text",
    automation_id="text",
    title="text",
    body="text",
    code="text",
    target="text",
    run_id="text",
    count="integer",
    first_at="timestamptz",
    last_at="timestamptz",
    regressed_at="timestamptz",
    automations="jsonb",
)

GroupKey = tuple[str, str]


def fold_alerts(conn: Connection, *, now: datetime, most: int) -> int:
    """Add at most `most` alerts to their groups and forget them; give how many they were.

    A group that was quiet for a day before them has regressed.
    """
    alerts = TAKE_ALERTS.run(conn, {"most": most}).all()
    if not alerts:
        return 0
    found: dict[GroupKey, list[Row[Any]]] = {}
    for alert in alerts:
        found.setdefault((alert.workspace_id, alert.fingerprint), []).append(alert)
    keys = [{"workspace_id": workspace, "fingerprint": text} for workspace, text in sorted(found)]
    last = {(row.workspace_id, row.fingerprint): row for row in LOCK_LAST.run_set(conn, keys)}
    rows = [_folded(found[key], last.get(key)) for key in sorted(found)]
    FOLD.run_set(conn, rows, now=write_instant(now))
    DROP_ALERTS.run_set(conn, [{"id": alert.id} for alert in alerts])
    return len(alerts)


def _folded(alerts: Sequence[Row[Any]], last: Row[Any] | None) -> Mapping[str, object]:
    times = [must_instant(alert.created_at) for alert in alerts]
    newest = alerts[-1]
    was_quiet = last is not None and min(times) - must_instant(last.last_at) >= QUIET
    regressed_at = min(times) if was_quiet else None
    return {
        "id": new_id(),
        "workspace_id": newest.workspace_id,
        "fingerprint": newest.fingerprint,
        "automation_id": newest.automation_id,
        "title": newest.title,
        "body": newest.body,
        "code": newest.code,
        "target": newest.target,
        "run_id": newest.run_id,
        "count": len(alerts),
        "first_at": write_instant(min(times)),
        "last_at": write_instant(max(times)),
        "regressed_at": regressed_at and write_instant(regressed_at),
        "automations": _counted(alerts, read_json(last.automations) if last is not None else {}),
    }


def _counted(alerts: Iterable[Row[Any]], before: Mapping[str, int]) -> Mapping[str, int]:
    """Count the dead letters of each automation; of those that come when the room is used up, none."""
    counts = Counter(alert.automation_id for alert in alerts if alert.automation_id is not None)
    news = [automation_id for automation_id in counts if automation_id not in before]
    kept = [*before, *news[: max(0, AUTOMATIONS_KEPT - len(before))]]
    return {automation_id: before.get(automation_id, 0) + counts[automation_id] for automation_id in kept}


WAITING: Final = sql(
    """
    SELECT (SELECT created_at FROM alerts ORDER BY id LIMIT 1) AS unfolded,
        (SELECT min(due_at) FROM alert_groups WHERE due_at IS NOT NULL) AS undecided,
        (SELECT min(due_at) FROM alert_sends WHERE due_at IS NOT NULL) AS unsent
    """
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Since when the oldest of each kind waits; those that are to be done later have a later instant."""

    unfolded: datetime | None
    undecided: datetime | None
    unsent: datetime | None


def waiting(conn: Connection) -> Waiting:
    """Look for anything to do."""
    row = WAITING.run(conn).one()
    return Waiting(read_instant(row.unfolded), read_instant(row.undecided), read_instant(row.unsent))
