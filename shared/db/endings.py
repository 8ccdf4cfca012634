"""The event `automation.executed` of runs that have just ended, written with the move that it tells of."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection

from shared.db.outbox import OutboxEntry, insert_outbox
from shared.ids import new_id
from shared.model.executed import EndedRun, executed_event


def tell_of_ends(conn: Connection, ended: Iterable[EndedRun], *, now: datetime) -> tuple[OutboxEntry, ...]:
    """Put the events of these ends into the outbox; give them, to be sent after the commit.

    Runs of depth 1 or more have none. A second call tells of everything again.
    """
    entries = end_events(ended, now)
    insert_outbox(conn, entries, now=now)
    return entries


def end_events(ended: Iterable[EndedRun], now: datetime) -> tuple[OutboxEntry, ...]:
    """Give the events of these ends, for an outbox that is written with more."""
    return tuple(entry for run in ended if (entry := _entry(run, now)) is not None)


def _entry(run: EndedRun, now: datetime) -> OutboxEntry | None:
    event_id = new_id()
    fields = executed_event(run, event_id=event_id, now=now)
    return None if fields is None else OutboxEntry(event_id, run.workspace_id, run.run_id, fields)
