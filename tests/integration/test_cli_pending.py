"""What waits before it acts, at the command, and the lines that docs/delayed.md tells to type."""

import shlex
from datetime import timedelta
from pathlib import Path

import pytest

from shared.db.subjects import project_changes
from shared.model.subjects import SubjectWrite
from shared.services.automations import create
from shared.services.backends import Backends
from shared.time.clock import SystemClock, epoch_ms
from tests.commanding import Knockon, document
from tests.pages import ROOT, page
from tests.pending_rows import add_pending
from tests.people import CALLER, definition

LINES = [
    line for block in page("delayed.md").blocks("sh") for line in block.text.splitlines() if line.strip()
]


@pytest.fixture
def waiting(backends: Backends) -> str:
    row = create(backends, CALLER, definition("chase", execution_delay=90))
    with backends.database.begin() as conn:
        for number in range(3):
            add_pending(conn, f"p{number}", row.id)
        add_pending(conn, "late", row.id, status="skipped", skip_reason="expired")
    return row.id


def test_lists_and_one_of_them_bear_the_badge(knockon: Knockon, waiting: str) -> None:
    (row,) = document(knockon("automations", "list", "-o", "json"))
    assert row["runs_after"] == "runs after 90m"
    assert "after 90m" in knockon("automations", "list").stdout
    assert "ACTIVE, runs after 90m\n" in knockon("automations", "show", "chase").stdout
    assert document(knockon("automations", "show", "chase", "-o", "json"))["runs_after"] == "runs after 90m"


def test_apply_tells_how_long_it_waits(knockon: Knockon, backends: Backends) -> None:
    said = knockon("apply", "-f", str(ROOT / "examples" / "delayed.yaml"))
    assert "created    stale-pending  (runs after 4h)\n" in said.stdout
    assert "created    sla-risk  (runs after 2d)\n" in said.stdout
    assert "do not fire" not in said.stdout + said.stderr


def test_what_waits_is_listed_with_filters_shown_and_cancelled_once(knockon: Knockon, waiting: str) -> None:
    rows = document(knockon("pending", "list", "--status", "pending", "-o", "json"))
    assert [row["id"] for row in rows] == ["p0", "p1", "p2"]
    assert [row["id"] for row in document(knockon("pending", "list", "-n", "1", "-o", "json"))] == ["p2"]
    (one,) = document(knockon("pending", "list", "--subject", "conversation:p1", "-o", "json"))
    assert (one["id"], one["subject_type"], one["runs_after"]) == ("p1", "conversation", "runs after 90m")
    listed = knockon("pending", "list", "--reason", "expired", "--automation", "chase").stdout
    assert "skipped: expired" in listed
    assert "p1" not in listed
    shown = knockon("pending", "show", "p1").stdout
    assert "subject        conversation:p1\n" in shown
    assert "armed by       conversation.updated 1-0\n" in shown
    assert document(knockon("pending", "show", "p1", "-o", "json"))["trigger_event"]["payload"]["n"] == 1
    assert knockon("pending", "cancel", "p1").stdout == "cancelled\n"
    assert "skipped (cancelled)" in knockon("pending", "cancel", "p1", code=1).stderr
    assert "there is no pending execution" in knockon("pending", "show", "p1", "-w", "w2", code=1).stderr
    clash = knockon("pending", "list", "--status", "pending", "--reason", "expired", code=2).stderr
    assert "goes with the status skipped alone" in " ".join(clash.replace("│", " ").split())
    assert "is no subject" in knockon("pending", "list", "--subject", "p1", code=2).stderr


def test_activation_says_how_many_it_armed(knockon: Knockon, backends: Backends) -> None:
    knockon("apply", "-f", str(ROOT / "examples" / "delayed.yaml"))
    now = SystemClock().now()
    stamp = (epoch_ms(now - timedelta(hours=1)), 0)
    with backends.database.begin() as conn:
        for name, status in (("c1", "pending"), ("c2", "open")):
            write = SubjectWrite("w1", "conversation", name, stamp, name, {"status": status})
            project_changes(conn, [write], now=now)
    said = knockon("automations", "activate", "stale-pending", "--arm-existing").stdout
    assert said == "stale-pending was ACTIVE already\narmed for 1 of the 2 subjects there are\n"
    again = document(knockon("automations", "activate", "stale-pending", "--arm-existing", "-o", "json"))
    assert again["existing"] == {"looked_at": 2, "armed": 0, "is_whole": True}
    assert document(knockon("automations", "activate", "stale-pending", "-o", "json"))["existing"] is None
    refused = knockon("automations", "activate", "check-in", "--arm-existing", code=1).stderr
    assert "waits for messages" in refused


@pytest.mark.parametrize("line", LINES)
def test_each_line_of_the_page_works(knockon: Knockon, backends: Backends, line: str) -> None:
    knockon("apply", "-f", str(ROOT / "examples" / "delayed.yaml"))
    name, *words = shlex.split(line)
    assert name == "knockon"
    knockon(*words)


def test_a_backtest_of_one_that_waits_counts_episodes(
    knockon: Knockon, backends: Backends, tmp_path: Path
) -> None:
    client, stream = backends.redis, backends.keys.stream
    now = epoch_ms(SystemClock().now())
    for hours, type_, status in (
        (10, "conversation.updated", "pending"),
        (9, "conversation.updated", "pending"),
        (1, "conversation.resolved", "resolved"),
    ):
        told = f'{{"conversation": {{"id": "c1", "status": "{status}"}}}}'
        fields = {"type": type_, "workspaceId": "w1", "payload": told}
        client.xadd(stream, fields, id=f"{now - hours * 3_600_000}-0")
    path = str(ROOT / "examples" / "delayed.yaml")
    stale, *_ = document(knockon("backtest", "-f", path, "-o", "json"))
    assert (stale["key"], stale["would_run"]) == ("stale-pending", 1)
    assert stale["delayed"] == {"armed": 1, "fired": 1, "ended": 0, "waiting": 0}
    assert [each["made"] for each in stale["examples"]] == ["armed", "goes_on", "nothing"]
    shown = knockon("backtest", "-f", path).stdout
    assert ("episodes armed" in shown, "would run" in shown.partition("\ncheck-in")[0]) == (True, False)
    assert "its episode goes on" in shown
