"""Bulk operations and dead letters in groups, over HTTP."""

from typing import Any

import pytest

from shared.services.workspaces import Scope
from tests.bulk import Ended, add_ended, do_all, make_automation
from tests.calling import Api


@pytest.fixture
def key(api: Api) -> str:
    return api.key(Scope.RUNS_READ, Scope.RUNS_WRITE)


def made(api: Api, key: str, **wanted: Any) -> Any:
    answer = api("POST", "/v1/bulk", key=key, json={"kind": "replay", "filter": {}, **wanted})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_preview_is_confirmed_once_and_its_progress_read(api: Api, key: str) -> None:
    add_ended(api.backends, make_automation(api.backends), 3)
    preview = made(api, key, filter={"automation": "welcome", "status": "dead_letter"})
    assert (preview["status"], preview["total"], preview["more"]) == ("PREVIEWED", 3, False)
    assert preview["filter"]["automation"] == "welcome"
    path = f"/v1/bulk/{preview['id']}"
    confirmed = [api("POST", f"{path}/confirm", key=key).json() for _ in range(2)]
    assert confirmed[0] == confirmed[1]
    assert confirmed[0]["status"] == "CONFIRMED"
    assert confirmed[0]["confirmed_by"].startswith("KEY ") or confirmed[0]["confirmed_by"]
    do_all(api.backends)
    done = api("GET", path, key=key).json()
    assert (done["status"], done["done"], done["skipped"]) == ("DONE", 3, {})
    assert api("POST", f"{path}/cancel", key=key).status_code == 409


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        *(({"filter": {name: None}}, f"filter.{name}") for name in ("fingerprint", "status", "from", "code")),
        ({"filter": {"status": "SUCCEEDED"}}, "filter.status"),
        ({"filter": {"status": "FAILED", "fingerprint": "x"}}, "filter.fingerprint"),
        ({"kind": "cancel", "filter": {"code": "X"}}, "filter.code"),
        ({"filter": {"from": "0001-01-01T00:00:00+14:00"}}, "filter.from"),
        ({"filter": {"to": "9999-12-31T23:59:59-14:00"}}, "filter.to"),
        ({"filter": {"from": 1767225600}}, "filter.from"),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_filter_that_cannot_be_is_refused_at_its_key(
    api: Api, key: str, wanted: dict[str, Any], field: str
) -> None:
    routes = ["/v1/bulk"] if "kind" in wanted else ["/v1/bulk", "/v1/runs/replay"]
    for path in routes:
        body = {"kind": "replay", **wanted} if path == "/v1/bulk" else {**wanted, "confirm": True}
        refused = api("POST", path, key=key, json=body)
        assert (refused.status_code, refused.json()["details"]["field"]) == (422, field), refused.text


def test_an_operation_is_cancelled_and_stays_so(api: Api, key: str) -> None:
    path = f"/v1/bulk/{made(api, key)['id']}"
    assert [api("POST", f"{path}/cancel", key=key).json()["status"] for _ in range(2)] == ["CANCELLED"] * 2
    assert api("POST", f"{path}/confirm", key=key).status_code == 409


def test_operations_are_listed_in_pages_newest_first(api: Api, key: str) -> None:
    ids = [made(api, key)["id"] for _ in range(3)]
    first = api("GET", "/v1/bulk?limit=2", key=key).json()
    rest = api("GET", f"/v1/bulk?limit=2&cursor={first['next']}", key=key).json()
    assert [each["id"] for each in (*first["items"], *rest["items"])] == ids[::-1]
    assert rest["next"] is None


