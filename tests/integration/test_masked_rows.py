"""What is masked in rows: the data of the run log, and the audit trail of definitions."""

from typing import Any

from shared.db.history import AuditEntry, RunLog, insert_audit, insert_logs
from shared.model.runs import LogLine
from shared.services.automations import apply_changes
from shared.services.backends import Backends
from shared.services.definitions import Leftovers
from tests.people import CALLER, NOW, definition
from tests.rooms import Room, tree

SECRET = "PW-7Q"
LEAF: dict[str, Any] = {
    "op": "eq",
    "wanted": SECRET,
    "found": SECRET,
    "reason": "user.password does not meet eq",
}
DATA = {
    "failed": [{"path": "all[0]", "field": "user.password", **LEAF}],
    "url": f"http://u:{SECRET}@h.test/x?token={SECRET}&a=1",
    "message": f"https://u:{SECRET}/x?y@h.test was asked",
    "apiKey": SECRET,
}


def test_no_line_of_the_run_log_is_written_with_a_secret(room: Room) -> None:
    with room.database.begin() as conn:
        insert_logs(conn, [RunLog("w1", "a1", "r1", LogLine("info", "run skipped: conditions", NOW, DATA))])
    data = tree(room.one("SELECT data FROM automation_logs").data)
    assert SECRET not in str(data)
    assert data["url"] == "http://***@h.test/x?token=***&a=1"
    assert data["failed"][0]["reason"] == LEAF["reason"]


def test_no_audit_entry_is_written_with_a_secret(room: Room) -> None:
    detail = {
        "after": {"actions": [{"config": {"url": f"https://h.test/?q={SECRET}", "headers": {"X": SECRET}}}]}
    }
    with room.database.begin() as conn:
        insert_audit(
            conn, [AuditEntry("w1", "USER a", "automation.created", "automation", "a1", detail)], now=NOW
        )
    assert SECRET not in room.one("SELECT detail FROM audit").detail


def test_a_definition_is_shown_in_no_diff_with_a_secret(backends: Backends) -> None:
    config = {"url": f"https://h.test/?q={SECRET}", "headers": {"X-Plain": SECRET}}
    hook = {"type": "SEND_WEBHOOK", "config": config}
    first = apply_changes(backends, CALLER, [definition(actions=[hook])], Leftovers.KEEP)
    config["headers"] = {"X-Plain": f"{SECRET}2"}
    second = apply_changes(backends, CALLER, [definition(name="B", actions=[hook])], Leftovers.KEEP)
    assert SECRET not in str([change.shown() for change in (*first, *second)])
    assert SECRET not in str(second[0].diff())
