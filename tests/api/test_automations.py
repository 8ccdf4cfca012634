"""Automations over HTTP: made, read, edited, turned, run, deleted; and what is refused with its field."""

from typing import Any

import pytest

from shared.services.workspaces import Scope
from tests.calling import Api

WELCOME = {
    "key": "welcome",
    "name": "Welcome",
    "trigger": {"type": "EVENT", "config": {"eventType": "order.placed"}},
    "actions": [{"type": "CREATE_NOTIFICATION", "config": {"title": "Hello"}}],
}
PATH = "/v1/automations"


@pytest.fixture
def key(api: Api) -> str:
    return api.key(Scope.AUTOMATIONS_READ, Scope.AUTOMATIONS_WRITE)


def make(api: Api, key: str, /, **given: Any) -> Any:
    answer = api("POST", PATH, key=key, json={**WELCOME, **given})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_an_automation_is_made_once_and_read_by_id_or_key(api: Api, key: str) -> None:
    answer = api("POST", PATH, key=key, json=WELCOME)
    made = answer.json()
    assert (answer.status_code, made["status"], made["version"]) == (201, "ACTIVE", 1)
    assert answer.headers["Location"] == f"{PATH}/{made['id']}"
    by_id, by_key = api("GET", f"{PATH}/{made['id']}", key=key), api("GET", f"{PATH}/welcome", key=key)
    assert by_id.json() == by_key.json() == made
    assert by_id.headers["ETag"] == answer.headers["ETag"]
    again = api("POST", PATH, key=key, json=WELCOME)
    assert (again.status_code, again.json()["error"]) == (409, "conflict")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"key": "No"}, "key"),
        ({"unknown": 1}, "unknown"),
        ({"conditions": {"all": []}}, "conditions.all"),
        ({"actions": []}, "actions"),
        (
            {"actions": [{"type": "SEND_WEBHOOK", "config": {"url": "http://0x7f.1/"}}]},
            "actions[0].config.url",
        ),
        (
            {"actions": [{"type": "SEND_WEBHOOK", "config": {"url": "https://a.test/", "secret": "***"}}]},
            "actions[0].config.secret",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(api: Api, key: str, change: Any, field: str) -> None:
    refused = api("POST", PATH, key=key, json={**WELCOME, **change})
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, field)
    make(api, key)
    if "key" not in change:
        refused = api("PATCH", f"{PATH}/welcome", key=key, json=change)
        assert (refused.status_code, refused.json()["details"]["field"]) == (422, field)


def test_an_edit_merges_top_level_keys_and_makes_a_version(api: Api, key: str) -> None:
    leaf = {"field": "total", "op": "gt", "value": 3}
    make(api, key, conditions={"all": [leaf]})
    edited = api("PATCH", f"{PATH}/welcome", key=key, json={"name": "Hi", "conditions": None}).json()
    assert (edited["name"], edited["version"], "conditions" in edited["definition"]) == ("Hi", 2, False)
    same = api("PATCH", f"{PATH}/welcome", key=key, json={"name": "Hi"}).json()
    assert same == edited
    paused = api("PATCH", f"{PATH}/welcome", key=key, json={"status": "PAUSED"}).json()
    assert (paused["status"], paused["version"]) == ("PAUSED", 2)
    refused = api("PATCH", f"{PATH}/welcome", key=key, json={"key": "other"})
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, "key")
    first = api("GET", f"{PATH}/welcome/versions?limit=1", key=key).json()
    rest = api("GET", f"{PATH}/welcome/versions?cursor={first['next']}", key=key).json()
    assert [each["version"] for each in (*first["items"], *rest["items"])] == [2, 1]
    assert rest["items"][0]["definition"]["conditions"] == {"all": [leaf]}
    other = api("GET", f"{PATH}?limit=1", key=key).json()["next"] or first["next"]
    assert api("GET", f"{PATH}/welcome/versions?cursor={other}x", key=key).status_code == 422


