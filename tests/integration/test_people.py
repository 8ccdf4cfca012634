"""Workspaces, members and keys exist once; notices reach those whom they concern, and nobody else."""

from datetime import UTC, datetime

import pytest
from sqlalchemy.exc import IntegrityError

from shared.db.api_keys import list_api_keys, revoke_api_key
from shared.db.inbox import InboxQuery, list_notices
from shared.db.people import (
    ADMIN_ROLES,
    ApiKeyRow,
    Member,
    Notice,
    insert_api_key,
    insert_member,
    insert_notices,
    insert_workspace,
    workspace_name,
)
from shared.model.roles import Role
from tests.rooms import Room

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 3, 1, 13, tzinfo=UTC)


def member(room: Room, id_: str, role: str = "owner", workspace_id: str = "w1") -> bool:
    person = Member(id_, workspace_id, f"{id_}@example.test", id_, Role(role))
    return room.database.transact(lambda conn: insert_member(conn, person, now=NOW))


def key(id_: str, hashed: str) -> ApiKeyRow:
    return ApiKeyRow(id_, "w1", "CI", hashed, "abcd", ("runs:read", "runs:write"))


def test_a_workspace_is_made_once_and_keeps_its_name(room: Room) -> None:
    with room.database.begin() as conn:
        assert workspace_name(conn, "w1") is None
        assert insert_workspace(conn, "w1", "One", now=NOW)
        assert not insert_workspace(conn, "w1", "Two", now=NOW)
        assert workspace_name(conn, "w1") == "One"


def test_an_address_is_one_member_of_a_workspace(room: Room) -> None:
    assert member(room, "m1")
    again = Member("m2", "w1", "m1@example.test", "M", Role.VIEWER)
    elsewhere = Member("m3", "w2", "m1@example.test", "M", Role.VIEWER)
    with room.database.begin() as conn:
        assert not insert_member(conn, again, now=NOW)
        assert insert_member(conn, elsewhere, now=NOW)


@pytest.mark.parametrize(
    ("roles", "told"), [(ADMIN_ROLES, ["m1", "m2"]), (("viewer",), ["m4"]), (("operator",), [])]
)
def test_a_notice_reaches_every_member_with_its_role_once(
    room: Room, roles: tuple[str, ...], told: list[str]
) -> None:
    for id_, role in (("m1", "owner"), ("m2", "admin"), ("m3", "author"), ("m4", "viewer")):
        member(room, id_, role)
    member(room, "m5", "owner", "w2")
    notice = Notice("w1", roles, "Title", "Body — ü", "automation_run", "r1")
    with room.database.begin() as conn:
        insert_notices(conn, [notice], now=NOW)
        insert_notices(conn, [], now=NOW)
    rows = room.all("SELECT * FROM notifications ORDER BY member_id")
    assert [row.member_id for row in rows] == told
    assert all((row.title, row.body, row.read_at) == ("Title", "Body — ü", None) for row in rows)


def test_notices_are_read_newest_first_and_by_workspace(room: Room) -> None:
    member(room, "m1")
    member(room, "m2", workspace_id="w2")
    with room.database.begin() as conn:
        for workspace_id, title in (("w1", "first"), ("w2", "other"), ("w1", "second"), ("w1", "third")):
            notice = Notice(workspace_id, ("owner",), title, "", "automation_run", "r1")
            insert_notices(conn, [notice], now=NOW)
        assert [item.title for item in list_notices(conn, InboxQuery("w1", 2))] == ["third", "second"]
        assert [item.created_at for item in list_notices(conn, InboxQuery("w2", 9))] == [NOW]


def test_a_key_is_stored_by_its_hash_and_once(room: Room) -> None:
    with room.database.begin() as conn:
        insert_api_key(conn, key("k1", "h1"), now=NOW)
        [found] = list_api_keys(conn, "w1")
    assert (found.id, found.last4, found.scopes, found.revoked_at) == (
        "k1",
        "abcd",
        ("runs:read", "runs:write"),
        None,
    )
    with pytest.raises(IntegrityError):
        room.database.transact(lambda conn: insert_api_key(conn, key("k2", "h1"), now=NOW))


def test_a_key_ends_once_and_only_in_its_workspace(room: Room) -> None:
    with room.database.begin() as conn:
        insert_api_key(conn, key("k1", "h1"), now=NOW)
        assert not revoke_api_key(conn, "w2", "k1", now=NOW)
        assert revoke_api_key(conn, "w1", "k1", now=NOW)
        assert revoke_api_key(conn, "w1", "k1", now=LATER)
        assert [found.revoked_at for found in list_api_keys(conn, "w1")] == [NOW]
