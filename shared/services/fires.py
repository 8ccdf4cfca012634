"""When an automation with the trigger SCHEDULE fires next, for people. What fires asks the same function."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.automations import AutomationRow
from shared.db.schedules import ScheduleRow, find_schedules
from shared.errors import Conflict
from shared.model.triggers import DEFAULT_ZONE, TriggerType
from shared.time.cron import next_fires
from shared.time.cron_remarks import remark_on
from shared.time.wallclock import zone_info

DUE: Final = "due, and not fired yet"


@dataclass(frozen=True, slots=True)
class Fire:
    """One fire: the instant, what the clocks of the zone show then, and what is special about it."""

    at: datetime
    local: datetime
    remark: str | None


@dataclass(frozen=True, slots=True)
class Fires:
    """A schedule and its next fires. `last_slot`: the newest that a run was made for since it is active."""

    cron: str
    timezone: str
    last_slot: datetime | None
    fires: tuple[Fire, ...]

    def shown(self) -> dict[str, Any]:
        """Give it in JSON types, but for the instants, which are UTC."""
        return {
            "cron": self.cron,
            "timezone": self.timezone,
            "last_slot": self.last_slot,
            "fires": [
                {"at": fire.at, "local": fire.local.isoformat(), "remark": fire.remark} for fire in self.fires
            ],
        }


def schedule_of(conn: Connection, automation: AutomationRow) -> ScheduleRow | None:
    """Give an automation's schedule; None unless it is ACTIVE and started by the clock."""
    return find_schedules(conn, [automation.id]).get(automation.id)


def preview_fires(conn: Connection, automation: AutomationRow, now: datetime, count: int) -> Fires:
    """Give the next `count` fires of an automation, whatever its status: as if it were ACTIVE.

    Raises Conflict for one that the clock does not start, or whose cron or zone cannot be read any more.
    """
    trigger = automation.definition["trigger"]
    if trigger["type"] != TriggerType.SCHEDULE:
        raise Conflict(f"{automation.key} is started by {trigger['type']}, not by the clock")
    cron, zone = trigger["config"]["cron"], trigger["config"].get("timezone") or DEFAULT_ZONE
    stored = schedule_of(conn, automation)
    due = stored.next_fire_at if stored else None
    try:
        fires = [_fire(cron, zone, at) for at in next_fires(cron, zone, now, count)]
        if due is not None and due <= now:
            fires = [Fire(due, due.astimezone(zone_info(zone)), DUE), *fires]
    except ValueError as error:
        raise Conflict(f"{automation.key} cannot fire: {error}") from error
    return Fires(cron, zone, stored.last_slot if stored else None, tuple(fires[:count]))


def _fire(cron: str, zone: str, at: datetime) -> Fire:
    return Fire(at, at.astimezone(zone_info(zone)), remark_on(cron, zone, at))
