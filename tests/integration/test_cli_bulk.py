"""The command does something to many runs: it counts, asks, shows how far it is, and can be left alone."""

from pathlib import Path
from typing import Any

import pytest

from shared.services.backends import Backends
from tests.bulk import (
    Ended,
    add_ended,
    count_runs,
    do_all,
    do_batch,
    fingerprint_of,
    make_automation,
    working,
)
from tests.commanding import Knockon, document
from tests.terminal import opened_terminal
from timers.bulk import BATCH

MANY = 10_000


@pytest.fixture
def automation_id(backends: Backends) -> str:
    return make_automation(backends)


@pytest.fixture
def servers(database_url: str, redis_url: str) -> dict[str, str]:
    return {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "KNOCKON_WORKSPACE": "w1"}


def operations(knockon: Knockon) -> list[Any]:
    found: list[Any] = document(knockon("bulk", "list", "-o", "json"))
    return found


def test_ten_thousand_dead_letters_are_replayed_by_one_command_that_shows_progress(
    knockon: Knockon, backends: Backends, automation_id: str, servers: dict[str, str], tmp_path: Path
) -> None:
    add_ended(backends, automation_id, MANY)
    with opened_terminal(tmp_path, servers, "dead", "replay", "--all") as terminal:
        terminal.await_text("10,000 runs that are DEAD_LETTER will be replayed from the action that failed")
        terminal.await_text("Go on? [y/N]")
        terminal.type("y\n")
        terminal.await_text("no timers process is up")
        terminal.await_text(f"0/{MANY}")
        (operation,) = operations(knockon)
        do_batch(backends, operation["id"])
        terminal.await_text(f"{BATCH}/{MANY}")
        do_all(backends)
        assert terminal.wait() == 0
        assert "10,000 replayed from the action that failed" in terminal.text
    assert count_runs(backends, status="PENDING") == MANY


def test_a_refusal_drops_the_preview(
    knockon: Knockon, backends: Backends, automation_id: str, servers: dict[str, str], tmp_path: Path
) -> None:
    add_ended(backends, automation_id, 1)
    with opened_terminal(tmp_path, servers, "dead", "replay", "--all") as terminal:
        terminal.await_text("[y/N]")
        terminal.type("n\n")
        assert terminal.wait() == 0
        assert "nothing was done" in terminal.text
    assert [each["status"] for each in operations(knockon)] == ["CANCELLED"]


def test_an_interrupt_leaves_it_going_and_says_how_to_end_it(
    knockon: Knockon, backends: Backends, automation_id: str, servers: dict[str, str], tmp_path: Path
) -> None:
    add_ended(backends, automation_id, 2)
    with opened_terminal(tmp_path, servers, "dead", "replay", "--all", "--yes") as terminal:
        terminal.await_text("0/2")
        terminal.interrupt()
        assert terminal.wait() == 130
        (operation,) = operations(knockon)
        assert f"knockon bulk cancel {operation['id']} --workspace w1" in terminal.text
    assert operation["status"] == "CONFIRMED"
    shown = knockon("bulk", "cancel", operation["id"]).stdout
    assert shown == "cancelled; 0 of 2 were done\n"


def test_a_filter_narrows_what_is_replayed(knockon: Knockon, backends: Backends, automation_id: str) -> None:
    (hook,) = add_ended(backends, automation_id, 1)
    add_ended(backends, automation_id, 2, Ended(code="MAIL_REFUSED"))
    add_ended(backends, automation_id, 4, Ended("FAILED"))
    mark = fingerprint_of(backends, hook)
    with working(backends):
        said = knockon("runs", "replay", "--fingerprint", str(mark), "--yes").stdout
        assert said == "1 replayed from the action that failed\n"
        given = ("--status", "DEAD_LETTER", "--code", "MAIL_REFUSED", "--automation", "welcome")
        assert knockon("runs", "replay", *given, "--since", "9999d", "--yes").stdout.startswith("2 replayed")
        said = knockon("runs", "replay", "--status", "failed", "--from-start", "-y").stdout
        assert said.startswith("4 replayed from the start")
    assert knockon("runs", "replay", "--status", "failed").stdout == "there is nothing to replay\n"


def test_what_is_skipped_is_told(knockon: Knockon, backends: Backends, automation_id: str) -> None:
    add_ended(backends, automation_id, 2)
    add_ended(backends, make_automation(backends, "other"), 1)
    knockon("apply", "-f", "-", "--prune", stdin=OTHER_ALONE)
    with working(backends):
        said = knockon("dead", "replay", "--all", "--yes")
    assert said.stdout == "1 replayed from the action that failed\n"
    assert "2 skipped: of a deleted automation\n" in said.stderr


OTHER_ALONE = """
key: other
name: Automation other
trigger: {type: EVENT, config: {eventType: order.placed}}
actions: [{type: EMIT_EVENT, config: {event_type: order.seen}}]
"""


def test_without_a_person_it_needs_a_yes(knockon: Knockon, backends: Backends, automation_id: str) -> None:
    add_ended(backends, automation_id, 3)
    for output in ("table", "json"):
        said = knockon("dead", "replay", "--all", "-o", output, code=2).stderr
        assert "3 runs that are DEAD_LETTER will be replayed" in said
        assert "--yes" in said
    assert count_runs(backends, status="DEAD_LETTER") == 3
    begun = document(knockon("dead", "replay", "--all", "-o", "json", "--yes"))
    assert (begun["status"], begun["total"], begun["created_by"][:9]) == ("CONFIRMED", 3, "USER cli:")
    assert "CONFIRMED" in knockon("bulk", "list").stdout
    do_all(backends)
    shown = knockon("bulk", "show", begun["id"]).stdout
    assert "status     DONE" in shown
    assert document(knockon("bulk", "show", begun["id"], "-o", "json"))["done"] == 3
    assert "DONE" in knockon("bulk", "cancel", begun["id"], code=1).stderr


def test_waiting_runs_are_cancelled_by_filter(
    knockon: Knockon, backends: Backends, automation_id: str
) -> None:
    add_ended(backends, automation_id, 3, Ended("PENDING"))
    with working(backends):
        assert knockon("runs", "cancel", "--automation", "welcome", "--yes").stdout == "3 cancelled\n"
    assert knockon("runs", "cancel", "--all").stdout == "there is nothing to cancel\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs", "replay"),
        ("runs", "replay", "r1", "--status", "failed"),
        ("runs", "replay", "--status", "pending"),
        ("runs", "replay", "--status", "failed", "--fingerprint", "f"),
        ("runs", "replay", "--code", ""),
        ("runs", "cancel"),
        ("runs", "cancel", "r1", "--all"),
        ("runs", "cancel", "--force", "--all"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_a_matter_of_usage(
    knockon: Knockon, backends: Backends, arguments: tuple[str, ...]
) -> None:
    knockon(*arguments, code=2)
    assert operations(knockon) == []


def test_dead_letters_are_shown_in_groups(knockon: Knockon, backends: Backends, automation_id: str) -> None:
    ids = add_ended(backends, automation_id, 3)
    (group,) = document(knockon("dead", "groups", "-o", "json"))
    assert (group["count"], group["run_id"], group["automation_ids"]) == (3, ids[-1], [automation_id])
    line = knockon("dead", "groups").stdout.splitlines()[1]
    assert line.split()[:3] == [group["fingerprint"], "3", "WEBHOOK_HTTP_RETRIABLE"]
    assert "Automation welcome" in line
