"""Kill points: places where a test makes a process die, stop, fail or wait, by the variable KNOCKON_FAULT.

The form is `point:kill9|stop|raise|sleep:SECONDS`, several joined by commas; `point@N:kill9` acts on the Nth
passage only. Unset, which is how it is outside tests, `passed` is one comparison.
"""

import os
import signal
import threading
from collections import Counter
from enum import StrEnum
from typing import Final

VARIABLE: Final = "KNOCKON_FAULT"


class FaultPoint(StrEnum):
    """Every place that a test can arm; the name says what has just happened or is about to."""

    MATCH_AFTER_READ = "match.after_read"
    MATCH_AFTER_DEDUPE = "match.after_dedupe"
    MATCH_BEFORE_COMMIT = "match.before_commit"
    MATCH_AFTER_COMMIT = "match.after_commit"
    ENQUEUE_BEFORE = "enqueue.before"
    ENQUEUE_AFTER = "enqueue.after"
    MATCH_BEFORE_ACK = "match.before_ack"
    CLAIM_AFTER_COMMIT = "claim.after_commit"
    HANDLE_BEFORE_ACK = "handle.before_ack"
    RUN_BEFORE_GUARD = "run.before_guard"
    ACTION_BEFORE_EFFECT = "action.before_effect"
    ACTION_AFTER_EFFECT = "action.after_effect"
    JOURNAL_BEFORE_COMMIT = "journal.before_commit"
    JOURNAL_AFTER_COMMIT = "journal.after_commit"
    RUN_BEFORE_TERMINAL = "run.before_terminal"
    OUTBOX_BEFORE_EMIT = "outbox.before_emit"
    OUTBOX_AFTER_EMIT = "outbox.after_emit"
    RETRY_BEFORE_SCHEDULE = "retry.before_schedule"
    SCHEDULER_BEFORE_HAND_OVER = "scheduler.before_hand_over"
    RESCUE_BEFORE_COMMIT = "rescue.before_commit"
    RETENTION_BETWEEN_BATCHES = "retention.between_batches"
    TIMERS_BEFORE_COMMIT = "timers.before_commit"
    TIMERS_AFTER_COMMIT = "timers.after_commit"
    DELAYED_AFTER_CLAIM = "delayed.after_claim"
    DELAYED_BEFORE_COMMIT = "delayed.before_commit"
    DELAYED_AFTER_COMMIT = "delayed.after_commit"
    IDLE_AFTER_CLAIM = "idle.after_claim"
    IDLE_BEFORE_COMMIT = "idle.before_commit"
    IDLE_AFTER_COMMIT = "idle.after_commit"
    BULK_BEFORE_COMMIT = "bulk.before_commit"
    BULK_AFTER_COMMIT = "bulk.after_commit"
    REQUEST_AFTER_CLAIM = "request.after_claim"
    REQUEST_BEFORE_ANSWER = "request.before_answer"
    REQUEST_AFTER_ANSWER = "request.after_answer"


class InjectedFault(Exception):
    """Raised where a test armed `raise`."""


def _parse(text: str) -> dict[str, tuple[int, str]]:
    armed: dict[str, tuple[int, str]] = {}
    for part in filter(None, text.split(",")):
        where, _, what = part.partition(":")
        name, _, nth = where.partition("@")
        armed[FaultPoint(name).value] = (int(nth or 0), what)
    return armed


_ARMED: Final = _parse(os.environ.get(VARIABLE, ""))
_PASSAGES: Final[Counter[str]] = Counter()


def passed(point: FaultPoint) -> None:
    """Act on the fault armed at `point`, if any."""
    if _ARMED and point in _ARMED:
        _PASSAGES[point] += 1
        nth, what = _ARMED[point]
        if nth in (0, _PASSAGES[point]):
            _act(point, what)


def _act(point: FaultPoint, what: str) -> None:
    match what.partition(":"):
        case ("kill9", _, _):
            os.kill(os.getpid(), signal.SIGKILL)
        case ("stop", _, _):
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # to this very thread: it stops here
        case ("raise", _, _):
            raise InjectedFault(point)
        case ("sleep", _, seconds):
            threading.Event().wait(float(seconds))
        case _:
            raise ValueError(f"{VARIABLE}: {point} cannot {what!r}")
