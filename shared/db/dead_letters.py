"""What a dead letter leaves behind beside its row: a log line, notices, an alert, audit, its end's event.

Called in the transaction that moved the runs, for those that moved and no others: so each is told of once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Self

from sqlalchemy import Connection

from shared.db.alerts import Alert, insert_alerts
from shared.db.endings import tell_of_ends
from shared.db.history import AuditEntry, RunLog, insert_audit, insert_logs
from shared.db.outbox import OutboxEntry
from shared.db.people import ADMIN_ROLES, Notice, insert_notices
from shared.db.sheet import put
from shared.db.sql import sql
from shared.model.executed import DrivenRun, EndedRun
from shared.model.moves import RunStatus
from shared.model.runs import LogLine, RunError
from shared.rules.troubles import trouble_of

RESOURCE: Final = "automation_run"


class DeadLetterKind(StrEnum):
    """How a run came to be a dead letter: its worker died under it, or its retries are used up."""

    CRASHED = "crashed"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A run that has just moved to DEAD_LETTER, why, and after how many attempts, the last one too."""

    run: EndedRun
    automation_name: str
    error: RunError
    attempts: int
    kind: DeadLetterKind

    @classmethod
    def of(
        cls, run: DrivenRun, automation_name: str, error: RunError, kind: DeadLetterKind, now: datetime
    ) -> Self:
        """Tell of a claimed run that becomes a dead letter at `now`."""
        ended = EndedRun.of(run, RunStatus.DEAD_LETTER, error, now)
        return cls(ended, automation_name, error, run.retry_count + 1, kind)


def record_dead_letters(
    conn: Connection, dead: Sequence[DeadLetter], *, now: datetime
) -> tuple[OutboxEntry, ...]:
    """Write all that follows from these dead letters; give the events to send after the commit.

    The counter `Keys.dead_letter` is the caller's, after the commit. A second call tells of everything again.
    """
    alerts = [_alert(letter) for letter in dead]
    _mark_runs(conn, alerts)
    insert_logs(conn, (_log(letter, now) for letter in dead))
    insert_notices(conn, (_notice(letter) for letter in dead), now=now)
    insert_alerts(conn, alerts, now=now)
    insert_audit(conn, (_audit(letter) for letter in dead), now=now)
    return tell_of_ends(conn, (letter.run for letter in dead), now=now)


MARK_RUNS: Final = sql(
    """
    UPDATE automation_runs SET fingerprint = x.fingerprint FROM {rows}
    WHERE automation_runs.id = x.id AND (automation_runs.status || '') = 'DEAD_LETTER'
    """,
    id="text",
    fingerprint="text",
)


def _mark_runs(conn: Connection, alerts: Sequence[Alert]) -> None:
    """Write on the runs which trouble they are cases of, so that they are found together."""
    rows = [{"id": alert.run_id, "fingerprint": alert.fingerprint} for alert in alerts]
    put(conn, MARK_RUNS, rows)


def _log(letter: DeadLetter, now: datetime) -> RunLog:
    data = {"code": letter.error.code, "message": letter.error.message, "attempts": letter.attempts}
    line = LogLine("error", "run dead-lettered", now, data)
    return RunLog(letter.run.workspace_id, letter.run.automation_id, letter.run.run_id, line)


def _title(letter: DeadLetter) -> str:
    happened = "failed (worker crash)" if letter.kind is DeadLetterKind.CRASHED else "dead-lettered"
    if letter.run.automation_id is None:
        return f"{letter.automation_name} {happened}"
    return f'Automation "{letter.automation_name}" {happened}'


def _notice(letter: DeadLetter) -> Notice:
    error = letter.error
    attempts = "1 attempt" if letter.attempts == 1 else f"{letter.attempts} attempts"
    return Notice(
        workspace_id=letter.run.workspace_id,
        roles=ADMIN_ROLES,
        title=_title(letter),
        body=f"Failed after {attempts}: {error.code} — {error.message}",
        resource_type=RESOURCE,
        resource_id=letter.run.run_id,
    )


def _alert(letter: DeadLetter) -> Alert:
    """Tell of it to those who are told outside the inbox: grouped, later, by `timers.alerting`."""
    run = letter.run
    owner = run.automation_id or letter.automation_name
    trouble = trouble_of(letter.error.code, letter.error.message, owner)
    return Alert(
        workspace_id=run.workspace_id,
        fingerprint=trouble.fingerprint,
        automation_id=run.automation_id,
        run_id=run.run_id,
        title=_title(letter),
        body=trouble.message,
        code=trouble.code,
        target=trouble.target,
    )


def _audit(letter: DeadLetter) -> AuditEntry:
    crashed = letter.kind is DeadLetterKind.CRASHED
    return AuditEntry(
        workspace_id=letter.run.workspace_id,
        actor=_actor(letter.run),
        action="automation.worker_crashed" if crashed else "automation.dead_lettered",
        resource_type=RESOURCE,
        resource_id=letter.run.run_id,
        detail={"code": letter.error.code, "message": letter.error.message, "attempts": letter.attempts},
    )


def _actor(run: EndedRun) -> str:
    return f"SYSTEM automation:{run.automation_id}" if run.automation_id else f"SYSTEM run:{run.run_id}"


NAMES: Final = sql("SELECT r.id, r.name FROM automations r JOIN {rows} ON r.id = x.id", id="text")


def automation_names(conn: Connection, ids: Iterable[str]) -> dict[str, str]:
    """Give the names of automations by id, deleted ones too."""
    rows = NAMES.run_set(conn, [{"id": found} for found in sorted(set(ids))])
    return {row.id: row.name for row in rows}
