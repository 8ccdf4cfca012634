"""Recorded events, explanations, dry runs and backtests over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.db.automations import AutomationRow
from shared.services.recorded import LISTED_BYTES
from shared.services.workspaces import Scope
from tests.calling import Api
from tests.matching import Post, open_post

GATE = {"all": [{"field": "total", "op": "gt", "value": 100}]}
ORDER = {"type": "order.placed", "payload": {"orderId": 7, "total": 200, "apiKey": "s3cr3t-s3cr3t"}}
NOTICE = {"type": "CREATE_NOTIFICATION", "config": {"title": "{{ orderId }} {{ apiKey }} {{ subject.name }}"}}
DRAFT = {
    "key": "draft",
    "name": "A draft",
    "trigger": {"type": "EVENT", "config": {"eventType": "order.placed"}},
    "conditions": GATE,
    "actions": [NOTICE],
}


@pytest.fixture
def post(api: Api) -> Post:
    return open_post(api.backends)


@pytest.fixture
def key(api: Api) -> str:
    return api.key(Scope.EVENTS_READ, Scope.AUTOMATIONS_READ, Scope.RUNS_READ)


@pytest.fixture
def large(post: Post) -> AutomationRow:
    return post.add(conditions=GATE, actions=[NOTICE], key="large")


def get(api: Api, key: str, path: str) -> Any:
    answer = api("GET", path, key=key)
    assert answer.status_code == 200, answer.text
    return answer.json()


def field_of(answer: Any) -> str:
    assert answer.status_code == 422, answer.text
    return answer.json()["details"]["field"]


def test_events_are_listed_newest_first_in_pages_and_masked(api: Api, post: Post, key: str) -> None:
    ids = [post.publish(payload={"n": number, "password": "hunter2"}) for number in range(5)]
    post.publish(workspace_id="w2")
    post.step()
    unread = post.publish(payload={"text": "x" * 20_000})
    page = get(api, key, "/v1/events?limit=4")
    assert [each["entry_id"] for each in page["items"]] == [unread, *ids[:1:-1]]
    assert [each["state"] for each in page["items"]] == ["unread", "taken", "taken", "taken"]
    assert page["items"][1]["event"]["payload"] == {"n": 4, "password": "***"}
    assert len(str(page["items"][0]["event"]["payload"])) <= LISTED_BYTES
    rest = get(api, key, f"/v1/events?limit=4&cursor={page['next']}")
    assert ([each["entry_id"] for each in rest["items"]], rest["next"]) == (ids[1::-1], None)


def test_events_are_filtered_by_type_and_time(api: Api, post: Post, key: str) -> None:
    post.publish("order.paid")
    paid = post.publish_raw({"type": "order.paid", "workspaceId": "w1", "payload": "["})
    post.publish()
    found = get(api, key, "/v1/events?type=order.paid")["items"]
    assert (len(found), found[0]["entry_id"], found[0]["event"], found[0]["reason"][:20]) == (
        2,
        paid,
        None,
        "payload: is not JSON",
    )
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat().replace("+", "%2B")
    assert get(api, key, f"/v1/events?from={soon}")["items"] == []
    assert len(get(api, key, f"/v1/events?to={soon}")["items"]) == 3
    assert get(api, key, "/v1/events?to=1970-01-01T00:00:00Z")["items"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("cursor=abc", "cursor"),
        ("cursor=WyJ4Il0", "cursor"),
        ("from=2026-03-01T12:00:00", "from"),
        ("to=yesterday", "to"),
    ],
)
def test_a_bad_query_is_refused_with_its_field(api: Api, key: str, query: str, field: str) -> None:
    assert field_of(api("GET", f"/v1/events?{query}", key=key)) == field


def test_an_event_is_explained_for_each_automation(
    api: Api, post: Post, key: str, large: AutomationRow
) -> None:
    paused = post.add(status="PAUSED", key="paused")
    entry = post.publish(payload={"total": 50})
    post.step()
    told = get(api, key, f"/v1/events/{entry}/explain")
    assert told["entry"] == get(api, key, f"/v1/events/{entry}")
    first, second = told["items"]
    assert (first["automation"]["id"], first["verdict"], first["run"]["status"]) == (
        large.id,
        "matched",
        "PENDING",
    )
    assert (second["automation"]["id"], second["stopped_by"]["check"]) == (paused.id, "status")
    assert (second["checks"], told["next"]) == (None, None)
    (one,) = get(api, key, f"/v1/events/{entry}/explain?automation=large")["items"]
    assert [leaf["found"] for leaf in one["leaves"]] == [50]
    assert len(one["checks"]) == 15
    page = get(api, key, f"/v1/events/{entry}/explain?limit=1")
    rest = get(api, key, f"/v1/events/{entry}/explain?limit=1&cursor={page['next']}")
    assert [each["automation"]["key"] for each in (*page["items"], *rest["items"])] == ["large", "paused"]


def test_what_is_not_the_callers_is_not_there(api: Api, post: Post, key: str) -> None:
    foreign = post.publish(workspace_id="w2")
    nobodys = post.publish_raw({"type": "order.placed", "payload": "{}"})
    post.step()
    for entry in (foreign, nobodys, "nothing", "99999999999999-0"):
        for path in (f"/v1/events/{entry}", f"/v1/events/{entry}/explain"):
            answer = api("GET", path, key=key)
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found"), entry
        tried = api("POST", "/v1/automations/x/dry-run", key=key, json={"entry_id": entry})
        assert tried.status_code == 404
    own = post.publish()
    assert api("GET", f"/v1/events/{own}/explain?automation=none", key=key).status_code == 404


def test_a_trimmed_event_is_gone(api: Api, post: Post, key: str) -> None:
    gone, _ = post.publish(), post.publish()
    post.backends.redis.xtrim(post.backends.keys.stream, maxlen=1, approximate=False)
    assert api("GET", f"/v1/events/{gone}", key=key).status_code == 404
    told = get(api, key, f"/v1/events/{gone}/explain")
    assert (told["entry"]["state"], told["items"]) == ("gone", [])


def test_a_dry_run_takes_an_event_and_gives_the_verdict_and_the_actions(
    api: Api, key: str, large: AutomationRow
) -> None:
    answer = api("POST", "/v1/automations/large/dry-run", key=key, json={"event": ORDER})
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["would_run"], told["automation"]["id"], told["event"]["payload"]["apiKey"]) == (
        True,
        large.id,
        "***",
    )
    (action,) = told["actions"]
    assert (action["config"], action["missing"]) == ({"title": "7 *** "}, ["subject.name"])
    low = {**ORDER, "payload": {"total": 1}}
    told = api("POST", f"/v1/automations/{large.id}/dry-run", key=key, json={"event": low}).json()
    assert (told["would_run"], told["blamed"][0]["found"]) == (False, 1)


def test_a_dry_run_of_a_recorded_event_needs_to_read_events(
    api: Api, post: Post, key: str, large: AutomationRow
) -> None:
    entry = post.publish(payload=ORDER["payload"])
    path, body = f"/v1/automations/{large.id}/dry-run", {"entry_id": entry}
    assert api("POST", path, key=key, json=body).json()["would_run"] is True
    refused = api("POST", path, key=api.key(Scope.AUTOMATIONS_READ), json=body)
    assert (refused.status_code, refused.json()["details"]["scopes"]) == (403, ["events:read"])
    bad = post.publish_raw({"type": "order.placed", "workspaceId": "w1", "payload": "["})
    assert api("POST", path, key=key, json={"entry_id": bad}).status_code == 409


def test_a_subject_is_shown_only_to_who_may_read_subjects(
    api: Api, post: Post, key: str, large: AutomationRow
) -> None:
    told = {"subject": {"type": "customer", "id": "c1", "state": {"name": "Ada"}}, "total": 200, "orderId": 7}
    post.publish("customer.seen", told)
    post.step()
    event = {"type": "order.placed", "payload": {**told, "subject": {"type": "customer", "id": "c1"}}}
    path = f"/v1/automations/{large.id}/dry-run"
    titles = [
        api("POST", path, key=asked, json={"event": event}).json()["actions"][0]["config"]["title"]
        for asked in (key, api.key(Scope.AUTOMATIONS_READ, Scope.SUBJECTS_READ))
    ]
    assert titles == ["7  ", "7  Ada"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"event": ORDER, "entry_id": "1-0"}, "body"),
        ({"event": {"type": "order.placed", "payload": 7}}, "event.payload"),
        ({"event": {**ORDER, "workspaceId": "w2"}}, "event.workspaceId"),
        ({"event": {**ORDER, "extra": 1}}, "event.extra"),
        ({"event": ORDER, "extra": 1}, "extra"),
    ],
)
def test_a_bad_dry_run_is_refused_with_its_field(
    api: Api, key: str, large: AutomationRow, body: Any, field: str
) -> None:
    assert field_of(api("POST", f"/v1/automations/{large.id}/dry-run", key=key, json=body)) == field


def test_another_workspaces_automation_is_not_there(api: Api, large: AutomationRow) -> None:
    foreign = api.key(workspace="w2")
    for name in (large.id, "large", "none"):
        answer = api("POST", f"/v1/automations/{name}/dry-run", key=foreign, json={"event": ORDER})
        assert answer.status_code == 404


def test_a_backtest_holds_a_draft_against_recorded_events(api: Api, post: Post, key: str) -> None:
    entries = [post.publish(payload={"total": total}) for total in (50, 150, 250)]
    found = api("POST", "/v1/backtests", key=key, json={"definition": DRAFT}).json()
    assert (found["events"], found["would_run"], found["no"]) == (3, 2, {"conditions": 1})
    assert found["leaves"] == [{"path": "conditions.all[0]", "field": "total", "op": "gt", "said_no": 1}]
    assert [each["entry_id"] for each in found["examples"]] == entries
    some = api("POST", "/v1/backtests", key=key, json={"definition": DRAFT, "limit": 2}).json()
    assert (some["events"], some["next"]) == (2, entries[2])
    past = {"definition": DRAFT, "from": "2020-01-01T00:00:00Z", "to": "2020-01-02T00:00:00Z"}
    assert api("POST", "/v1/backtests", key=key, json=past).json()["events"] == 0
    assert post.runs() == []


GUESSES = [
    {"field": "user.password", "op": "starts_with", "value": "hunter"},
    {"field": "user.password", "op": "matches", "value": "^h"},
    {"field": "callback", "op": "contains", "value": "s3cr3t"},
    {"field": "payload.user.password", "op": "eq", "value": "hunter2"},
    {"field": "orderId", "op": "eq", "value": "{{ user.password | size }}"},
]


@pytest.mark.parametrize("leaf", GUESSES)
def test_a_masked_value_of_a_recorded_event_cannot_be_guessed(
    api: Api, post: Post, key: str, leaf: dict[str, Any]
) -> None:
    payload = {"orderId": 7, "user": {"password": "hunter2"}, "callback": "https://x.example/?token=s3cr3t"}
    entry = post.publish(payload=payload)
    draft = {**DRAFT, "conditions": {"all": [leaf]}}
    post.add(conditions=draft["conditions"], key="guess")
    found = api("POST", "/v1/backtests", key=key, json={"definition": draft}).json()
    assert (found["events"], found["would_run"]) == (1, 0)
    tried = api("POST", "/v1/automations/guess/dry-run", key=key, json={"entry_id": entry}).json()
    assert tried["would_run"] is False


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"definition": {**DRAFT, "actions": []}}, "definition.actions"),
        ({"definition": {**DRAFT, "trigger": {"type": "MANUAL"}}}, "definition.trigger.type"),
        ({"definition": DRAFT, "limit": 10_001}, "limit"),
        ({"definition": DRAFT, "from": "yesterday"}, "from"),
        ({}, "definition"),
    ],
)
def test_a_bad_backtest_is_refused_with_its_field(api: Api, key: str, body: Any, field: str) -> None:
    assert field_of(api("POST", "/v1/backtests", key=key, json=body)) == field


def test_what_a_key_lacks_is_refused(api: Api, large: AutomationRow) -> None:
    events, automations = api.key(Scope.EVENTS_READ), api.key(Scope.AUTOMATIONS_READ)
    asked = [
        api("GET", "/v1/events", key=automations),
        api("GET", "/v1/events/1-0/explain", key=automations),
        api("GET", "/v1/events/1-0/explain", key=api.key(Scope.EVENTS_READ, Scope.AUTOMATIONS_READ)),
        api("GET", "/v1/events/1-0/explain", key=api.key(Scope.EVENTS_READ, Scope.RUNS_READ)),
        api("POST", f"/v1/automations/{large.id}/dry-run", key=events, json={"event": ORDER}),
        api("POST", "/v1/backtests", key=events, json={"definition": DRAFT}),
        api("POST", "/v1/backtests", key=automations, json={"definition": DRAFT}),
    ]
    assert [answer.status_code for answer in asked] == [403] * 7
