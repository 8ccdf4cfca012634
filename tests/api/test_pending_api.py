"""What waits before it acts, over HTTP: listed, one of them, cancelled once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from shared.db.automations import find_by_reference
from shared.db.runs_new import insert_runs
from shared.db.tables_talk import MESSAGES
from shared.model.runs import RunSource
from shared.services.automations import create
from shared.services.workspaces import Scope
from tests.any_rows import add_row
from tests.calling import Api
from tests.pending_rows import add_pending
from tests.people import CALLER, definition
from tests.rooms import new_run

PATH = "/v1/pending-executions"


@pytest.fixture
def waiting(api: Api) -> str:
    """Have an automation that runs after two days and four hours, and four rows; give its id."""
    row = create(api.backends, CALLER, definition("chase", execution_delay=3_120))
    with api.backends.database.begin() as conn:
        for number in range(3):
            add_pending(conn, f"p{number}", row.id)
        add_pending(conn, "done", row.id, status="skipped", skip_reason="conditions_changed")
    return row.id


def items(api: Api, key: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api("GET", f"{PATH}{query}", key=key).json()["items"]
    return found


def test_what_waits_is_listed_with_when_for_whom_and_the_rules_words(api: Api, waiting: str) -> None:
    key = api.key(Scope.RUNS_READ)
    assert [each["id"] for each in items(api, key)] == ["p2", "p1", "p0", "done"]
    first, *_ = items(api, key, "?status=pending")
    assert first["id"] == "p0"
    assert (first["automation_key"], first["runs_after"]) == ("chase", "runs after 2d 4h")
    assert (first["subject_type"], first["subject_id"]) == ("conversation", "p0")
    assert (first["due_at"], first["started_at"]) == ("2026-03-02T12:00:00Z", "2026-01-01T00:00:00Z")
    assert first["automation_id"] == waiting
    (skipped,) = items(api, key, "?skip_reason=conditions_changed&automation=chase")
    assert (skipped["status"], skipped["skip_reason"]) == ("skipped", "conditions_changed")
    (one,) = items(api, key, "?subject_type=conversation&subject_id=p1")
    assert one["id"] == "p1"


@pytest.mark.parametrize("query", ["", "status=pending&"])
def test_pages_go_on_where_the_last_one_ended(api: Api, waiting: str, query: str) -> None:
    key = api.key()
    whole = [each["id"] for each in items(api, key, f"?{query}")]
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api("GET", f"{PATH}?{query}limit=1{cursor and f'&cursor={cursor}'}", key=key).json()
        found += [each["id"] for each in page["items"]]
        cursor = page["next"]
    assert found == whole
    other = "status=pending&" if not query else ""
    first = api("GET", f"{PATH}?{query}limit=1", key=key).json()["next"]
    assert api("GET", f"{PATH}?{other}cursor={first}", key=key).status_code == 422


@pytest.mark.parametrize("status", ["pending", "processing", "executed"])
def test_a_reason_with_a_status_that_has_none_is_refused(api: Api, waiting: str, status: str) -> None:
    refused = api("GET", f"{PATH}?status={status}&skip_reason=expired", key=api.key())
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, "skip_reason")
    assert api("GET", f"{PATH}?status=skipped&skip_reason=expired", key=api.key()).status_code == 200


@pytest.mark.parametrize("given", [1, "yes", "true", None])
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/automations/chase/activate", "arm_existing"),
        ("/v1/runs/r1/replay", "from_start"),
        ("/v1/runs/r1/cancel", "force"),
        ("/v1/runs/replay", "confirm"),
    ],
)
def test_only_true_and_false_are_yes_and_no(
    api: Api, waiting: str, path: str, field: str, given: object
) -> None:
    body = {field: given, "filter": {"status": "FAILED"}} if path.endswith("runs/replay") else {field: given}
    refused = api("POST", path, key=api.key(), json=body)
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, field)


def test_one_is_shown_with_the_event_that_armed_it_masked(api: Api, waiting: str) -> None:
    shown = api("GET", f"{PATH}/p1", key=api.key(Scope.RUNS_READ))
    assert shown.json()["trigger_event"]["payload"]["n"] == 1
    assert "tops3cret" not in shown.text


def test_what_waits_is_cancelled_once_and_stays_spent(api: Api, waiting: str) -> None:
    key = api.key(Scope.RUNS_WRITE)
    done = api("POST", f"{PATH}/p1/cancel", key=key).json()
    assert (done["status"], done["skip_reason"], done["ended_at"]) == ("skipped", "cancelled", None)
    again = api("POST", f"{PATH}/p1/cancel", key=key)
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    assert "skipped (cancelled)" in again.json()["message"]
    assert api("POST", f"{PATH}/done/cancel", key=key).status_code == 409
    with api.backends.database.read() as conn:
        version = conn.execute(text("SELECT version FROM pending_executions WHERE id = 'p1'")).scalar_one()
    assert version == 2


def test_what_a_sweep_has_claimed_can_still_be_cancelled(api: Api, waiting: str) -> None:
    with api.backends.database.begin() as conn:
        conn.execute(text("UPDATE pending_executions SET status = 'processing' WHERE id = 'p1'"))
    done = api("POST", f"{PATH}/p1/cancel", key=api.key())
    assert (done.status_code, done.json()["status"]) == (200, "skipped")


def test_a_run_names_its_source_and_what_waited_for_it(api: Api, waiting: str) -> None:
    key = api.key()
    with api.backends.database.begin() as conn:
        automation = find_by_reference(conn, "w1", waiting)
        assert automation is not None
        plain = new_run(automation, {})
        run = replace(new_run(automation, {}), source=RunSource.DELAYED, source_id="p1")
        insert_runs(conn, [plain, run])
        changed = {"run_id": run.id, "id": "p1"}
        conn.execute(text("UPDATE pending_executions SET run_id = :run_id WHERE id = :id"), changed)
    shown = api("GET", f"/v1/runs/{run.id}", key=key).json()
    assert shown["source"] == "delayed"
    assert (shown["pending_execution"]["id"], shown["pending_execution"]["run_id"]) == ("p1", run.id)
    other = api("GET", f"/v1/runs/{plain.id}", key=key).json()
    assert other["source"] != "delayed"
    assert other["pending_execution"] is None


def test_a_conversation_tells_since_when_its_contact_waits(api: Api) -> None:
    key, at = api.key(), datetime(2026, 3, 1, 12, tzinfo=UTC)
    api("PUT", "/v1/subjects/conversation/c1", key=key, json={"data": {"status": "open"}})
    api("PUT", "/v1/subjects/contact/c1", key=key, json={"data": {"name": "Ada"}})

    def since(type_: str = "conversation") -> Any:
        return api("GET", f"/v1/subjects/{type_}/c1", key=key).json()["waiting_since"]

    def say(number: int, **given: Any) -> None:
        message = {
            "workspace_id": "w1",
            "id": f"m{number}",
            "conversation_id": "c1",
            "direction": "incoming",
            "sender_type": "contact",
            "private": 0,
            "auto_submitted": 0,
            "stamp_ms": number,
            "stamp_seq": 0,
            "created_at": at + timedelta(minutes=number),
            **given,
        }
        with api.backends.database.begin() as conn:
            add_row(conn, MESSAGES, **message)

    assert since() is None
    say(1)
    say(2)
    assert since() == "2026-03-01T12:01:00Z"
    assert since("contact") is None
    say(3, direction="outgoing", sender_type="agent", private=1)
    assert since() == "2026-03-01T12:01:00Z"
    say(4, direction="outgoing", sender_type="agent")
    assert since() is None
    say(5)
    assert since() == "2026-03-01T12:05:00Z"


def test_an_automation_takes_what_waits_along_when_it_is_deleted(api: Api, waiting: str) -> None:
    key = api.key()
    assert api("DELETE", "/v1/automations/chase", key=key).status_code == 204
    assert items(api, key) == []
    (entry,) = [
        each
        for each in api("GET", "/v1/audit", key=key).json()["items"]
        if each["action"] == "automation.deleted"
    ]
    assert entry["detail"]["pending_deleted"] == 3
