"""Runs and subjects over HTTP."""

from datetime import timedelta
from typing import Any

import pytest

from shared.services.workspaces import Scope
from tests.calling import Api
from tests.people import set_run
from tests.volume import fill, made_at, run_id

PROMPT = {"key": "by-hand", "name": "By hand", "trigger": {"type": "MANUAL"}}
ACTION = {"type": "CREATE_NOTIFICATION", "config": {"title": "Hello"}}


@pytest.fixture
def key(api: Api) -> str:
    return api.key()


def start(api: Api, key: str, count: int = 1) -> list[str]:
    api("POST", "/v1/automations", key=key, json={**PROMPT, "actions": [ACTION]})
    answers = [api("POST", "/v1/automations/by-hand/run", key=key) for _ in range(count)]
    return [answer.json()["run_id"] for answer in answers]


def test_runs_are_listed_by_automation_status_and_time_in_pages(api: Api, key: str) -> None:
    ids = start(api, key, 3)
    set_run(api.backends, ids[0], "FAILED", ended_at="2026-03-01T12:00:00+00:00")

    def listed(query: str) -> list[str]:
        answer = api("GET", f"/v1/runs?{query}", key=key)
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.json()["items"]]

    assert listed("automation=by-hand") == ids[::-1]
    assert listed("status=FAILED") == ids[:1]
    assert listed("trigger=MANUAL&status=PENDING") == ids[:0:-1]
    assert listed("trigger=EVENT") == []
    assert listed("fingerprint=0f3c5ad1b2c4e6f8") == []
    empty = api("GET", "/v1/runs?subject_type=order&subject_id=", key=key)
    assert (empty.status_code, empty.json()["details"]["field"]) == (422, "subject_id")
    clash = api("GET", "/v1/runs?status=FAILED&fingerprint=0f3c5ad1b2c4e6f8", key=key)
    assert (clash.status_code, clash.json()["details"]["field"]) == (422, "fingerprint")
    assert listed("subject_type=record&subject_id=r") == []
    first = api("GET", "/v1/runs?limit=2", key=key).json()
    assert listed(f"limit=2&cursor={first['next']}") == ids[:1]
    now = api.backends.clock.now()
    assert listed(f"from={(now - timedelta(minutes=5)).isoformat()[:19]}Z") == ids[::-1]
    assert listed(f"to={(now - timedelta(minutes=5)).isoformat()[:19]}Z") == []
    for query, field in (
        ("status=loud", "status"),
        ("from=yesterday", "from"),
        ("subject_id=r", "subject_type"),
    ):
        assert api("GET", f"/v1/runs?{query}", key=key).json()["details"]["field"] == field
    assert api("GET", "/v1/runs?automation=nothing", key=key).status_code == 404


def test_a_page_of_what_is_rare_may_be_short_and_still_have_a_next_one(api: Api, key: str) -> None:
    fill(api.backends.database, 13_000)
    found: list[str] = []
    path, pages = "/v1/runs?trigger=MANUAL&limit=5", 0
    cursor = ""
    while pages == 0 or cursor:
        page = api("GET", path + (f"&cursor={cursor}" if cursor else ""), key=key).json()
        found += [each["id"] for each in page["items"]]
        cursor, pages = page["next"], pages + 1
    assert found == [run_id(10_001), run_id(1)]
    assert pages == 2
    between = f"from={made_at(1).isoformat()[:19]}Z&to={made_at(8).isoformat()[:19]}Z"
    ids = [each["id"] for each in api("GET", f"/v1/runs?{between}", key=key).json()["items"]]
    assert ids == [run_id(number) for number in (7, 5, 3, 1)]


def test_one_run_is_shown_with_all_that_is_known_of_it(api: Api, key: str) -> None:
    (run,) = start(api, key)
    api("POST", f"/v1/runs/{run}/cancel", key=key)
    told = api("GET", f"/v1/runs/{run}", key=key).json()
    assert (told["status"], told["why"], told["actions"], told["attempts"]) == (
        "CANCELLED",
        "CANCELLED",
        [],
        [],
    )
    assert [line["message"] for line in told["logs"]] == ["run cancelled"]
    assert api("GET", "/v1/runs/nothing", key=key).status_code == 404


