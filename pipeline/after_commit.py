"""What follows a commit, on a thread of its own: emitted events, retries, counters. All of it is on rows.

Each piece is best effort: after a crash or a Redis outage the watchdog relays the outbox and wakes runs whose
handles are missing; counters may then miss what was under way. Doing a piece twice does no harm: an event
has its id, a handle or a retry only wakes.
"""

import queue
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final

from pipeline.parts import Parts
from pipeline.recording import Written
from pipeline.sent_marks import SentMarks
from shared.db.outbox import OutboxEntry
from shared.faults import FaultPoint, passed
from shared.keys import DEAD_LETTERS, Keys
from shared.logs import get_logger
from shared.model.runs import DeadLettered, Failed, HandedBack, Outcome, Retried, Succeeded
from shared.observations import Measure, Observations
from shared.redis_port import REDIS_ERRORS, PipelinePort

log = get_logger("pipeline")

WAITING_MAX: Final = 1_000
BATCHES_MAX: Final = 50
TRIES: Final = 3
PAUSE_S: Final = 0.2


class AfterCommit:
    """A bounded line of committed batches and the thread that works it off."""

    def __init__(self, parts: Parts) -> None:
        """Start nothing yet."""
        self._parts = parts
        self._marks = SentMarks(parts)
        self._waiting: queue.Queue[Written | None] = queue.Queue(WAITING_MAX)
        self._thread = threading.Thread(target=self._loop, name="after-commit", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Tell whether the thread still works."""
        return self._thread.is_alive()

    def add(self, written: Written) -> None:
        """Line a batch up; where the line is full it is left to the watchdog."""
        try:
            self._waiting.put_nowait(written)
        except queue.Full:
            log.warning("after_commit_left_to_watchdog", outbox=len(written.outbox))

    def close(self, timeout_s: float) -> None:
        """Work off what waits, within the time, and end the thread."""
        try:
            self._waiting.put(None, timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(timeout_s)

    def _loop(self) -> None:
        is_closing = False
        while not is_closing:
            taken = self._take()
            is_closing = None in taken
            batches = [batch for batch in taken if batch is not None]
            if batches:
                self._follow(batches)
            if is_closing or self._marks.due_s() == 0:
                self._marks.write()

    def _take(self) -> list[Written | None]:
        try:
            batches = [self._waiting.get(timeout=self._marks.due_s())]
        except queue.Empty:
            return []
        while len(batches) < BATCHES_MAX:
            try:
                batches.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        return batches

    def _follow(self, batches: Sequence[Written]) -> None:
        outbox = [entry for batch in batches for entry in batch.outbox]
        for _ in range(TRIES):
            try:
                sent = self._send(batches, outbox)
            except REDIS_ERRORS as error:
                log.warning("after_commit_failed", error=type(error).__name__)
                threading.Event().wait(PAUSE_S)
            else:
                self._marks.add(sent)
                return
        log.warning("after_commit_left_to_watchdog", outbox=len(outbox))

    def _send(self, batches: Sequence[Written], outbox: Sequence[OutboxEntry]) -> list[OutboxEntry]:
        """Send everything at once and give the events that are on the stream now.

        What Redis refuses (it is full, or a key is of another kind) is left to the watchdog: a repeat would
        send the rest a second time.
        """
        parts = self._parts
        if outbox:
            passed(FaultPoint.OUTBOX_BEFORE_EMIT)
        with parts.redis.pipeline(transaction=False) as pipe:
            for entry in outbox:
                pipe.xadd(parts.keys.stream, entry.fields)
            for key, amount in self._counts(batches).items():
                pipe.incrby(key, amount)
            _durations(batches, parts.keys).add_to(pipe)
            self._wake(pipe, batches)
            answers = pipe.execute(raise_on_error=False)
        if outbox:
            passed(FaultPoint.OUTBOX_AFTER_EMIT)
        refused = [answer for answer in answers if isinstance(answer, Exception)]
        if refused:
            log.warning("after_commit_refused", commands=len(refused), error=str(refused[0])[:200])
        return [entry for entry, answer in zip(outbox, answers, strict=False) if isinstance(answer, bytes)]

    def _wake(self, pipe: PipelinePort, batches: Sequence[Written]) -> None:
        waits = [
            (record.run.queue, record.run.claim.run_id, record.outcome.at)
            for batch in batches
            for record in batch.records
            if isinstance(record.outcome, Retried | HandedBack)
        ]
        if waits:
            passed(FaultPoint.RETRY_BEFORE_SCHEDULE)
        self._parts.queue.schedule_in(pipe, waits)

    def _counts(self, batches: Sequence[Written]) -> Counter[str]:
        keys = self._parts.keys
        counts: Counter[str] = Counter()
        for batch in batches:
            counts += batch.counts
        for record in (record for batch in batches for record in batch.records):
            if record.done is not None:
                counts[keys.action(record.done.type, "succeeded")] += 1
            if record.failed_type is not None:
                counts[keys.action(record.failed_type, "failed")] += 1
            if isinstance(record.outcome, DeadLettered):
                counts[keys.dead_letter(record.run.workspace_id)] += 1
                counts[keys.count(DEAD_LETTERS)] += 1
        return counts


def _durations(batches: Sequence[Written], keys: Keys) -> Observations:
    """Note how long each run that ended has taken since it was first claimed."""
    observed = Observations(keys)
    for record in (record for batch in batches for record in batch.records):
        measure = _measure_of(record.outcome)
        if measure is not None:
            observed.add(measure, record.at - record.run.started_at)
    return observed


def _measure_of(outcome: Outcome | None) -> Measure | None:
    match outcome:
        case Succeeded(skipped=None):
            return Measure.RUN_SUCCEEDED
        case Succeeded():
            return Measure.RUN_SKIPPED
        case Failed():
            return Measure.RUN_FAILED
        case DeadLettered():
            return Measure.RUN_DEAD_LETTER
        case Retried() | HandedBack() | None:
            return None
