"""What SQL tells: runs that wait or are under way, rows that are due, what was not sent yet."""

from datetime import datetime

from shared.db.engine import Database
from shared.db.gauges import Gauges, read_gauges
from shared.metrics.samples import Reading, Sample


def read_sql(database: Database, now: datetime) -> Reading:
    """Read all of it. Raises what SQL raises while it is away, or slower than a look may take."""
    with database.read() as conn:
        return Reading(tuple(_samples(read_gauges(conn, now=now), now)))


def _samples(found: Gauges, now: datetime) -> list[Sample]:
    samples = [
        Sample("knockon_runs_running", found.running),
        Sample("knockon_runs_pending", found.pending),
        Sample("knockon_runs_pending_oldest_seconds", _age_s(found.waiting_since, now)),
        Sample("knockon_due_rows", found.schedules_due, ("schedules",)),
        Sample("knockon_due_rows", found.delayed.due, ("delayed",)),
        Sample("knockon_pending_executions", found.delayed.waiting),
        Sample("knockon_pending_executions_late_seconds", _age_s(found.delayed.since, now)),
        Sample("knockon_due_rows", found.idle.due, ("idle",)),
        Sample("knockon_idle_steps_waiting", found.idle.waiting),
        Sample("knockon_idle_steps_late_seconds", _age_s(found.idle.since, now)),
        Sample("knockon_outbox_unsent", found.unsent),
        Sample("knockon_outbox_oldest_seconds", _age_s(found.unsent_since, now)),
        Sample("knockon_alerts_waiting", found.alerts),
        Sample("knockon_alerts_oldest_seconds", _age_s(found.alerts_since, now)),
        Sample("knockon_processes", int(found.is_watched), ("watchdog",)),
    ]
    if found.skew is not None:
        samples.append(Sample("knockon_clock_skew_seconds", found.skew.total_seconds(), ("sql",)))
    return samples


def _age_s(since: datetime | None, now: datetime) -> float:
    return max((now - since).total_seconds(), 0.0) if since else 0.0
