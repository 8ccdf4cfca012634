"""Changes to automations by a person, on both databases."""

from dataclasses import replace

import pytest

from shared.db.automations import find_automations, list_automations
from shared.errors import NotFound, Unavailable
from shared.model.automation import Definition
from shared.model.moves import RunStatus
from shared.model.runs import QueueKind
from shared.model.statuses import AutomationStatus
from shared.queue import HandleQueue
from shared.redis_port import no_redis, open_redis
from shared.services.automations import activate, apply_changes, delete, pause, preview_changes
from shared.services.backends import Backends
from shared.services.definitions import ChangeKind, Leftovers
from shared.services.runs import start_by_hand
from tests.people import CALLER, NOW, audit_actions, definition, log_messages, run_row, set_run, told_ends


def apply(
    backends: Backends, *definitions: Definition, leftovers: Leftovers = Leftovers.KEEP
) -> list[ChangeKind]:
    return [change.kind for change in apply_changes(backends, CALLER, definitions, leftovers)]


def status_of(backends: Backends, key: str = "welcome") -> AutomationStatus:
    with backends.database.read() as conn:
        return next(row.status for row in list_automations(conn, "w1") if row.key == key)


def test_applying_twice_changes_once(backends: Backends) -> None:
    assert apply(backends, definition(), definition("second")) == [ChangeKind.CREATED] * 2
    version = backends.redis.get(backends.keys.index_version)
    assert apply(backends, definition(), definition("second")) == [ChangeKind.UNCHANGED] * 2
    assert backends.redis.get(backends.keys.index_version) == version
    assert audit_actions(backends) == ["automation.created"] * 2


def test_a_new_automation_is_active_from_the_time_of_redis_on(backends: Backends) -> None:
    before = backends.redis.time()[0] * 1000
    apply(backends, definition())
    with backends.database.read() as conn:
        (row,) = list_automations(conn, "w1")
    assert row.status is AutomationStatus.ACTIVE
    assert row.version == 1
    assert row.activated_ms is not None
    assert before <= row.activated_ms <= (backends.redis.time()[0] + 1) * 1000


def test_an_edit_makes_a_version_and_keeps_the_activation(backends: Backends) -> None:
    apply(backends, definition())
    with backends.database.read() as conn:
        (old,) = list_automations(conn, "w1")
    assert apply(backends, definition(name="Another name")) == [ChangeKind.UPDATED]
    with backends.database.read() as conn:
        (new,) = list_automations(conn, "w1")
    assert (new.version, new.name, new.activated_ms) == (2, "Another name", old.activated_ms)


def test_a_change_shows_its_diff(backends: Backends) -> None:
    apply(backends, definition())
    (change,) = preview_changes(backends.database, CALLER, [definition(name="Another name")], Leftovers.KEEP)
    assert "-name: Automation welcome" in change.diff()
    assert "+name: Another name" in change.diff()
    with backends.database.read() as conn:
        assert list_automations(conn, "w1")[0].name == "Automation welcome"


def test_what_no_definition_names_is_kept_unless_pruned(backends: Backends) -> None:
    apply(backends, definition(), definition("second"))
    assert apply(backends, definition()) == [ChangeKind.UNCHANGED]
    assert apply(backends, definition(), leftovers=Leftovers.DELETE) == [
        ChangeKind.UNCHANGED,
        ChangeKind.DELETED,
    ]
    with backends.database.read() as conn:
        assert [row.key for row in list_automations(conn, "w1")] == ["welcome"]


def test_a_pruned_key_can_come_back(backends: Backends) -> None:
    apply(backends, definition())
    apply(backends, definition("second"), leftovers=Leftovers.DELETE)
    assert apply(backends, definition()) == [ChangeKind.CREATED]


def test_a_file_without_status_leaves_a_pause_alone_and_one_with_status_ends_it(backends: Backends) -> None:
    apply(backends, definition())
    pause(backends, CALLER, "welcome")
    assert apply(backends, definition()) == [ChangeKind.UNCHANGED]
    assert status_of(backends) is AutomationStatus.PAUSED
    assert apply(backends, definition(status="ACTIVE")) == [ChangeKind.UPDATED]
    assert status_of(backends) is AutomationStatus.ACTIVE


def test_turning_on_and_off_makes_no_version_and_happens_once(backends: Backends) -> None:
    apply(backends, definition())
    assert pause(backends, CALLER, "welcome").changed
    assert not pause(backends, CALLER, "welcome").changed
    turned = activate(backends, CALLER, "welcome")
    assert turned.changed
    assert turned.row.version == 1
    assert audit_actions(backends) == ["automation.created", "automation.paused", "automation.activated"]


def test_activation_moves_the_line_before_which_events_do_not_count(backends: Backends) -> None:
    apply(backends, definition(status="DRAFT"))
    first = activate(backends, CALLER, "welcome").row.activated_ms
    pause(backends, CALLER, "welcome")
    again = activate(backends, CALLER, "welcome").row.activated_ms
    assert first is not None
    assert again is not None
    assert again >= first


def test_an_automation_is_found_by_its_id_too_but_only_in_its_workspace(backends: Backends) -> None:
    apply(backends, definition())
    with backends.database.read() as conn:
        (row,) = list_automations(conn, "w1")
    assert pause(backends, CALLER, row.id).changed
    for stranger in ("welcome", row.id):
        with pytest.raises(NotFound, match="'w2'"):
            activate(backends, replace(CALLER, workspace_id="w2"), stranger)


