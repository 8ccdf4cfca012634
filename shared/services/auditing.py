"""How a person's deed is written down: who, what, to which thing, what it was before and what it is after."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from shared.db.history import AuditEntry, insert_audit
from shared.model.audit_kinds import AuditKind
from shared.services.backends import Caller


@dataclass(frozen=True, slots=True)
class Deed:
    """A change; `action` is `thing.done`. `before` is None for what was not there, `after` for what went."""

    action: str
    resource_id: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


def write_deed(conn: Connection, caller: Caller, deed: Deed, now: datetime) -> None:
    """Write a deed, in the transaction of the change. Raises ValueError for a kind that nobody could list."""
    kind = AuditKind(deed.action.partition(".")[0])
    detail = {"before": deed.before, "after": deed.after}
    entry = AuditEntry(caller.workspace_id, caller.actor, deed.action, kind, deed.resource_id, detail)
    insert_audit(conn, [entry], now=now)
