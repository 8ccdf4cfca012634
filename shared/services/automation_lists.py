"""A workspace's automations in pages, by key. What is asked beside the key is looked at row by row.

A page looks at `LOOKED_AT` automations at most, so it may hold less than was asked for and still have a next
one (docs/api.md, "Pages").
"""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from shared.db.automations import AutomationRow, automations_after
from shared.model.statuses import AutomationStatus
from shared.model.triggers import TriggerType
from shared.services.references import check_workspace

LOOKED_AT: Final = 1_000


@dataclass(frozen=True, slots=True)
class AutomationQuery:
    """Which automations; `text` stands in the key or the name, in capitals or not."""

    status: AutomationStatus | None = None
    trigger_type: TriggerType | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class AutomationPage:
    """Some automations, and the key after which to go on; None when there are no more."""

    rows: list[AutomationRow]
    after: str | None


def page_of_automations(
    conn: Connection, workspace_id: str, query: AutomationQuery, after: str, *, most: int
) -> AutomationPage:
    """Give the next automations that the query fits. Raises NotFound without the workspace."""
    check_workspace(conn, workspace_id)
    looked = most + 1 if query == AutomationQuery() else LOOKED_AT
    seen = automations_after(conn, workspace_id, after, most=looked)
    found = [row for row in seen if _fits(row, query)]
    if len(found) > most:
        return AutomationPage(found[:most], found[most - 1].key)
    return AutomationPage(found, seen[-1].key if len(seen) == looked else None)


def _fits(row: AutomationRow, query: AutomationQuery) -> bool:
    if query.status is not None and row.status is not query.status:
        return False
    if query.trigger_type is not None and row.definition["trigger"]["type"] != query.trigger_type:
        return False
    wanted = query.text.casefold()
    return wanted in row.key.casefold() or wanted in row.name.casefold()
