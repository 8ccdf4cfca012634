"""What every request passes: ids, methods, keys, bodies, and the envelope of what is refused."""

import re

import pytest

from api.app import ROUTERS
from api.doors import Doors
from shared.services.workspaces import Scope
from tests.calling import Api


def test_the_process_is_up_and_ready(api: Api) -> None:
    assert api("GET", "/healthz").json() == {"status": "ok"}
    ready = api("GET", "/readyz")
    assert ready.status_code == 200
    assert ready.json() == {"status": "ok", "redis": "ok", "sql": "ok", "migrations": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/healthz", 405, "method_not_allowed"),
        ("GET", "/healthz/", 404, "not_found"),
        ("GET", "/v1/nowhere", 401, "unauthorized"),
        ("GET", "/a%00b", 400, "malformed"),
        ("GET", "/healthz?a=%00", 400, "malformed"),
    ],
)
def test_what_is_refused_has_one_shape(api: Api, method: str, path: str, status: int, code: str) -> None:
    refused = api(method, path)
    assert refused.status_code == status
    assert refused.json()["error"] == code
    assert refused.json().keys() == {"error", "message", "details"}


def test_head_is_get_without_a_body_and_options_names_what_can_be_done(api: Api) -> None:
    head = api("HEAD", "/healthz")
    assert (head.status_code, head.content) == (200, b"")
    options = api("OPTIONS", "/healthz")
    assert (options.status_code, options.headers["Allow"]) == (204, "GET, HEAD, OPTIONS")
    assert api("POST", "/healthz").headers["Allow"] == "GET, HEAD, OPTIONS"


def test_each_answer_has_an_id_and_gives_back_one_that_was_sent(api: Api) -> None:
    assert api("GET", "/healthz", headers={"X-Request-Id": "abc-1"}).headers["X-Request-Id"] == "abc-1"
    made = {api("GET", "/nowhere", headers={"X-Request-Id": "a b"}).headers["X-Request-Id"] for _ in "12"}
    assert len(made) == 2


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"name": "a", "name": "b"}', "application/json", 400),
        (b'{"name": NaN}', "application/json", 400),
        (b'{"name": 99999999999999999999}', "application/json", 400),
        (b"[1]", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'\xef\xbb\xbf{"name": "a", "state": "on"}', "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"name=a", "application/x-www-form-urlencoded", 415),
        (b'{"name": "a"}', "", 415),
        (b" " * 1_048_577, "application/json", 413),
        (b"", "application/json", 422),
        (b'{"name": "a\\u0000", "state": "on"}', "application/json", 422),
        (b'{"name": "a", "state": "on", "more": 1}', "application/merge-patch+json", 422),
        (b'{"name": "a", "state": "on"}', "application/json; charset=utf-8", 200),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_body_is_taken_only_as_json_that_can_be_kept(api: Api, body: bytes, kind: str, status: int) -> None:
    given = {"Content-Type": kind} if kind else {}
    answer = api("POST", "/v1/flags", key=api.key(), content=body, headers=given)
    assert answer.status_code == status, answer.text
    assert status < 400 or answer.json()["error"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_refusal_names_its_field_and_no_command(api: Api) -> None:
    key = api.key()
    member = {"email": "ada@example.com", "role": "viewer", "name": "a\r\nb"}
    refused = api("POST", "/v1/members", key=key, json=member)
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, "name")
    wanted = {"definition": {}, "from": 5}
    refused = api("POST", "/v1/backtests", key=key, json=wanted)
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, "from")
    definition = {
        "key": "w",
        "name": "W",
        "status": "PAUSED",
        "trigger": {"type": "EVENT", "config": {"eventType": "contact.created"}},
        "actions": [{"type": "CREATE_NOTIFICATION", "config": {"title": "x"}}],
    }
    assert api("POST", "/v1/automations", key=key, json=definition).status_code == 201
    refused = api("POST", "/v1/automations/w/run", key=key)
    assert refused.status_code == 409
    marked = api("POST", "/v1/flags", key=key, content=b"\xef\xbb\xbf{}", headers=JSON)
    for each in (refused, marked):
        assert not re.search("knockon|--|utf-8-sig|the file", each.json()["message"])


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_what_all_answers_have_keeps_browsers_out(api: Api) -> None:
    for path in ("/healthz", "/docs", "/v1/flags", "/nowhere"):
        headers = api("GET", path, headers={"Origin": "https://evil.example"}).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert not [name for name in headers if name.startswith("access-control-")]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_page_shows_every_route_without_a_script(api: Api) -> None:
    shown = api("GET", "/docs")
    assert shown.headers["Content-Type"].startswith("text/html")
    assert "<script" not in shown.text
    for path in api("GET", "/openapi.json").json()["paths"]:
        assert f" {path}</code>" in shown.text


