"""Many runs that have ended badly, or wait, for tests of what is done to all of them at once."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import text

from shared.db.bulk import BulkOperation
from shared.db.runs_new import insert_runs
from shared.ids import new_id
from shared.model.bulk import BulkWish
from shared.model.runs import QueueKind
from shared.rules.troubles import trouble_of
from shared.services.automations import apply_changes
from shared.services.backends import Backends
from shared.services.bulk import confirm, preview, show_bulk
from shared.services.definitions import Leftovers
from tests.people import CALLER, NOW, definition
from tests.watchdog_stage import new_run_of
from timers.bulk import BulkWork

GONE = "the host does not answer"


@dataclass(frozen=True)
class Ended:
    """How runs of a test have ended; those that are PENDING have not."""

    status: str = "DEAD_LETTER"
    code: str = "WEBHOOK_HTTP_RETRIABLE"
    message: str = GONE
    at: datetime = NOW


def make_automation(backends: Backends, key: str = "welcome") -> str:
    """Apply an ACTIVE automation, and give its id."""
    apply_changes(backends, CALLER, [definition(key)], Leftovers.KEEP)
    with backends.database.read() as conn:
        found = conn.execute(text("SELECT id FROM automations WHERE key = :key"), {"key": key})
        return str(found.scalar_one())


def add_ended(
    backends: Backends, automation_id: str, number: int, how: Ended | None = None, workspace: str = "w1"
) -> list[str]:
    """Write runs of an automation that have ended alike, with a checkpoint each; give their ids in order."""
    ended = how or Ended()
    pattern = new_run_of(automation_id, 0, QueueKind.MAIN, ended.at)
    ids = sorted(new_id() for _ in range(number))
    rows = [replace(pattern, id=one, source_id=one, root_run_id=one, workspace_id=workspace) for one in ids]
    with backends.database.begin() as conn:
        insert_runs(conn, rows)
        if ended.status != "PENDING":
            set_ended(conn, ids, _columns(ended, automation_id))
    return ids


def set_ended(conn: Any, ids: Sequence[str], columns: Mapping[str, object]) -> None:
    """Write the columns of an end to runs, as a set."""
    named = ", ".join(f"{name} = :{name}" for name in columns)
    few = "SELECT value FROM json_each(:ids)"
    if conn.dialect.name == "postgresql":
        few = "SELECT jsonb_array_elements_text(CAST(:ids AS jsonb))"
    values = {**columns, "ids": json.dumps(list(ids))}
    conn.execute(text(f"UPDATE automation_runs SET {named} WHERE id IN ({few})"), values)


def _columns(ended: Ended, automation_id: str) -> dict[str, object]:
    trouble = trouble_of(ended.code, ended.message, automation_id)
    return {
        "status": ended.status,
        "lease": 9,
        "retry_count": 8,
        "failures": 9,
        "error": json.dumps({"code": ended.code, "message": ended.message, "position": 1}),
        "ended_at": ended.at.isoformat(),
        "fingerprint": trouble.fingerprint if ended.status == "DEAD_LETTER" else None,
    }


def wish(kind: str = "replay", *, from_start: Any = False, **wanted: Any) -> BulkWish:
    """Wish for something to be done to the runs of a filter."""
    return BulkWish.model_validate({"kind": kind, "filter": wanted, "from_start": from_start})


def begin(backends: Backends, wanted: BulkWish | None = None) -> str:
    """Make an operation and confirm it; give its id."""
    return confirm(backends, CALLER, preview(backends, CALLER, wanted or wish()).id).id


def shown(backends: Backends, operation_id: str) -> BulkOperation:
    """Look how an operation stands."""
    with backends.database.read() as conn:
        return show_bulk(conn, CALLER.workspace_id, operation_id)


def do_batch(backends: Backends, operation_id: str) -> bool:
    """Do the next batch of an operation, as a process would that sees it as it stands."""
    return BulkWork(backends).move_on(shown(backends, operation_id))


def do_all(backends: Backends) -> None:
    """Do what is confirmed, in one pass: a clock that stands still has no end of the turn."""
    BulkWork(backends).pass_once()


def count_runs(backends: Backends, **columns: str) -> int:
    """Count the runs with these values."""
    where = " AND ".join(f"{name} = :{name}" for name in columns)
    with backends.database.read() as conn:
        counted = conn.execute(text(f"SELECT count(*) FROM automation_runs WHERE {where}"), columns)
        return int(counted.scalar_one())


def fingerprint_of(backends: Backends, run_id: str) -> str | None:
    """Read which trouble a run is a case of."""
    with backends.database.read() as conn:
        found = conn.execute(text("SELECT fingerprint FROM automation_runs WHERE id = :id"), {"id": run_id})
        mark: str | None = found.scalar_one()
        return mark


@contextmanager
def working(backends: Backends) -> Iterator[None]:
    """Have a thread do what is confirmed, until the block ends."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.02):
            do_all(backends)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join(30)
    assert not thread.is_alive()
