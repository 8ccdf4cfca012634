"""Dead letters in groups: what belongs together, what is shown of it, what leaves it; on both databases."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from shared.db.bulk_runs import Counted, Selection, count_selected, find_selected
from shared.db.dead_groups import NAMED, count_dead, list_dead_groups
from shared.db.dead_letters import DeadLetter, DeadLetterKind, record_dead_letters
from shared.db.run_lists import RunQuery, list_runs, page_of_runs
from shared.ids import new_id
from shared.model.executed import EndedRun
from shared.model.moves import RunStatus
from shared.model.runs import RunError
from shared.services.backends import Backends
from shared.services.runs import ReplayFrom, replay
from tests.bulk import Ended, add_ended, fingerprint_of, make_automation
from tests.people import CALLER, NOW, run_row, set_run

MINUTE = timedelta(minutes=1)
LOOK = re.compile(r"automation_runs r\b|(SEARCH|SCAN) r\b")  # those by id have other names


@pytest.fixture
def automation_id(backends: Backends) -> str:
    return make_automation(backends)


def groups(backends: Backends, workspace_id: str = "w1", most: int = 9, **page: Any) -> list[Any]:
    with backends.database.read() as conn:
        return list(list_dead_groups(conn, workspace_id, most=most, **page))


def test_what_is_one_trouble_is_one_group(backends: Backends, automation_id: str) -> None:
    gone = "POST https://shop.test/{}?token=hidden answered 503"
    other = make_automation(backends, "other")
    first = add_ended(backends, automation_id, 2, Ended(message=gone.format(1), at=NOW - MINUTE))
    second = add_ended(backends, other, 1, Ended(message=gone.format(2)))
    alone = add_ended(backends, automation_id, 4, Ended(code="MAIL_REFUSED", message="no such box"))
    add_ended(backends, automation_id, 8, Ended("FAILED"))
    add_ended(backends, automation_id, 16, workspace="w2")
    mail, hook = groups(backends)
    assert (mail.count, mail.trouble.code, mail.trouble.target) == (4, "MAIL_REFUSED", automation_id)
    assert (mail.fingerprint, mail.newest_run_id) == (fingerprint_of(backends, alone[0]), alone[-1])
    assert (hook.count, hook.trouble.target, hook.newest_run_id) == (3, "shop.test", second[0])
    assert set(hook.automation_ids) == {automation_id, other}
    assert (hook.first_at, hook.last_at) == (NOW - MINUTE, NOW)
    assert "hidden" not in hook.trouble.message
    assert fingerprint_of(backends, first[0]) == hook.fingerprint
    assert [group.count for group in groups(backends, "w2")] == [16]


def test_groups_come_in_pages(backends: Backends, automation_id: str) -> None:
    for number in range(5):
        add_ended(backends, automation_id, number + 1, Ended(code=f"CODE_{chr(65 + number)}"))
    first = groups(backends, most=2)
    rest = groups(backends, before=first[-1].newest_run_id)
    assert [group.count for group in (*first, *rest)] == [5, 4, 3, 2, 1]


def test_a_group_names_a_few_of_its_automations(backends: Backends) -> None:
    for _ in range(NAMED + 5):
        add_ended(backends, new_id(), 1, Ended(message="GET https://h.test/ answered 500"))
    (group,) = groups(backends)
    assert (group.count, len(group.automation_ids)) == (NAMED + 5, NAMED)


def test_a_dead_letter_without_a_fingerprint_is_shown_all_the_same(
    backends: Backends, automation_id: str
) -> None:
    (run_id,) = add_ended(backends, automation_id, 1)
    set_run(backends, run_id, "DEAD_LETTER", fingerprint=None)
    (group,) = groups(backends)
    assert (group.fingerprint, group.count, group.automation_ids) == (None, 1, (automation_id,))


def test_a_run_gets_its_fingerprint_with_its_alert_and_loses_it_when_it_is_replayed(
    backends: Backends, automation_id: str
) -> None:
    (run_id,) = add_ended(backends, automation_id, 1)
    set_run(backends, run_id, "DEAD_LETTER", fingerprint=None)
    error = RunError("WEBHOOK_HTTP_RETRIABLE", "503", 1)
    ended = EndedRun(
        run_id, "w1", automation_id, run_id, "EVENT", 1, RunStatus.DEAD_LETTER, duration_ms=1, error=error
    )
    with backends.database.begin() as conn:
        letter = DeadLetter(ended, "Welcome", error, 9, DeadLetterKind.EXHAUSTED)
        record_dead_letters(conn, [letter], now=NOW)
        told = conn.execute(text("SELECT fingerprint FROM alerts")).scalar_one()
    assert fingerprint_of(backends, run_id) == told
    replay(backends, CALLER, [run_id], ReplayFrom.FAILED_ACTION)
    assert run_row(backends, run_id).status is RunStatus.PENDING
    assert fingerprint_of(backends, run_id) is None
    assert groups(backends) == []


def test_what_is_left_of_a_trouble_is_counted(backends: Backends, automation_id: str) -> None:
    ids = add_ended(backends, automation_id, 3)
    add_ended(backends, automation_id, 1, workspace="w2")
    mark = str(fingerprint_of(backends, ids[0]))
    for left in (3, 2):
        with backends.database.read() as conn:
            assert count_dead(conn, "w1", [mark, "other"]) == {mark: left, "other": 0}
        replay(backends, CALLER, ids[:1], ReplayFrom.FAILED_ACTION)


def plans_of(conn: Connection, look: Callable[[], object]) -> list[str]:
    """Give the plan of each statement that `look` executes."""
    told: list[tuple[str, Any]] = []

    def note(_conn: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        told.append((statement, parameters))

    event.listen(conn, "before_cursor_execute", note)
    look()
    event.remove(conn, "before_cursor_execute", note)
    word = "EXPLAIN" if conn.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
    plans = [conn.exec_driver_sql(f"{word} {statement}", values).all() for statement, values in told]
    return ["\n".join(str(row[-1]) for row in plan) for plan in plans]


@pytest.fixture
def crowded(backends: Backends, automation_id: str) -> Backends:
    """Give a workspace with 20,000 runs that are over and a few that are dead, the last of all."""
    for _ in range(4):
        add_ended(backends, automation_id, 5_000, Ended("SUCCEEDED"))
    add_ended(backends, automation_id, 200)
    add_ended(backends, automation_id, 100, Ended("PENDING"))
    with backends.database.begin() as conn:
        conn.execute(text("ANALYZE"))
    return backends


FILTERS: Sequence[dict[str, Any]] = (
    {},
    {"automation_id": "a"},
    {"fingerprint": "f"},
    {"code": "C"},
    {"since": NOW, "until": NOW + MINUTE},
)


def test_no_look_at_dead_letters_meets_runs_that_are_over(crowded: Backends) -> None:
    with crowded.database.read() as conn:

        def look() -> None:
            assert [group.count for group in list_dead_groups(conn, "w1", most=9)] == [200]
            count_dead(conn, "w1", ["f"])
            for status in (RunStatus.DEAD_LETTER, RunStatus.PENDING):
                for given in FILTERS:
                    selection = Selection("w1", status, NOW + MINUTE, "z", **given)
                    count_selected(conn, selection, most=100_001)
                    find_selected(conn, selection, after_id="", most=500)

        plans = plans_of(conn, look)
    assert len(plans) == 2 + 2 * 2 * len(FILTERS)
    for plan in plans:
        looks = [line for line in plan.splitlines() if LOOK.search(line)]
        if "CO-ROUTINE r" in plan:
            looks.remove("SCAN r")  # of what the look before it has found
        assert looks, plan
        assert all(_is_of_rest(line) for line in looks), plan


def _is_of_rest(line: str) -> bool:
    """Tell whether a line of a plan looks at an index without finished runs."""
    return any(name in line for name in ("ix_runs_status", "ix_runs_fingerprint", "ix_runs_waiting"))


def test_the_runs_of_a_group_are_listed_without_a_look_at_others(crowded: Backends) -> None:
    (group,) = groups(crowded)
    query = RunQuery("w1", 300, fingerprint=group.fingerprint)
    with crowded.database.read() as conn:
        assert len(list_runs(conn, query)) == group.count
        assert list_runs(conn, replace(query, workspace_id="w2")) == []
        assert list_runs(conn, replace(query, fingerprint="other")) == []
        assert list_runs(conn, replace(query, status=RunStatus.FAILED)) == []
        (plan,) = plans_of(conn, lambda: page_of_runs(conn, replace(query, most=50)))
    assert _is_of_rest(plan), plan


NOBODY: Sequence[dict[str, Any]] = ({}, {"code": "NOBODYS"})


def test_no_more_runs_are_looked_at_than_a_bound_however_few_fit(
    backends: Backends, automation_id: str
) -> None:
    add_ended(backends, automation_id, 5)
    with backends.database.read() as conn:
        (group,) = list_dead_groups(conn, "w1", most=9, counted=3)
        counts = [
            count_selected(
                conn, Selection("w1", RunStatus.DEAD_LETTER, NOW + MINUTE, "z", **given), most=most
            )
            for given in NOBODY
            for most in (3, 5)
        ]
    assert group.count == 3
    assert counts == [Counted(3, True), Counted(5, False), Counted(0, True), Counted(0, False)]