def test_an_unknown_workspace_is_refused_with_the_cure(backends: Backends) -> None:
    stranger = replace(CALLER, workspace_id="w9")
    with pytest.raises(NotFound, match="'w9'") as applied:
        apply_changes(backends, stranger, [definition()], Leftovers.KEEP)
    with pytest.raises(NotFound, match="'w9'") as previewed:
        preview_changes(backends.database, stranger, [definition()], Leftovers.KEEP)
    assert all("knockon init w9" in refused.value.fix for refused in (applied, previewed))


def test_nothing_is_activated_while_redis_is_away(backends: Backends) -> None:
    apply(backends, definition(status="DRAFT"))
    gone = replace(backends, redis=open_redis("redis://127.0.0.1:1/0"))
    with pytest.raises(Unavailable):
        activate(gone, CALLER, "welcome")
    assert status_of(backends) is AutomationStatus.DRAFT


def test_pausing_and_deleting_need_no_redis(backends: Backends) -> None:
    apply(backends, *(definition(key) for key in ("a", "b", "c", "d")))
    nowhere = no_redis("none runs")
    gone = replace(backends, redis=nowhere, queue=HandleQueue(nowhere, backends.keys))
    run_id = start_by_hand(backends, CALLER, "c", {})
    assert pause(gone, CALLER, "a").changed
    kinds = apply(gone, definition("b", status="PAUSED"), definition("d"), leftovers=Leftovers.DELETE)
    assert sorted(kinds) == ["deleted", "deleted", "unchanged", "updated"]
    assert run_row(backends, run_id).status is RunStatus.CANCELLED
    assert [status_of(backends, key) for key in ("b", "d")] == ["PAUSED", "ACTIVE"]
    apply(gone, definition("e", status="DRAFT"))
    delete(gone, CALLER, "d")
    with backends.database.read() as conn:
        assert sorted(row.key for row in list_automations(conn, "w1")) == ["b", "e"]


def test_nothing_of_what_is_applied_is_done_if_a_part_of_it_needs_redis(backends: Backends) -> None:
    apply(backends, definition("a"), definition("b", status="PAUSED"))
    gone = replace(backends, redis=no_redis("none runs"))
    for wanted in (definition("a", name="Another"), definition("b", status="ACTIVE"), definition("c")):
        with pytest.raises(Unavailable, match="none runs"):
            apply(gone, wanted, leftovers=Leftovers.DELETE)
    assert [status_of(backends, key) for key in ("a", "b")] == ["ACTIVE", "PAUSED"]


def test_activating_wakes_the_runs_that_wait(backends: Backends) -> None:
    apply(backends, definition())
    run_id = start_by_hand(backends, CALLER, "welcome", {})
    pause(backends, CALLER, "welcome")
    before = backends.queue.depth(QueueKind.MAIN)
    assert activate(backends, CALLER, "welcome").woken == 1
    assert backends.queue.depth(QueueKind.MAIN) == before + 1
    assert run_row(backends, run_id).status is RunStatus.PENDING


def test_deleting_cancels_what_waits_and_stops_what_runs(backends: Backends) -> None:
    apply(backends, definition())
    waiting, running = (start_by_hand(backends, CALLER, "welcome", {}) for _ in range(2))
    set_run(backends, running, "RUNNING")
    row = delete(backends, CALLER, "welcome")
    assert run_row(backends, waiting).status is RunStatus.CANCELLED
    assert run_row(backends, running).status is RunStatus.RUNNING
    assert run_row(backends, running).stop_reason == "AUTOMATION_DELETED"
    with backends.database.read() as conn:
        assert list_automations(conn, "w1") == []
        assert find_automations(conn, [row.id])[row.id].deleted_at == NOW
    assert told_ends(backends) == [(waiting, "CANCELLED")]
    assert log_messages(backends, waiting) == ["run cancelled"]
    assert log_messages(backends, running) == ["run asked to stop"]
    assert audit_actions(backends)[-3:] == ["run.cancelled", "run.cancelled", "automation.deleted"]
    with pytest.raises(NotFound):
        delete(backends, CALLER, "welcome")


def test_pruning_tells_of_the_runs_that_it_cancels(backends: Backends) -> None:
    apply(backends, definition())
    waiting = start_by_hand(backends, CALLER, "welcome", {})
    apply_changes(backends, CALLER, [], Leftovers.DELETE)
    assert told_ends(backends) == [(waiting, "CANCELLED")]
    assert log_messages(backends, waiting) == ["run cancelled"]
    assert run_row(backends, waiting).stop_reason == "AUTOMATION_DELETED"


def test_true_in_the_place_of_one_is_a_change(backends: Backends) -> None:
    one = {"all": [{"field": "paid", "op": "eq", "value": 1}]}
    apply(backends, definition(conditions=one))
    yes = {"all": [{"field": "paid", "op": "eq", "value": True}]}
    (change,) = apply_changes(backends, CALLER, [definition(conditions=yes)], Leftovers.KEEP)
    assert change.kind is ChangeKind.UPDATED
    with backends.database.read() as conn:
        (row,) = list_automations(conn, "w1")
    assert (row.version, row.definition["conditions"]["all"][0]["value"]) == (2, True)