def test_runs_are_replayed_by_filter_at_once_only_when_confirmed(api: Api, key: str) -> None:
    automation_id = make_automation(api.backends)
    add_ended(api.backends, automation_id, 2, Ended("FAILED"))
    wanted = {"filter": {"status": "FAILED"}, "from_start": True}
    preview = api("POST", "/v1/runs/replay", key=key, json=wanted).json()
    assert (preview["status"], preview["total"], preview["from_start"]) == ("PREVIEWED", 2, True)
    begun = api("POST", "/v1/runs/replay", key=key, json={**wanted, "confirm": True}).json()
    assert begun["status"] == "CONFIRMED"
    do_all(api.backends)
    assert api("GET", f"/v1/bulk/{begun['id']}", key=key).json()["done"] == 2


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"filter": {}}, "kind"),
        ({"kind": "replay"}, "filter"),
        ({"kind": "replay", "filter": {"status": "PENDING"}}, "filter.status"),
        ({"kind": "replay", "filter": {"status": "WRONG"}}, "filter.status"),
        ({"kind": "replay", "filter": {"status": "FAILED", "fingerprint": "f"}}, "filter.fingerprint"),
        ({"kind": "replay", "filter": {"from": "2026-03-01T12:00:00"}}, "filter.from"),
        (
            {
                "kind": "replay",
                "filter": {"from": "2026-03-01T12:00:00Z", "to": "2026-03-01T12:00:00Z"},
            },
            "filter.to",
        ),
        ({"kind": "replay", "filter": {"other": 1}}, "filter.other"),
        ({"kind": "replay", "filter": {"code": ""}}, "filter.code"),
        ({"kind": "cancel", "filter": {"code": "C"}}, "filter.code"),
        ({"kind": "cancel", "filter": {}, "from_start": True}, "from_start"),
    ],
)
def test_a_wish_that_cannot_be_names_its_field(api: Api, key: str, body: Any, field: str) -> None:
    refused = api("POST", "/v1/bulk", key=key, json=body)
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, field)


def test_what_is_not_there_or_another_workspaces_is_not_found(api: Api, key: str) -> None:
    operation_id = made(api, key)["id"]
    stranger = api.key(workspace="w2")
    for method, path in (("GET", ""), ("POST", "/confirm"), ("POST", "/cancel")):
        assert api(method, f"/v1/bulk/{operation_id}{path}", key=stranger).status_code == 404
    assert api("GET", "/v1/bulk", key=stranger).json()["items"] == []
    unknown = {"kind": "replay", "filter": {"automation": "nothing"}}
    assert api("POST", "/v1/bulk", key=key, json=unknown).status_code == 404


def test_reading_alone_starts_nothing(api: Api, key: str) -> None:
    operation_id = made(api, key)["id"]
    reader = api.key(Scope.RUNS_READ)
    assert api("GET", f"/v1/bulk/{operation_id}", key=reader).status_code == 200
    for path in (
        "/v1/bulk",
        "/v1/runs/replay",
        *(f"/v1/bulk/{operation_id}/{do}" for do in ("confirm", "cancel")),
    ):
        assert api("POST", path, key=reader, json={"kind": "replay", "filter": {}}).status_code == 403


def test_dead_letters_are_read_in_groups(api: Api, key: str) -> None:
    automation_id = make_automation(api.backends)
    add_ended(api.backends, automation_id, 2, Ended(message="GET https://h.test/?token=hidden answered 500"))
    (newest,) = add_ended(api.backends, automation_id, 1, Ended(code="MAIL_REFUSED", message="no such box"))
    page = api("GET", "/v1/dead-letters?limit=1", key=key).json()
    (mail,) = page["items"]
    assert (mail["code"], mail["count"], mail["run_id"]) == ("MAIL_REFUSED", 1, newest)
    rest = api("GET", f"/v1/dead-letters?cursor={page['next']}", key=key).json()
    (hook,) = rest["items"]
    assert (hook["target"], hook["count"], hook["automation_ids"]) == ("h.test", 2, [automation_id])
    assert "hidden" not in hook["message"]
    narrowed = made(api, key, filter={"fingerprint": hook["fingerprint"]})
    assert narrowed["total"] == 2
