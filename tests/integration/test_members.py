"""Members: added, moved and removed, and never without an owner."""

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy.exc import DBAPIError

from shared.db.audit_reads import AuditQuery, list_audit
from shared.db.members import list_members
from shared.errors import ConfigError, Conflict, NotFound
from shared.model.mail_addresses import read_address
from shared.model.roles import Role
from shared.services.backends import Backends, Caller
from shared.services.members import NewMember, add_member, change_role, remove_member
from tests.people import CALLER, opened_backends

ANNA, BERT = "anna@example.org", "bert@example.org"


@pytest.fixture
def opened(database_url: str, redis_url: str) -> Iterator[Backends]:
    with opened_backends(database_url, redis_url) as backends:
        yield backends


def add(opened: Backends, email: str, role: Role = Role.OWNER, name: str | None = None) -> None:
    add_member(opened.database, opened.clock, CALLER, NewMember(email, role, name))


def change(opened: Backends, email: str, role: Role) -> Role:
    return change_role(opened.database, opened.clock, CALLER, (email, role)).before


def remove(opened: Backends, email: str) -> None:
    remove_member(opened.database, opened.clock, CALLER, email)


def roles(opened: Backends) -> dict[str, Role]:
    with opened.database.read() as conn:
        return {member.email: member.role for member in list_members(conn, "w1")}


def test_members_come_change_and_go_with_an_entry_for_each(opened: Backends) -> None:
    add(opened, ANNA)
    add(opened, "  Bert@Example.ORG ", Role.VIEWER, "Bert")
    assert roles(opened) == {ANNA: Role.OWNER, BERT: Role.VIEWER}
    assert change(opened, BERT.upper(), Role.OPERATOR) is Role.VIEWER
    assert change(opened, BERT, Role.OPERATOR) is Role.OPERATOR
    remove(opened, BERT)
    assert roles(opened) == {ANNA: Role.OWNER}
    with opened.database.read() as conn:
        entries = list_audit(conn, AuditQuery("w1", 10, resource_type="member"))[::-1]
    bert = {"email": BERT, "name": "Bert", "role": "viewer"}
    assert [(entry.action, entry.detail) for entry in entries] == [
        ("member.added", {"before": None, "after": {"email": ANNA, "name": ANNA, "role": "owner"}}),
        ("member.added", {"before": None, "after": bert}),
        ("member.role_changed", {"before": bert, "after": {**bert, "role": "operator"}}),
        ("member.removed", {"before": {**bert, "role": "operator"}, "after": None}),
    ]


def test_the_last_owner_is_neither_removed_nor_demoted(opened: Backends) -> None:
    add(opened, ANNA)
    add(opened, BERT, Role.ADMIN)
    for attempt in (lambda: remove(opened, ANNA), lambda: change(opened, ANNA, Role.ADMIN)):
        with pytest.raises(Conflict, match="last owner"):
            attempt()
    change(opened, BERT, Role.OWNER)
    remove(opened, ANNA)
    assert roles(opened) == {BERT: Role.OWNER}


def test_of_two_owners_who_leave_at_once_one_stays(opened: Backends) -> None:
    add(opened, ANNA)
    add(opened, BERT)
    together = threading.Barrier(2)
    refused: list[str] = []

    def leave(email: str) -> None:
        together.wait(10)
        try:
            remove(opened, email)
        except (Conflict, DBAPIError) as error:
            refused.append(type(error).__name__)

    threads = [threading.Thread(target=leave, args=(email,)) for email in (ANNA, BERT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert refused == ["Conflict"]
    assert len(roles(opened)) == 1


def test_somebody_who_is_there_is_not_added_again(opened: Backends) -> None:
    add(opened, ANNA)
    with pytest.raises(Conflict, match="already"):
        add(opened, ANNA.upper(), Role.VIEWER)
    assert roles(opened) == {ANNA: Role.OWNER}


def test_what_is_not_there_is_told(opened: Backends) -> None:
    with pytest.raises(NotFound, match="no member"):
        remove(opened, ANNA)
    with pytest.raises(NotFound, match="no workspace"):
        remove_member(opened.database, opened.clock, Caller("nowhere", "USER cli:anna"), ANNA)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "anna",
        "@b.c",
        "anna@",
        "a b@c.d",
        "a@b@c",
        "a@b..c",
        "a@.c",
        "a,b@c.d",
        "a\n@b.c",
        f"{'a' * 65}@b.c",
        f"a@{'b.' * 130}c",
    ],
)
def test_what_is_no_mail_address_is_refused(opened: Backends, text: str) -> None:
    with pytest.raises(ConfigError, match="mail address"):
        add(opened, text)
    assert roles(opened) == {}


@pytest.mark.parametrize(
    "text", ["anna@example.org", "a.b+c@d-e.example", "root@localhost", "zoë@bücher.example"]
)
def test_mail_addresses_are_taken(text: str) -> None:
    assert read_address(text.title()) == text