def test_a_run_is_replayed_once_and_cancelled_only_while_it_can_be(api: Api, key: str) -> None:
    (run,) = start(api, key)
    set_run(api.backends, run, "DEAD_LETTER", ended_at="2026-03-01T12:00:00+00:00")
    again = [api("POST", f"/v1/runs/{run}/replay", key=key, json={"from_start": True}).json() for _ in "ab"]
    assert [each["replayed"] for each in again] == [True, False]
    set_run(api.backends, run, "RUNNING")
    assert api("POST", f"/v1/runs/{run}/cancel", key=key).status_code == 409
    forced = api("POST", f"/v1/runs/{run}/cancel", key=key, json={"force": True}).json()
    assert forced == {"run_id": run, "cancelled": "stopping"}
    set_run(api.backends, run, "SUCCEEDED", ended_at="2026-03-01T12:00:00+00:00")
    assert api("POST", f"/v1/runs/{run}/replay", key=key).status_code == 409


def test_a_subject_is_written_read_and_deleted(api: Api, key: str) -> None:
    path = "/v1/subjects/order/a%2Fb%20c"
    made = api("PUT", path, key=key, json={"data": {"total": 5, "state": "new"}})
    merged = api("PUT", path, key=key, json={"data": {"state": "paid"}})
    assert (made.status_code, merged.status_code) == (201, 200)
    assert merged.json()["changed"] == ["state"]
    assert api("GET", path, key=key).json() == {
        "type": "order",
        "id": "a/b c",
        "data": {"total": 5, "state": "paid"},
        "databaseId": None,
        "waiting_since": None,
    }
    gone = api("DELETE", path, key=key)
    assert (gone.status_code, len(gone.json()["event_id"])) == (200, 36)
    assert [api(method, path, key=key).status_code for method in ("GET", "DELETE")] == [404, 404]
    told = api.backends.redis.xrange(api.backends.keys.stream)
    assert [fields[b"type"] for _, fields in told] == [b"order.created", b"order.updated", b"order.deleted"]


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("contact/c1", {"data": {"id": "x"}}, "data.id"),
        ("contact/c1", {"data": {}, "databaseId": "d"}, "databaseId"),
        ("contact/c1", {"data": [1]}, "data"),
        ("contact/c1", {}, "data"),
        ("Contact/c1", {"data": {"a": 1}}, "subject_type"),
        ("a%2Fb/c", {"data": {"a": 1}}, "subject_type"),
        ("contact/", {"data": {"a": 1}}, "subject_id"),
        (f"contact/{'c' * 201}", {"data": {}}, "subject_id"),
    ],
)
def test_a_write_that_cannot_be_told_of_names_its_field(
    api: Api, key: str, path: str, body: Any, field: str
) -> None:
    refused = api("PUT", f"/v1/subjects/{path}", key=key, json=body)
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, field)


@pytest.mark.parametrize("path", ["contact/c1/", "contact/a/b", "contact//c1"])
def test_a_slash_that_is_sent_as_one_parts_a_path(api: Api, key: str, path: str) -> None:
    for method in ("PUT", "GET", "DELETE"):
        body = {"data": {"a": 1}} if method == "PUT" else None
        assert api(method, f"/v1/subjects/{path}", key=key, json=body).status_code == 404


def test_a_run_by_hand_takes_what_an_event_may_carry(api: Api, key: str) -> None:
    deep: Any = {}
    for _ in range(49):
        deep = {"in": deep}
    refused = api("POST", "/v1/automations/welcome/run", key=api.key(), json={"payload": deep})
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, "payload")


def test_a_write_under_an_idempotency_key_is_told_of_once(api: Api) -> None:
    key = api.key(Scope.SUBJECTS_WRITE)
    headers = {"Idempotency-Key": "one"}
    answers = [
        api("PUT", "/v1/subjects/order/o1", key=key, json={"data": {"n": 1}}, headers=headers) for _ in "ab"
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert api.backends.redis.xlen(api.backends.keys.stream) == 1
