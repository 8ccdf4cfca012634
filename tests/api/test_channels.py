"""Channels over HTTP, with the idle rule of each."""

from typing import Any

import pytest

from shared.db.audit_reads import AuditQuery, list_audit
from shared.db.sql import sql
from shared.services.workspaces import Scope
from tests.calling import Api

PATH = "/v1/audience/channels"
RULE = {"enabled": True, "duration": 600, "action": "follow_up", "message": "Still there?"}
SHOP = {"id": "shop", "name": "The shop", "kind": "whatsapp", "settings": {"idle_rule": RULE}}


@pytest.fixture
def key(api: Api) -> str:
    return api.key(Scope.MESSAGES_READ, Scope.MESSAGES_WRITE)


def patch(api: Api, key: str, body: Any, **headers: str) -> Any:
    return api("PATCH", f"{PATH}/shop", key=key, json=body, headers=headers)


def test_a_channel_is_made_changed_and_deleted(api: Api, key: str) -> None:
    made = api("POST", PATH, key=key, json=SHOP)
    assert (made.status_code, made.headers["Location"]) == (201, f"{PATH}/shop")
    shown = api("GET", f"{PATH}/shop", key=key)
    assert shown.json() == made.json()
    assert {**shown.json(), **SHOP, "enabled": True} == shown.json()
    assert shown.headers["ETag"] == made.headers["ETag"]
    taken = api("POST", PATH, key=key, json=SHOP)
    assert (taken.status_code, taken.json()["details"]) == (409, {"field": "id"})
    changed = patch(api, key, {"enabled": False, "settings": {"idle_rule": None}})
    assert (changed.json()["enabled"], changed.json()["settings"]) == (False, {"idle_rule": None})
    assert patch(api, key, {"name": "Shop", "kind": "sms"}).json()["name"] == "Shop"
    assert patch(api, key, {"name": "x"}, **{"If-Match": made.headers["ETag"]}).status_code == 412
    assert api("DELETE", f"{PATH}/shop", key=key).status_code == 204
    assert api("GET", f"{PATH}/shop", key=key).status_code == 404
    with api.backends.database.read() as conn:
        entries = list_audit(conn, AuditQuery("w1", 10, resource_type="channel"))
    before = {"name": "The shop", "kind": "whatsapp", "enabled": True, "settings": {"idle_rule": RULE}}
    assert [entry.action for entry in entries] == [
        "channel.deleted",
        "channel.updated",
        "channel.updated",
        "channel.created",
    ]
    assert entries[2].detail == {
        "before": before,
        "after": {**before, "enabled": False, "settings": {"idle_rule": None}},
    }


def test_a_rule_that_could_not_be_carried_out_is_refused_with_its_field(api: Api, key: str) -> None:
    assert api("POST", PATH, key=key, json={**SHOP, "settings": {}}).status_code == 201
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"message": " "}, "message"),
        ({"message": None}, "message"),
        ({"duration": 0}, "duration"),
        ({"duration": 86_401}, "duration"),
        ({"duration": True}, "duration"),
        ({"duration": None}, "duration"),
        ({"enabled": 1}, "enabled"),
        ({"action": "explode"}, "action"),
        ({"action": "assign"}, "assign"),
        ({"colour": "red"}, "colour"),
    ]
    for change, field in wrong:
        settings = {"idle_rule": {**RULE, **change}}
        for refused in (
            patch(api, key, {"settings": settings}),
            api("POST", PATH, key=key, json={**SHOP, "id": "other", "settings": settings}),
        ):
            told = (refused.status_code, refused.json()["details"]["field"])
            assert told == (422, f"settings.idle_rule.{field}"), change
    off = {"idle_rule": {"enabled": False}}
    assert patch(api, key, {"settings": off}).json()["settings"] == off
    assert api("GET", PATH, key=key).json()["total"] == 1


def test_channels_are_listed_by_page_and_number(api: Api, key: str) -> None:
    for id_ in ("c", "a", "b"):
        made = api("POST", PATH, key=key, json={"id": id_, "name": id_, "kind": "email"})
        assert made.json()["settings"] == {"idle_rule": None}
    page = api("GET", f"{PATH}?page=2&rows=2", key=key).json()
    assert ([each["id"] for each in page["data"]], page["page"], page["rows"], page["total"]) == (
        ["c"],
        2,
        2,
        3,
    )
    assert [each["id"] for each in api("GET", PATH, key=key).json()["data"]] == ["a", "b", "c"]
    assert api("GET", f"{PATH}?page=9", key=key).json()["data"] == []
    assert api("GET", PATH, key=api.key(workspace="w2")).json()["total"] == 0
    for query in ("page=0", "rows=201", "rows=x", "limit=1"):
        assert api("GET", f"{PATH}?{query}", key=key).status_code == 422
    for number in ("1000001", "999999999999999999", "9" * 5_000):
        told = api("GET", f"{PATH}?page={number}", key=key)
        assert (told.status_code, told.json()["message"]) == (422, "page: must be at most 1000000")
    assert api("GET", f"{PATH}?page={'0' * 20}1", key=key).status_code == 200


@pytest.mark.parametrize("stored", ["5", "[1]", '"x"', "null"])
def test_settings_that_are_no_object_are_shown_as_none_and_mended(api: Api, key: str, stored: str) -> None:
    assert api("POST", PATH, key=key, json=SHOP).status_code == 201
    with api.backends.database.begin() as conn:
        sql(f"UPDATE channels SET settings = '{stored}'").run(conn)
    (listed,) = api("GET", PATH, key=key).json()["data"]
    assert listed["settings"] == api("GET", f"{PATH}/shop", key=key).json()["settings"] == {"idle_rule": None}
    assert patch(api, key, {"settings": {"idle_rule": RULE}}).json()["settings"] == {"idle_rule": RULE}
