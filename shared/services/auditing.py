"""How a person's deed is written down: who, what, to which thing, what it was before and what it is after."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import Connection

from shared.db.history import AuditEntry, insert_audit
from shared.model.audit_kinds import AuditKind
from shared.services.backends import Caller

_KIND_OF: Final = MappingProxyType({"run": AuditKind.AUTOMATION_RUN})


@dataclass(frozen=True, slots=True)
class Deed:
    """A change; `action` is `thing.done`. `before` is None for what was not there, `after` for what went.

    `more` stands beside them.
    """

    action: str
    resource_id: str
    before: Any
    after: Any
    more: Mapping[str, Any] = field(default_factory=dict)


def write_deed(conn: Connection, caller: Caller, deed: Deed, now: datetime) -> None:
    """Write a deed, in the transaction of the change. Raises ValueError for a kind that nobody could list."""
    write_deeds(conn, caller, [deed], now)


def write_deeds(conn: Connection, caller: Caller, deeds: Iterable[Deed], now: datetime) -> None:
    """Write deeds of one person as one set, otherwise as `write_deed` does."""
    insert_audit(conn, (_entry(caller, deed) for deed in deeds), now=now)


def write_deed_in(
    conn: Connection, workspace_ids: Iterable[str], caller: Caller, told: tuple[Deed, datetime]
) -> None:
    """Write a deed that changes something for several workspaces, as an entry of each of them."""
    deed, now = told
    entries = [_entry(replace(caller, workspace_id=each), deed) for each in workspace_ids]
    insert_audit(conn, entries, now=now)


def _entry(caller: Caller, deed: Deed) -> AuditEntry:
    thing = deed.action.partition(".")[0]
    kind = _KIND_OF.get(thing) or AuditKind(thing)
    detail = {"before": deed.before, "after": deed.after, **deed.more}
    return AuditEntry(caller.workspace_id, caller.actor, deed.action, kind, deed.resource_id, detail)
