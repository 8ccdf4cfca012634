"""The runs that this process holds.

Whose leases are renewed, and what is under way when the process must end.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from pipeline.drive import Step
from pipeline.plans import Plan
from shared.model.runs import Claim, ClaimedRun


class Phase(Enum):
    """Where a held run is: waiting for a thread, between actions, or inside one."""

    WAITING = auto()
    BETWEEN = auto()
    ACTING = auto()
    LEAVING = auto()


@dataclass(slots=True)
class HeldRun:
    """A claimed run of this process. Only its holder, under the lock of `HeldRuns`, changes the phase."""

    run: ClaimedRun
    plan: Plan
    phase: Phase = Phase.WAITING
    step: Step | None = None
    deadline_at: float = 0.0


class HeldRuns:
    """The book of held runs. Whoever moves a run to LEAVING owns its last record; everybody else lets go."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._lock: Final = threading.Lock()
        self._held: dict[Claim, HeldRun] = {}
        self._changed = threading.Condition(self._lock)

    def add(self, held: Iterable[HeldRun]) -> None:
        """Enter runs that were just claimed."""
        with self._lock:
            for each in held:
                self._held[each.run.claim] = each

    def drop(self, claim: Claim) -> None:
        """Forget a claim: its outcome is written, or it was taken over, perhaps by a later one of ours."""
        with self._lock:
            self._held.pop(claim, None)
            self._changed.notify_all()

    def resume(self, held: HeldRun, origin: Phase) -> bool:
        """Note that a thread has the run between actions now: it took the run up, or an action ended.

        False where somebody took the run away meanwhile.
        """
        return self._to(held, Phase.BETWEEN, origin)

    def act(self, held: HeldRun, step: Step, deadline_at: float) -> bool:
        """Note that an action begins and by when it must end (monotonic seconds)."""
        with self._lock:
            if held.phase is not Phase.BETWEEN:
                return False
            held.phase, held.step, held.deadline_at = Phase.ACTING, step, deadline_at
            return True

    def leave(self, held: HeldRun, origin: Phase) -> bool:
        """Take a run away from where it is; True makes the caller the owner of its last record."""
        return self._to(held, Phase.LEAVING, origin)

    def _to(self, held: HeldRun, phase: Phase, origin: Phase) -> bool:
        with self._lock:
            if held.phase is not origin:
                return False
            held.phase = phase
            self._changed.notify_all()
            return True

    def claims(self) -> list[Claim]:
        """Give the claims of all held runs."""
        with self._lock:
            return [held.run.claim for held in self._held.values()]

    def in_phase(self, phase: Phase) -> list[HeldRun]:
        """Give the runs that are in a phase now."""
        with self._lock:
            return [held for held in self._held.values() if held.phase is phase]

    def leave_overdue(self, now: float) -> list[HeldRun]:
        """Take away the runs whose action should have ended before `now` (monotonic seconds)."""
        with self._lock:
            overdue = [
                held for held in self._held.values() if held.phase is Phase.ACTING and held.deadline_at < now
            ]
            for held in overdue:
                held.phase = Phase.LEAVING
            self._changed.notify_all()
            return overdue

    def wait_empty(self, timeout_s: float) -> bool:
        """Wait until nothing is held; False when the time is over first."""
        with self._lock:
            return self._changed.wait_for(lambda: not self._held, timeout_s)

    def count_busy(self) -> int:
        """Count the runs that hold a permit or wait for one.

        Those whose last record is handed over do not.
        """
        with self._lock:
            return _count_busy(self._held.values())

    def wait_busy_below(self, most: int, timeout_s: float) -> bool:
        """Wait until fewer than `most` runs are busy; False when the time is over first."""
        with self._lock:
            return self._changed.wait_for(lambda: _count_busy(self._held.values()) < most, timeout_s)

    def __len__(self) -> int:
        """Count the held runs."""
        with self._lock:
            return len(self._held)


def _count_busy(held: Iterable[HeldRun]) -> int:
    return sum(each.phase is not Phase.LEAVING for each in held)
