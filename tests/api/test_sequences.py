"""Steps of idle sequences over HTTP: listed, one with its sequence, disarmed once."""

from datetime import timedelta
from typing import Any

import pytest

from shared.db.audit_reads import AuditQuery, list_audit
from shared.db.tables_idle import AI_AGENTS
from shared.services.workspaces import Scope
from tests.any_rows import add_row
from tests.calling import Api
from tests.idle_rows import DUE, add_step

PATH = "/v1/sequences"


@pytest.fixture
def key(api: Api) -> str:
    """Have a sequence that waits for its second step, one that is over, one of a channel; give a key."""
    with api.backends.database.begin() as conn:
        add_row(conn, AI_AGENTS, workspace_id="w1", id="nora", name="Nora")
        add_step(conn, "s0", conversation_id="c1", status="fired", run_id="r1", ended_at=DUE)
        given: dict[str, Any] = {"sequence_id": "s0", "step_index": 1, "action": "resolve"}
        add_step(conn, "s1", conversation_id="c1", due_at=DUE + timedelta(minutes=10), **given)
        add_step(conn, "s2", status="stopped", reason="customer_replied", ended_at=DUE)
        add_step(conn, "s3", rule="channel", agent_id=None, channel_id="shop", step_count=1)
        add_step(conn, "theirs", workspace_id="w2", conversation_id="c1")
    return api.key(Scope.RUNS_READ, Scope.RUNS_WRITE)


def ids(api: Api, key: str, query: str = "") -> list[str]:
    return [each["id"] for each in api("GET", f"{PATH}?{query}", key=key).json()["items"]]


def test_steps_are_listed_by_what_they_are_and_how_they_stand(api: Api, key: str) -> None:
    assert ids(api, key) == ["s3", "s2", "s1", "s0"]
    assert ids(api, key, "status=pending") == ["s3", "s1"]
    assert ids(api, key, "conversation=c1") == ["s1", "s0"]
    assert ids(api, key, "agent=nora&status=pending") == ["s1"]
    assert ids(api, key, "reason=customer_replied") == ["s2"]
    assert ids(api, key, "due_before=2026-03-02T12:10:00Z&status=pending") == ["s3"]
    assert api("GET", f"{PATH}?due_before=soon", key=key).status_code == 422
    (first,) = api("GET", f"{PATH}?reason=customer_replied", key=key).json()["items"]
    assert (first["name"], first["words"]) == ("Nora", "step 1 of 3: follow_up, stopped: customer_replied")


@pytest.mark.parametrize("query", ["", "status=pending&", "conversation=c1&"])
def test_pages_go_on_where_the_last_one_ended(api: Api, key: str, query: str) -> None:
    whole = ids(api, key, query)
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api("GET", f"{PATH}?{query}limit=1{cursor and f'&cursor={cursor}'}", key=key).json()
        found += [each["id"] for each in page["items"]]
        cursor = page["next"]
    assert found == whole
    other = "" if query == "status=pending&" else "status=pending&"
    first = api("GET", f"{PATH}?{query}limit=1", key=key).json()["next"]
    assert api("GET", f"{PATH}?{other}cursor={first}", key=key).status_code == 422


def test_one_is_shown_with_its_whole_sequence(api: Api, key: str) -> None:
    shown = api("GET", f"{PATH}/s1", key=key).json()
    assert shown["words"] == "step 2 of 3: resolve, due 2026-03-02T12:10:00Z"
    assert (shown["conversation_id"], shown["sequence_id"], shown["rule"]) == ("c1", "s0", "agent")
    assert [(each["id"], each["words"]) for each in shown["steps"]] == [
        ("s0", "step 1 of 3: follow_up, fired"),
        ("s1", "step 2 of 3: resolve, due 2026-03-02T12:10:00Z"),
    ]
    assert api("GET", f"{PATH}/theirs", key=key).status_code == 404


def test_a_step_that_waits_is_disarmed_once(api: Api, key: str) -> None:
    done = api("POST", f"{PATH}/s1/disarm", key=key).json()
    assert (done["status"], done["reason"], done["ended_at"] is None) == ("stopped", "disarmed", False)
    again = api("POST", f"{PATH}/s1/disarm", key=key)
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    assert "stopped (disarmed)" in again.json()["message"]
    assert api("POST", f"{PATH}/s0/disarm", key=key).status_code == 409
    assert api("POST", f"{PATH}/theirs/disarm", key=key).status_code == 404
    with api.backends.database.read() as conn:
        (entry,) = list_audit(conn, AuditQuery("w1", 10, resource_type="idle_step"))
    assert (entry.action, entry.resource_id) == ("idle_step.disarmed", "s1")
    assert entry.detail == {
        "before": "pending",
        "after": "stopped",
        "conversation_id": "c1",
        "agent_id": "nora",
        "channel_id": None,
        "reason": "disarmed",
    }
