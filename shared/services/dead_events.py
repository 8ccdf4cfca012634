"""Dead events that a person puts back on the stream: Redis moves them, and what it moved is audited."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sqlalchemy import Connection

from shared.db.people import workspace_name
from shared.dead_stream import DeadEntry, find_dead, requeue
from shared.model.json_limits import clean_tree
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Backends, Caller

AT_ONCE: Final = 500


def put_back_events(backends: Backends, actor: str, ids: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Publish dead events anew: give each id, and why it stays, if it does.

    Each that was moved is audited in its workspace, if there is one of that name. Raises what Redis and SQL
    raise while they are away; what was told before that is done.
    """
    waiting = list(ids)
    for first in range(0, len(waiting), AT_ONCE):
        yield from _put_back(backends, actor, waiting[first : first + AT_ONCE])


def _put_back(backends: Backends, actor: str, ids: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    found = find_dead(backends.redis, backends.keys, ids)
    moved: list[str] = []
    try:
        for dead_id, reason in requeue(backends.redis, backends.keys, ids):
            moved += [dead_id] if reason is None else []
            yield dead_id, reason
    finally:
        _audit(backends, actor, [found[dead_id] for dead_id in moved if dead_id in found])


def _audit(backends: Backends, actor: str, moved: list[DeadEntry]) -> None:
    now = backends.clock.now()

    def work(conn: Connection) -> None:
        named = {_workspace(entry) for entry in moved}
        there = {name for name in named if name and workspace_name(conn, name) is not None}
        for entry in moved:
            caller = Caller(_workspace(entry), actor)
            if caller.workspace_id in there:
                before = clean_tree({"reason": entry.reason, "entry": entry.entry_id})
                after = {"stream": backends.keys.stream}
                write_deed(conn, caller, Deed("event.requeued", entry.id, before, after), now)

    if moved:
        backends.database.transact(work)


def _workspace(entry: DeadEntry) -> str:
    """Give the workspace that an entry names; nothing for what no workspace is called."""
    name = entry.fields.get("workspaceId", "")
    return name if name.isprintable() else ""
