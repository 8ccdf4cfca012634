"""The book of held runs: whoever takes a run away owns its end, and waits end when something changes."""

import threading
from dataclasses import replace

import pytest

from pipeline.drive import Step
from pipeline.held import HeldRun, HeldRuns, Phase
from shared.model.runs import Claim
from tests.runs import HOOK, action, claimed, event, plan


def held_run(run_id: str = "r1", lease: int = 1) -> HeldRun:
    return HeldRun(claimed(claim=Claim(run_id, lease)), plan(HOOK))


def step(held: HeldRun) -> Step:
    return Step(held.run, held.plan, event(), action())


def book(*held: HeldRun) -> HeldRuns:
    made = HeldRuns()
    made.add(held)
    return made


def test_a_run_goes_from_waiting_through_its_actions_to_its_end() -> None:
    held = held_run()
    runs = book(held)
    assert runs.resume(held, Phase.WAITING)
    assert runs.act(held, step(held), 5.0)
    assert runs.resume(held, Phase.ACTING)
    assert runs.leave(held, Phase.BETWEEN)
    runs.drop(held.run.claim)
    assert len(runs) == 0


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("origin", Phase)
def test_a_run_is_taken_away_only_from_where_it_is(phase: Phase, origin: Phase) -> None:
    held = held_run()
    held.phase = phase
    assert book(held).leave(held, origin) is (phase is origin)


def test_one_of_many_takes_a_run_away() -> None:
    held = held_run()
    runs = book(held)
    barrier = threading.Barrier(8)
    won: list[bool] = []

    def take() -> None:
        barrier.wait(5)
        won.append(runs.leave(held, Phase.WAITING))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(won) == [False] * 7 + [True]


def test_a_run_that_was_taken_away_begins_no_action() -> None:
    held = held_run()
    runs = book(held)
    assert runs.leave(held, Phase.WAITING)
    assert not runs.resume(held, Phase.WAITING)
    assert not runs.act(held, step(held), 5.0)


def test_what_is_overdue_is_taken_away_at_once_and_once() -> None:
    late, early, idle = held_run("r1"), held_run("r2"), held_run("r3")
    runs = book(late, early, idle)
    for held, deadline in ((late, 1.0), (early, 9.0)):
        runs.resume(held, Phase.WAITING)
        runs.act(held, step(held), deadline)
    assert runs.leave_overdue(5.0) == [late]
    assert runs.leave_overdue(5.0) == []
    assert not runs.resume(late, Phase.ACTING)
    assert runs.resume(early, Phase.ACTING)


def test_letting_an_old_claim_go_keeps_a_later_one_of_the_same_run() -> None:
    old, new = held_run(lease=1), held_run(lease=2)
    runs = book(old, new)
    runs.drop(old.run.claim)
    assert runs.claims() == [new.run.claim]


def test_runs_that_only_wait_for_their_last_commit_are_not_busy() -> None:
    first, second = held_run("r1"), held_run("r2")
    runs = book(first, second)
    assert runs.count_busy() == 2
    runs.leave(first, Phase.WAITING)
    assert (runs.count_busy(), len(runs)) == (1, 2)
    assert runs.in_phase(Phase.WAITING) == [second]


def test_waiting_for_room_ends_when_a_run_leaves_and_not_before() -> None:
    held = held_run()
    runs = book(held)
    assert not runs.wait_busy_below(1, 0.01)
    found: list[bool] = []
    waiter = threading.Thread(target=lambda: found.append(runs.wait_busy_below(1, 10)))
    waiter.start()
    assert runs.leave(held, Phase.WAITING)
    waiter.join(5)
    assert found == [True]


def test_waiting_for_the_end_ends_with_the_last_run() -> None:
    held = held_run()
    runs = book(held, replace(held_run("r2")))
    assert not runs.wait_empty(0.01)
    found: list[bool] = []
    waiter = threading.Thread(target=lambda: found.append(runs.wait_empty(10)))
    waiter.start()
    runs.drop(Claim("r2", 1))
    runs.drop(held.run.claim)
    runs.drop(held.run.claim)
    waiter.join(5)
    assert found == [True]
