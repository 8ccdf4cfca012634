"""What `knockon doctor` says about what waits in SQL, and about actions that nothing is set up for."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from knockon.findings import Finding, Level
from shared.db.automation_uses import automations_using
from shared.db.engine import Database
from shared.db.gauges import COUNTED, read_gauges
from shared.db.pending_moves import Overdue
from shared.settings import Settings
from shared.time.clock import SystemClock

LONG_WAIT: Final = timedelta(minutes=5)
LATE: Final = timedelta(minutes=2)
UNSENT_LONG: Final = timedelta(minutes=3)
NAMED: Final = 5


def examine_work(database: Database, settings: Settings) -> Iterator[Finding]:
    """Look at runs and events that should have gone on, and at actions that cannot be carried out."""
    now = SystemClock().now()
    with database.read() as conn:
        found = read_gauges(conn, now=now)
    yield _runs(found.pending, found.waiting_since, now)
    yield _due("delayed", found.delayed, now)
    yield _due("idle steps", found.idle, now)
    yield _outbox(found.unsent, found.unsent_since, now)
    yield _actions(database, settings)


def _runs(pending: int, since: datetime | None, now: datetime) -> Finding:
    if since is not None and now - since > LONG_WAIT:
        text = f"{_count(pending)} wait, the first that could start for {_minutes(now - since)} minutes"
        return Finding(Level.WARN, "runs", text, "see that a worker runs, or start one more")
    return Finding(Level.OK, "runs", f"{_count(pending)} wait, none that could start for long")


def _due(name: str, found: Overdue, now: datetime) -> Finding:
    if found.since is not None and now - found.since > LATE:
        late = f"{_count(found.due)} are due, the first for {_minutes(now - found.since)} minutes"
        return Finding(Level.WARN, name, late, "see that timers run: their sweep is behind")
    return Finding(Level.OK, name, f"{_count(found.waiting)} wait for their hour, none is overdue")


def _outbox(unsent: int, since: datetime | None, now: datetime) -> Finding:
    if since is not None and now - since > UNSENT_LONG:
        text = f"{_count(unsent)} emitted events are not sent, the first for {_minutes(now - since)} minutes"
        return Finding(Level.WARN, "outbox", text, "see that Redis takes writes and a watchdog runs")
    return Finding(Level.OK, "outbox", f"{_count(unsent)} emitted events wait for the stream")


def _actions(database: Database, settings: Settings) -> Finding:
    """Tell of ACTIVE automations whose mail or language model nobody has set up."""
    needed = (
        ("SEND_EMAIL", "SMTP_HOST", settings.smtp_host),
        ("ASK_AI", "AI_BASE_URL", settings.ai_base_url),
    )
    with database.read() as conn:
        lacking = [
            (action_type, name, using)
            for action_type, name, value in needed
            if value is None and (using := automations_using(conn, action_type, most=NAMED + 1))
        ]
    if not lacking:
        return Finding(Level.OK, "actions", "active automations use none that is not set up")
    text = "; ".join(f"{action_type} is used by {_named(using)}" for action_type, _, using in lacking)
    fix = f"set {', '.join(name for _, name, _ in lacking)}: their runs fail"
    return Finding(Level.WARN, "actions", text, fix)


def _named(automations: list[str]) -> str:
    shown = ", ".join(automations[:NAMED])
    return shown if len(automations) <= NAMED else f"{shown} and more"


def _count(number: int) -> str:
    return f"{number:,}" if number < COUNTED else f"{COUNTED:,} or more"


def _minutes(span: timedelta) -> str:
    return f"{span.total_seconds() / 60:,.0f}"
