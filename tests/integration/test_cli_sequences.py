"""Steps of idle sequences at the command, and the lines that docs/idle-sequences.md tells to type."""

import shlex
from datetime import timedelta
from typing import Any

import pytest

from shared.services.backends import Backends
from tests.commanding import Knockon, document
from tests.idle_rows import DUE, add_step
from tests.pages import page

LINES = [line for line in page("idle-sequences.md").text.splitlines() if line.strip().startswith("knockon ")]


@pytest.fixture
def waiting(backends: Backends) -> Backends:
    with backends.database.begin() as conn:
        add_step(conn, "s0", conversation_id="c1", status="fired", run_id="r1", ended_at=DUE)
        given: dict[str, Any] = {"sequence_id": "s0", "step_index": 1, "action": "resolve"}
        add_step(conn, "s1", conversation_id="c1", due_at=DUE + timedelta(minutes=10), **given)
        add_step(conn, "s2", status="stopped", reason="customer_replied", ended_at=DUE)
    return backends


def test_steps_are_listed_shown_and_disarmed_once(knockon: Knockon, waiting: Backends) -> None:
    rows = document(knockon("sequences", "list", "--conversation", "c1", "-o", "json"))
    assert [row["id"] for row in rows] == ["s1", "s0"]
    listed = knockon("sequences", "list", "--reason", "customer_replied", "--agent", "nora").stdout
    assert "step 1 of 3: follow_up, stopped: customer_replied" in listed
    assert "s1" not in listed
    due = knockon("sequences", "list", "--due-before", "2026-03-02T12:10:00Z", "-o", "json")
    assert [row["id"] for row in document(due)] == ["s2", "s0"]
    knockon("sequences", "list", "--due-before", "soon", code=2)
    shown = knockon("sequences", "show", "s1").stdout
    assert "stands         step 2 of 3: resolve, due 2026-03-02T12:10:00Z\n" in shown
    assert "step 1 of 3: follow_up, fired" in shown
    steps = document(knockon("sequences", "show", "s0", "-o", "json"))["steps"]
    assert [step["id"] for step in steps] == ["s0", "s1"]
    assert knockon("sequences", "disarm", "s1").stdout == "disarmed\n"
    assert "stopped (disarmed)" in knockon("sequences", "disarm", "s1", code=1).stderr
    assert "no idle step" in knockon("sequences", "show", "nowhere", code=1).stderr


def test_the_lines_of_the_page_can_be_typed(knockon: Knockon, waiting: Backends) -> None:
    assert LINES
    for line in LINES:
        typed = line.replace("--workspace shop", "--workspace w1")
        typed = typed.replace("CONVERSATION_ID", "c1").replace("STEP_ID", "s1").replace("RUN_ID", "none")
        knockon(*shlex.split(typed)[1:], code=1 if " none" in typed else 0)
