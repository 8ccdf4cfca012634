"""Schedules follow their automations: in the transaction of each change, and by the reconciliation.

What an edit does to a slot that is due is told in docs/automations.md, "Schedules".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.automations import AutomationRow
from shared.db.history import RunLog, insert_logs
from shared.db.schedules import ScheduleRow, drop_schedules, lock_schedules, put_schedules
from shared.logs import get_logger
from shared.model.event_fields import format_instant
from shared.model.runs import LogLine
from shared.model.statuses import AutomationStatus
from shared.model.triggers import DEFAULT_ZONE, TriggerType
from shared.time.slots import DueSlots, Slots, due_slots, first_fire

SHOWN: Final = 20
UNREADABLE: Final = (ValueError, ArithmeticError)

log: Final = get_logger("schedules")


@dataclass(frozen=True, slots=True)
class Kept:
    """How many schedules were changed."""

    made: int = 0
    edited: int = 0
    dropped: int = 0

    def __add__(self, other: "Kept") -> "Kept":
        return Kept(self.made + other.made, self.edited + other.edited, self.dropped + other.dropped)

    def __bool__(self) -> bool:
        return self != Kept()


def keep_schedules(
    conn: Connection, automation_ids: Iterable[str], automations: Sequence[AutomationRow], now: datetime
) -> Kept:
    """Make the schedules of these ids what their automations say, which the caller holds locked.

    An id without an automation loses its schedule. A second call changes nothing.
    """
    ids = list(automation_ids)
    stored = lock_schedules(conn, ids)
    wanted = {row.automation_id: row for row in (_wanted(each, now) for each in automations) if row}
    dropped = [found for found in stored if found not in wanted]
    made = [_computed(row) for found, row in wanted.items() if found not in stored]
    edited = [_edited(conn, stored[found], row) for found, row in wanted.items() if found in stored]
    changed = [row for row in edited if row is not None]
    drop_schedules(conn, dropped)
    put_schedules(conn, [*made, *changed])
    return Kept(len(made), len(changed), len(dropped))


def keep_schedule(conn: Connection, automation: AutomationRow, now: datetime) -> None:
    """Make the schedule of one automation what it says; the caller holds the automation locked."""
    keep_schedules(conn, [automation.id], [automation], now)


def missed_log(row: ScheduleRow, missed: Slots, now: datetime) -> RunLog:
    """Write the line that tells of slots for which no run is made."""
    instants: dict[str, Any] = {
        "first": format_instant(missed.listed[0]),
        "last": format_instant(missed.last),
        "slots": [format_instant(slot) for slot in missed.listed[:SHOWN]],
    }
    data = {"count": len(missed.listed), "more": missed.has_more, **instants}
    return RunLog(row.workspace_id, row.automation_id, None, LogLine("warning", "schedule missed", now, data))


def due_slots_of(row: ScheduleRow, first: datetime, now: datetime) -> DueSlots:
    """Give what is due of a schedule whose slot `first` is due. Raises what UNREADABLE names.

    Of a cron or a zone that was edited since, only slots after the edit count.
    """
    return due_slots(row.cron, row.timezone, first, max(first, row.updated_at), now)


def _wanted(automation: AutomationRow, now: datetime) -> ScheduleRow | None:
    """Give the schedule that an automation asks for, its next slot left open; None: it asks for none."""
    trigger = automation.definition.get("trigger", {})
    is_on = automation.status is AutomationStatus.ACTIVE and automation.deleted_at is None
    if not is_on or trigger.get("type") != TriggerType.SCHEDULE:
        return None
    config = trigger.get("config", {})
    return ScheduleRow(
        automation_id=automation.id,
        workspace_id=automation.workspace_id,
        cron=config.get("cron", ""),  # none is unreadable like any other text
        timezone=config.get("timezone") or DEFAULT_ZONE,
        next_fire_at=None,
        last_slot=None,
        updated_at=now,
    )


def _computed(row: ScheduleRow) -> ScheduleRow:
    """Give a schedule its first slot after `updated_at`; one that cannot be read stays without."""
    try:
        return replace(row, next_fire_at=first_fire(row.cron, row.timezone, row.updated_at))
    except UNREADABLE as error:
        log.error("schedule_unreadable", automation_id=row.automation_id, reason=str(error))
        return row


def _edited(conn: Connection, stored: ScheduleRow, wanted: ScheduleRow) -> ScheduleRow | None:
    """Give what has to be written over a schedule, or None. A slot that is due still fires once."""
    is_same = (stored.cron, stored.timezone) == (wanted.cron, wanted.timezone)
    if stored.next_fire_at is None:
        computed = _computed(wanted)
        return None if is_same and computed.next_fire_at is None else computed
    if is_same:
        return None
    if stored.next_fire_at > wanted.updated_at:
        return _computed(wanted)
    return replace(wanted, next_fire_at=_newest_due(conn, stored, stored.next_fire_at, wanted.updated_at))


def _newest_due(conn: Connection, stored: ScheduleRow, first: datetime, now: datetime) -> datetime:
    """Give the slot of the old cron that still fires; the ones before it are logged as missed."""
    try:
        due = due_slots_of(stored, first, now)
    except UNREADABLE:
        return first
    if due.older is not None:
        insert_logs(conn, [missed_log(stored, due.older, now)])
    return due.newest