def test_a_change_meant_for_another_state_is_refused(api: Api, key: str) -> None:
    make(api, key)
    etag = api("GET", f"{PATH}/welcome", key=key).headers["ETag"]
    for match, status in ((etag, 200), (etag, 412), ("*", 200), ('"other"', 412)):
        headers = {"If-Match": match}
        name = f"Name {status} {match[:3]}"
        answer = api("PATCH", f"{PATH}/welcome", key=key, json={"name": name}, headers=headers)
        assert answer.status_code == status
        assert (status == 200) is not ("ETag" not in answer.headers)
    assert api("DELETE", f"{PATH}/welcome", key=key, headers={"If-Match": etag}).status_code == 412
    assert api("DELETE", f"{PATH}/welcome", key=key).status_code == 204
    assert api("GET", f"{PATH}/welcome", key=key).status_code == 404
    assert api("DELETE", f"{PATH}/welcome", key=key).status_code == 404


def test_it_is_turned_off_and_on_and_run_by_hand(api: Api, key: str) -> None:
    make(api, key)
    paused = api("POST", f"{PATH}/welcome/pause", key=key).json()
    assert (paused["changed"], paused["automation"]["status"]) == (True, "PAUSED")
    assert api("POST", f"{PATH}/welcome/run", key=key).status_code == 409
    assert [api("POST", f"{PATH}/welcome/activate", key=key).json()["changed"] for _ in "ab"] == [True, False]
    answer = api("POST", f"{PATH}/welcome/run", key=key, json={"payload": {"total": 9}})
    run = api("GET", answer.headers["Location"], key=api.key()).json()
    assert (answer.status_code, run["id"], run["input"]["payload"]) == (
        201,
        answer.json()["run_id"],
        {"total": 9},
    )
    large = api("POST", f"{PATH}/welcome/run", key=key, json={"payload": {"a": "x" * 300_000}})
    assert (large.status_code, large.json()["error"]) == (422, "invalid")


def test_the_list_is_filtered_and_paged_by_key(api: Api, key: str) -> None:
    cron = {"type": "SCHEDULE", "config": {"cron": "0 9 * * *"}}
    for name in ("a", "b", "c"):
        make(api, key, key=name, name=f"The Ä {name}", trigger=cron if name == "b" else WELCOME["trigger"])
    api("POST", f"{PATH}/c/pause", key=key)

    def listed(query: str) -> list[str]:
        page = api("GET", f"{PATH}?{query}", key=key).json()
        return [each["key"] for each in page["items"]]

    assert listed("status=PAUSED") == ["c"]
    assert listed("trigger=SCHEDULE") == ["b"]
    assert listed("q=%C3%A4%20A") == ["a"]
    assert listed("q=nothing") == []
    first = api("GET", f"{PATH}?limit=2", key=key).json()
    rest = api("GET", f"{PATH}?limit=2&cursor={first['next']}", key=key).json()
    assert [each["key"] for each in (*first["items"], *rest["items"])] == ["a", "b", "c"]
    assert rest["next"] is None
    assert api("GET", f"{PATH}?status=LOUD", key=key).json()["details"]["field"] == "status"


def test_the_next_fires_are_those_of_the_clock(api: Api, key: str) -> None:
    make(
        api, key, trigger={"type": "SCHEDULE", "config": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}}
    )
    told = api("GET", f"{PATH}/welcome/next-fires?count=3", key=key).json()
    assert (told["cron"], told["timezone"], len(told["fires"])) == ("30 2 * * *", "Europe/Berlin", 3)
    make(api, key, key="by-event")
    assert api("GET", f"{PATH}/by-event/next-fires", key=key).status_code == 409
    assert api("GET", f"{PATH}/welcome/next-fires?count=0", key=key).status_code == 422


def test_secrets_are_masked_wherever_a_definition_is_shown(api: Api, key: str) -> None:
    hook = {
        "type": "SEND_WEBHOOK",
        "config": {"url": "https://u:pw7Q@h.test/?k=tok7Q", "headers": {"X": "tok7Q"}},
    }
    made = make(api, key, actions=[hook])
    shown = [
        made,
        *(api("GET", f"{PATH}{path}", key=key).json() for path in ("", "/welcome", "/welcome/versions")),
    ]
    assert "7Q" not in str(shown)