@pytest.mark.parametrize(
    ("method", "path", "status", "field"),
    [
        ("POST", "/v1/flags", 403, None),
        ("PATCH", "/v1/flags", 405, None),
        ("POST", "/v1/nowhere", 404, None),
        ("POST", "/v1/bulk?dry=1", 403, None),
        ("POST", "/v1/runs/x/cancel?force=true", 422, "force"),
        ("GET", "/v1/runs?stauts=FAILED", 422, "stauts"),
        ("GET", "/v1/runs?status=FAILED&status=SUCCEEDED", 422, "status"),
        ("GET", "/v1/runs?=1", 422, "query"),
        ("GET", "/v1/events?from=1767225600", 422, "from"),
        ("GET", "/v1/runs?to=1767225600", 422, "to"),
        *(("GET", f"/v1/runs?limit={bad}", 422, "limit") for bad in ("1_0", "1.0", "%205", "%2B5", "-1", "")),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_what_needs_no_body_is_refused_before_it(
    api: Api, method: str, path: str, status: int, field: str | None
) -> None:
    key = api.key(Scope.RUNS_READ) if status == 403 else api.key()
    headers = {"Content-Type": "text/plain"}
    refused = api(method, path, key=key, headers=headers, content=b"{" if method != "GET" else None)
    assert (refused.status_code, refused.json()["details"].get("field")) == (status, field), refused.text


def test_each_door_asks_what_the_document_says(api: Api) -> None:
    for path, operations in api("GET", "/openapi.json").json()["paths"].items():
        for method, operation in operations.items():
            filled = re.sub(r"{[a-z_]+}", "x", path)
            door = Doors(ROUTERS).find({"type": "http", "method": method.upper(), "path": filled})
            assert door is not None
            scopes = {scope for each in operation.get("security", ()) for scope in each["key"]}
            assert set(door.scopes) == scopes, path
            asked = {each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"}
            assert door.parameters == asked, path


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_cursor_is_of_one_list(api: Api) -> None:
    key = api.key()
    for name in "ab":
        api("POST", "/v1/flags", key=key, json={"name": name, "state": "on"})
    cursor = api("GET", "/v1/flags?limit=1", key=key).json()["next"]
    assert [each["name"] for each in api("GET", f"/v1/flags?cursor={cursor}", key=key).json()["items"]] == [
        "b"
    ]
    for path in ("runs", "secrets", "members", "logs", "events", "automations", "bulk", "audit", "api-keys"):
        refused = api("GET", f"/v1/{path}?cursor={cursor}", key=key)
        assert (refused.status_code, refused.json()["details"]["field"]) == (422, "cursor"), path


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_path_says_what_it_takes(api: Api) -> None:
    key = api.key()
    refused = api("PUT", "/v1/members", key=key)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD, POST, OPTIONS")
    head = api("HEAD", "/v1/events/1-1/explain", key=key)
    assert (head.status_code, head.content) == (404, b"")
    assert api("HEAD", "/v1/backtests", key=key).status_code == 405
    assert api("OPTIONS", "/v1/nowhere").status_code == 404
    assert api("GET", "/v1/nowhere", key=key).status_code == 404
