"""A member's inbox: what it lists, and the marks of what was read, by the services and by the command."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import orjson
import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from knockon.cli.app import make_app
from shared.db.inbox import InboxItem
from shared.db.people import Notice, insert_notices
from shared.errors import NotFound
from shared.model.roles import Role
from shared.services.backends import Backends, Caller
from shared.services.inbox import BATCH, Inbox, Wanted, list_inbox, mark_all, mark_notices
from shared.services.members import NewMember, add_member, remove_member
from shared.time.clock import ManualClock
from tests.people import CALLER, NOW, audit_actions, opened_backends

ANNA, BERT, VERA = "anna@h.test", "bert@h.test", "vera@h.test"
OURS = Inbox("w1")
SECRET = "PW-7Q"

Knockon = Callable[..., str]


@pytest.fixture
def opened(database_url: str, redis_url: str) -> Iterator[Backends]:
    """Open the servers; w1 has two owners and a viewer, w2 has one owner of the same address."""
    with opened_backends(database_url, redis_url) as backends:
        for email, role, workspace in (
            (ANNA, Role.OWNER, "w1"),
            (BERT, Role.OWNER, "w1"),
            (VERA, Role.VIEWER, "w1"),
            (ANNA, Role.OWNER, "w2"),
        ):
            caller = Caller(workspace, CALLER.actor)
            add_member(backends.database, backends.clock, caller, NewMember(email, role))
        yield backends


@pytest.fixture
def knockon(opened: Backends, database_url: str) -> Knockon:
    environment = {"DATABASE_URL": database_url, "KNOCKON_WORKSPACE": "w1"}

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(make_app(), ["notices", *arguments], env=environment)
        assert result.exit_code == code, (result.output, result.exception)
        return result.output

    return run


def tell(opened: Backends, title: str, *roles: str, **given: str) -> None:
    """Put a notice into the inboxes of those who have one of the roles, owners if none is named."""
    notice = Notice(
        given.get("workspace", "w1"),
        roles or ("owner",),
        title,
        given.get("body", ""),
        given.get("about", "automation_run"),
        "r1",
    )
    with opened.database.begin() as conn:
        insert_notices(conn, [notice], now=opened.clock.now())


def listed(opened: Backends, inbox: Inbox = OURS, wanted: Wanted = Wanted.ALL) -> list[InboxItem]:
    return list_inbox(opened.database, inbox, wanted, most=100)


def titles(opened: Backends, inbox: Inbox = OURS, wanted: Wanted = Wanted.ALL) -> list[str]:
    return [item.title for item in listed(opened, inbox, wanted)]


def document(knockon: Knockon, *arguments: str) -> Any:
    return orjson.loads(knockon(*arguments, "-o", "json"))


def test_an_inbox_lists_what_its_member_was_told_newest_first(opened: Backends) -> None:
    tell(opened, "first")
    tell(opened, "second", "viewer")
    tell(opened, "third", "owner", "viewer")
    tell(opened, "theirs", workspace="w2")
    assert titles(opened, Inbox("w1", ANNA)) == ["third", "first"]
    assert titles(opened, Inbox("w1", VERA.upper())) == ["third", "second"]
    assert titles(opened) == ["third"] * 3 + ["second"] + ["first"] * 2
    assert [item.member for item in listed(opened)][3:] == [VERA, *reversed([ANNA, BERT])]
    assert titles(opened, Inbox("w2")) == ["theirs"]
    newest = list_inbox(opened.database, OURS, Wanted.ALL, most=1)
    assert [(item.title, item.created_at, item.read_at) for item in newest] == [("third", NOW, None)]


def test_a_mark_stays_as_it_was_made_first_and_is_no_entry_of_the_audit(opened: Backends) -> None:
    clock = opened.clock
    assert isinstance(clock, ManualClock)
    tell(opened, "first")
    tell(opened, "second")
    audited = audit_actions(opened)
    (newest, oldest) = [item.id for item in listed(opened, Inbox("w1", ANNA))]
    assert mark_notices(opened.database, clock, OURS, [oldest]) == 1
    clock.advance(timedelta(hours=1))
    assert mark_notices(opened.database, clock, OURS, [oldest, newest, newest]) == 1
    assert mark_notices(opened.database, clock, OURS, [oldest, newest]) == 0
    marks = {item.id: item.read_at for item in listed(opened, Inbox("w1", ANNA))}
    assert marks == {oldest: NOW, newest: NOW + timedelta(hours=1)}
    assert titles(opened, OURS, Wanted.UNREAD) == ["second", "first"]
    assert titles(opened, Inbox("w1", ANNA), Wanted.UNREAD) == []
    assert audit_actions(opened) == audited


def test_all_of_an_inbox_is_marked_and_nothing_of_another(opened: Backends) -> None:
    for number in range(3):
        tell(opened, str(number))
    tell(opened, "theirs", workspace="w2")
    assert mark_all(opened.database, opened.clock, Inbox("w1", ANNA)) == 3
    assert mark_all(opened.database, opened.clock, Inbox("w1", ANNA)) == 0
    assert titles(opened, Inbox("w1", BERT), Wanted.UNREAD) == ["2", "1", "0"]
    assert mark_all(opened.database, opened.clock, OURS) == 3
    assert titles(opened, OURS, Wanted.UNREAD) == []
    assert titles(opened, Inbox("w2"), Wanted.UNREAD) == ["theirs"]


def test_more_than_a_transaction_takes_is_marked_too(opened: Backends) -> None:
    notice = Notice("w1", ("viewer",), "one of many", "", "automation_run", "r1")
    with opened.database.begin() as conn:
        insert_notices(conn, [notice] * (BATCH + 1), now=NOW)
    assert mark_all(opened.database, opened.clock, Inbox("w1", VERA)) == BATCH + 1
    assert titles(opened, OURS, Wanted.UNREAD) == []


@pytest.mark.parametrize("inbox", [Inbox("w1", VERA), Inbox("w2"), Inbox("w2", ANNA)])
def test_a_notice_of_another_inbox_is_not_there_and_then_none_is_marked(
    opened: Backends, inbox: Inbox
) -> None:
    tell(opened, "ours")
    tell(opened, "own", "viewer")
    tell(opened, "own", workspace="w2")
    ids = [listed(opened, inbox)[0].id, listed(opened, Inbox("w1", ANNA))[0].id]
    with pytest.raises(NotFound, match=ids[1]):
        mark_notices(opened.database, opened.clock, inbox, ids)
    assert len(titles(opened, OURS, Wanted.UNREAD)) == 3
    assert titles(opened, Inbox("w2"), Wanted.UNREAD) == ["own"]


def test_what_somebody_was_told_who_left_stands_in_no_inbox(opened: Backends) -> None:
    tell(opened, "first")
    (notice,) = listed(opened, Inbox("w1", BERT))
    remove_member(opened.database, opened.clock, CALLER, BERT)
    assert [item.member for item in listed(opened)] == [ANNA]
    with pytest.raises(NotFound):
        mark_notices(opened.database, opened.clock, OURS, [notice.id])
    assert mark_all(opened.database, opened.clock, OURS) == 1


def test_the_command_lists_and_marks(opened: Backends, knockon: Knockon) -> None:
    tell(opened, "Paid", "viewer", body="7 euros")
    tell(opened, "Broken", "viewer", about="alert_channel")
    broken, paid = document(knockon, "list")
    assert (paid["member"], paid["title"], paid["body"], paid["run_id"]) == (VERA, "Paid", "7 euros", "r1")
    assert (broken["run_id"], broken["resource_type"], broken["read_at"]) == (None, "alert_channel", None)
    (row,) = [line for line in knockon("list").splitlines() if "Paid" in line]
    assert [part.strip() for part in row.split("  ") if part] == [
        paid["id"],
        "2026-03-01 12:00:00.000Z",
        VERA,
        "Paid",
        "7 euros",
        "r1",
        "no",
    ]
    assert knockon("read", paid["id"]) == "1 marked as read\n"
    assert knockon("read", paid["id"]) == "there is nothing to mark\n"
    assert [each["title"] for each in document(knockon, "list", "--unread")] == ["Broken"]
    assert [each["title"] for each in document(knockon, "list", "-n", "1")] == ["Broken"]
    assert document(knockon, "read", "--all", "--member", VERA) == {"marked": 1}
    assert document(knockon, "list", "--unread") == []
    assert document(knockon, "list", "--member", ANNA) == []


def test_the_command_refuses_what_it_does_not_know(opened: Backends, knockon: Knockon) -> None:
    nobody = "there is no member 'nobody@h.test' in workspace 'w1'"
    for command in (("list",), ("read", "--all"), ("read", "n1")):
        assert nobody in knockon(*command, "--member", "nobody@h.test", code=1)
        assert "there is no workspace 'w9'" in knockon(*command, "--workspace", "w9", code=1)
    assert "there is no notice 'n1' in the inbox of workspace 'w1'" in knockon("read", "n1", code=1)
    knockon("read", code=2)
    knockon("read", "n1", "--all", code=2)


def test_what_a_notice_tells_is_shown_without_secrets(opened: Backends, knockon: Knockon) -> None:
    body = f'at http://b:{SECRET}@h.test/?token={SECRET}, {{"password": "{SECRET}"}}'
    tell(opened, f"Bearer {SECRET}-0123456789 for Ada", body=body)
    with opened.database.read() as conn:
        assert SECRET in conn.execute(text("SELECT body FROM notifications LIMIT 1")).scalar_one()
    for form in ("table", "json"):
        shown = knockon("list", "-o", form)
        assert SECRET not in shown
        assert "for Ada" in shown
        assert "http://***@h.test/" in shown


def test_of_a_long_text_a_table_shows_the_beginning(opened: Backends, knockon: Knockon) -> None:
    tell(opened, "Long", body="é" * 5_000)
    assert "é" * 120 + "..." in knockon("list")
    assert {each["body"] for each in document(knockon, "list")} == {"é" * 5_000}
