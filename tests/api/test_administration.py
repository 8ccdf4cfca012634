"""What administrators keep over HTTP: members, keys, secrets, flags, settings, notices, the audit."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.db.api_keys import list_api_keys
from shared.db.flags import list_flags
from shared.db.members import list_members
from shared.db.people import Notice, insert_notices
from shared.db.secrets import list_secrets
from shared.secrets import key_file
from shared.services.workspaces import Scope
from tests.calling import Api
from tests.waiting import poll


@pytest.fixture
def key(api: Api) -> str:
    return api.key(Scope.ADMIN)


def pages(api: Api, path: str, key: str, limit: int) -> list[Any]:
    """Read a list to its end, page by page."""
    items, cursor = [], ""
    while True:
        mark = "&" if "?" in path else "?"
        page = api("GET", f"{path}{mark}limit={limit}{cursor}", key=key).json()
        assert len(page["items"]) <= limit
        items += page["items"]
        if page["next"] is None:
            return items
        assert len(page["items"]) == limit
        cursor = f"&cursor={page['next']}"


def test_a_secret_is_refused_while_the_key_of_the_others_is_lost(api: Api, key: str) -> None:
    secret = {"name": "SHOP_TOKEN", "value": "s3cret"}
    assert api("POST", "/v1/secrets", key=key, json=secret).status_code == 201
    key_file(api.settings).unlink()
    refused = api("POST", "/v1/secrets", key=key, json={**secret, "name": "OTHER"})
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert "knockon" not in refused.json()["message"]
    assert not key_file(api.settings).exists()


def test_members_come_get_other_roles_and_go(api: Api, key: str) -> None:
    added = api("POST", "/v1/members", key=key, json={"email": "Bob@example.org", "role": "viewer"})
    assert added.status_code == 201
    bob = added.json()
    assert (bob["email"], bob["name"], bob["role"]) == ("bob@example.org", "bob@example.org", "viewer")
    again = api("POST", "/v1/members", key=key, json={"email": "bob@example.org", "role": "viewer"})
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    bad = api("POST", "/v1/members", key=key, json={"email": "nobody", "role": "viewer"})
    assert (bad.status_code, bad.json()["details"]["field"]) == (422, "email")
    changed = api("PATCH", f"/v1/members/{bob['id']}", key=key, json={"role": "admin"})
    assert changed.json() == {**bob, "role": "admin"}
    assert [each["id"] for each in pages(api, "/v1/members", key, 1)][1:] == [bob["id"]]
    owner = api("GET", "/v1/members", key=key).json()["items"][0]
    assert api("DELETE", f"/v1/members/{owner['id']}", key=key).status_code == 409
    assert api("DELETE", f"/v1/members/{bob['id']}", key=key).status_code == 204
    assert api("GET", f"/v1/members/{bob['id']}", key=key).status_code == 404


def test_a_key_is_shown_once_used_and_revoked_at_once(api: Api, key: str) -> None:
    wanted = {"name": "the shop", "scopes": ["admin", "runs:read", "admin"]}
    made = api("POST", "/v1/api-keys", key=key, json=wanted).json()
    path = f"/v1/api-keys/{made['id']}"
    before = api("GET", path, key=key).json()
    assert (before["last_used_at"], before["scopes"]) == (None, ["admin", "runs:read"])
    assert before["last4"] == made["key"][-4:]
    assert api("GET", "/v1/flags", key=made["key"]).status_code == 200
    used = poll(lambda: api("GET", path, key=key).json()["last_used_at"])
    assert api("GET", "/v1/flags", key=made["key"]).status_code == 200
    assert api("GET", path, key=key).json()["last_used_at"] == used is not None
    assert api("DELETE", path, key=key).status_code == 204
    assert api("GET", "/v1/flags", key=made["key"]).status_code == 401
    assert api("GET", path, key=key).json()["revoked_at"] is not None
    assert all(made["key"] not in api("GET", each, key=key).text for each in ("/v1/api-keys", "/v1/audit"))


def test_a_secret_goes_in_and_never_comes_out(api: Api, key: str) -> None:
    value = "very-secret-value"
    put = {"name": "SHOP_TOKEN", "value": value}
    assert [api("POST", "/v1/secrets", key=key, json=put).status_code for _ in "12"] == [201, 200]
    bad = api("POST", "/v1/secrets", key=key, json={"name": "1", "value": value})
    assert (bad.status_code, bad.json()["details"]["field"]) == (422, "name")
    shown = [bad.text, *(api("GET", path, key=key).text for path in ("/v1/secrets", "/v1/audit"))]
    assert all(value not in text for text in shown)
    assert [each["name"] for each in pages(api, "/v1/secrets", key, 1)] == ["SHOP_TOKEN"]
    assert api("DELETE", "/v1/secrets/SHOP_TOKEN", key=key).status_code == 204
    assert api("DELETE", "/v1/secrets/SHOP_TOKEN", key=key).status_code == 404


def test_flags_are_set_and_listed_by_name(api: Api, key: str) -> None:
    for name, state in (("b", "on"), ("a", "on"), ("c", "on"), ("b", "off")):
        assert api("POST", "/v1/flags", key=key, json={"name": name, "state": state}).status_code == 200
    flags = [(each["name"], each["state"]) for each in pages(api, "/v1/flags", key, 2)]
    assert flags == [("a", "on"), ("b", "off"), ("c", "on")]


def test_settings_are_changed_only_in_the_state_that_was_read(api: Api, key: str) -> None:
    read = api("GET", "/v1/settings", key=key)
    tag = {"If-Match": read.headers["ETag"]}
    changed = api("PATCH", "/v1/settings", key=key, json={"name": "The shop"}, headers=tag)
    assert changed.json() == {**read.json(), "name": "The shop"}
    late = api("PATCH", "/v1/settings", key=key, json={"name": "Mine"}, headers=tag)
    assert (late.status_code, late.json()["error"]) == (412, "precondition_failed")
    assert late.json()["details"]["etag"] == changed.headers["ETag"]
    assert api("PATCH", "/v1/settings", key=key, json={"name": " "}).json()["details"]["field"] == "name"
    assert api("GET", "/v1/settings", key=key).json()["name"] == "The shop"


def test_notices_are_read_by_their_members(api: Api, key: str) -> None:
    now = api.backends.clock.now()
    with api.backends.database.begin() as conn:
        notices = [Notice("w1", ("owner",), f"title {number}", "b", "run", "r") for number in range(5)]
        insert_notices(conn, notices, now=now)
    found = pages(api, "/v1/notifications", key, 2)
    assert [each["title"] for each in found] == [f"title {number}" for number in (4, 3, 2, 1, 0)]
    path = f"/v1/notifications/{found[0]['id']}/read"
    first, again = (api("POST", path, key=key).json() for _ in "12")
    assert first == again == {**found[0], "read_at": first["read_at"]}
    assert first["read_at"] is not None
    member = found[0]["member_id"]
    assert len(api("GET", f"/v1/notifications?member={member}", key=key).json()["items"]) == 5
    assert api("GET", "/v1/notifications?member=nobody", key=key).json()["items"] == []


def test_the_audit_names_the_key_that_did_it(api: Api, key: str) -> None:
    for number in range(5):
        api("POST", "/v1/flags", key=key, json={"name": f"flag{number}", "state": "on"})
    found = pages(api, "/v1/audit?resource_type=flag&since=2026-01-01T00:00:00Z", key, 2)
    assert [each["resource_id"] for each in found] == [f"flag{number}" for number in (4, 3, 2, 1, 0)]
    assert {each["actor"] for each in found} == {f"KEY a key {key[-4:]}"}
    bad = api("GET", "/v1/audit?since=yesterday", key=key)
    assert (bad.status_code, bad.json()["details"]["field"]) == (422, "since")


@pytest.mark.parametrize("cursor", ["x", "WyJhIl0=", "WzFd", "W10", "bnVsbA"])
def test_a_cursor_that_is_none_is_refused(api: Api, key: str, cursor: str) -> None:
    refused = api("GET", f"/v1/members?cursor={cursor}", key=key)
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, "cursor")


def test_what_is_set_while_others_delete_it_is_answered_with_what_was_set(api: Api, key: str) -> None:
    secret = {"name": "SHOP_TOKEN", "value": "hunter2-hunter2"}

    def send(number: int) -> int:
        if number % 2:
            return api("DELETE", "/v1/secrets/SHOP_TOKEN", key=key).status_code
        return api("POST", "/v1/secrets", key=key, json=secret).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(send, range(60))) <= {200, 201, 204, 404}
    first = api("POST", "/v1/secrets", key=key, json=secret).json()
    again = api("POST", "/v1/secrets", key=key, json=secret).json()
    assert again["created_at"] == first["created_at"] <= first["updated_at"] < again["updated_at"]
    assert again in api("GET", "/v1/secrets", key=key).json()["items"]


def test_what_a_write_answers_is_what_is_read_afterwards(api: Api, key: str) -> None:
    made = api("POST", "/v1/members", key=key, json={"email": "eva@w1.example", "role": "viewer"}).json()
    assert api("GET", f"/v1/members/{made['id']}", key=key).json() == made
    changed = api("PATCH", f"/v1/members/{made['id']}", key=key, json={"role": "admin"}).json()
    assert api("GET", f"/v1/members/{made['id']}", key=key).json() == changed == {**made, "role": "admin"}
    for state in ("on", "on", "off"):
        flag = api("POST", "/v1/flags", key=key, json={"name": "human-lock", "state": state}).json()
        assert api("GET", "/v1/flags", key=key).json()["items"] == [flag]


def test_a_page_reads_no_more_rows_than_it_shows(api: Api, key: str) -> None:
    for number in range(7):
        name = f"n{number}"
        api("POST", "/v1/secrets", key=key, json={"name": name, "value": "hunter2-hunter2"})
        api("POST", "/v1/flags", key=key, json={"name": name, "state": "on"})
        api("POST", "/v1/members", key=key, json={"email": f"{name}@w1.example", "role": "viewer"})
        api("POST", "/v1/api-keys", key=key, json={"name": name, "scopes": ["runs:read"]})
    lists: tuple[Any, ...] = (list_secrets, list_flags, list_members, list_api_keys)
    for read, path in zip(lists, ("secrets", "flags", "members", "api-keys"), strict=True):
        with api.backends.database.read() as conn:
            assert len(read(conn, "w1", most=3)) == 3
        shown = pages(api, f"/v1/{path}", key, 2)
        assert shown == api("GET", f"/v1/{path}?limit=200", key=key).json()["items"]
        assert len(shown) >= 7
