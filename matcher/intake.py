"""One set of deliveries, from bytes to acknowledged: decoded, projected, matched, written, handed on.

The order is what keeps a run from getting lost: rows are committed before handles are pushed, and the entries
are acknowledged in the very MULTI that pushes them. So a set may be taken again as a whole at any point.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy.exc import DBAPIError

from matcher.backlog import Backlog
from matcher.choosing import LAST_DAY, Bounds, Chosen, choose
from matcher.concerns import concern_of
from matcher.decoding import Decoded, decode
from matcher.dedupe import Mark, find_taken
from matcher.loading import IndexLoader
from matcher.match import Match
from matcher.runs import make_run, render
from matcher.settling import Settled, settle
from matcher.stream import Delivery, Reading
from matcher.tally import Tally
from matcher.telling import tell_armed, tell_homeless, tell_idled
from matcher.writing import Draft, Written, touch_unclaimed, write_draft
from shared.db.faults import DATA_FAULTS, is_data_fault
from shared.dead_stream import Burial, bury
from shared.faults import FaultPoint, passed
from shared.keys import GROUP
from shared.logs import get_logger
from shared.model.messages import message_of
from shared.model.runs import NewRun, source_id_of
from shared.model.sizes import cut_text
from shared.model.subjects import project
from shared.services.backends import Backends
from shared.time.clock import from_epoch_ms

ALONE_FROM: Final = 3
DELIVERED_MAX: Final = 5
REASON_BYTES: Final = 500
DEPTH_MAX: Final = 5

log = get_logger("matcher")


class Intake:
    """Takes readings in. It raises what SQL and Redis raise while they are away; take the reading again."""

    def __init__(self, backends: Backends, retention: timedelta, depth_max: int = DEPTH_MAX) -> None:
        """Match no event older than `retention`, less one day; arm by none as deep as `depth_max`."""
        self._backends = backends
        self._depth_max = depth_max
        self._matched_for = retention - LAST_DAY
        self._loader = IndexLoader(backends.database, backends.clock)
        self._backlog = Backlog(backends.database, backends.clock)

    def take(self, reading: Reading) -> None:
        """Take a reading in and acknowledge it; entries that were often handed out go apart from the rest."""
        self._loader.refresh(reading.version)
        deliveries = reading.deliveries
        self._divide([each for each in deliveries if each.times < ALONE_FROM])
        for each in deliveries:
            if ALONE_FROM <= each.times <= DELIVERED_MAX:
                self._divide([each])
        self._give_up([each for each in deliveries if each.times > DELIVERED_MAX])

    def _divide(self, deliveries: Sequence[Delivery]) -> None:
        """Take a set; halve it where its data is to blame, down to the one entry, which is buried."""
        if not deliveries:
            return
        try:
            self._take_set(deliveries)
        except DATA_FAULTS as error:
            if not is_data_fault(error):
                raise
            if len(deliveries) == 1:
                self._bury(deliveries[0], _tell(error), type(error).__name__)
                return
            middle = len(deliveries) // 2
            self._divide(deliveries[:middle])
            self._divide(deliveries[middle:])

    def _give_up(self, deliveries: Sequence[Delivery]) -> None:
        for each in deliveries:
            self._bury(each, f"was handed out {each.times} times and never acknowledged", "DeliveredTooOften")

    def _bury(self, delivery: Delivery, reason: str, error: str) -> None:
        decoded = Decoded()
        if delivery.fields is None:
            decoded.trimmed.append(delivery.entry_id)
        else:
            decoded.burials.append(Burial(delivery.entry_id, delivery.fields, reason, error))
        self._hand_on(decoded, Settled(), Tally(self._backends.keys), self._backends.clock.now())

    def _take_set(self, deliveries: Sequence[Delivery]) -> None:
        now = self._backends.clock.now()
        tally = Tally(self._backends.keys)
        decoded = decode(deliveries, self._loader.index)
        bounds = Bounds(now - self._matched_for, self._depth_max)
        chosen = choose(decoded.events, self._loader.index, tally, bounds)
        matches = chosen.matches
        doubted = self._find_doubted(matches, decoded.fresh)
        passed(FaultPoint.MATCH_AFTER_DEDUPE)
        runs = self._make_runs(matches, now)
        written = self._write(self._draft(decoded, chosen, runs, doubted), now)
        self._backlog.add(run.workspace_id for run in runs if run.id in written.new)
        settled = settle(runs, written, tally)
        _note_waits(matches, runs, written, tally, self._backends.clock.now())
        tell_homeless(chosen.homeless)
        tell_armed(written.armed, tally)
        tell_idled(written.idled, tally)
        self._hand_on(decoded, settled, tally, now)
        log.debug("entries_taken", entries=len(deliveries), runs=len(written.new))

    def _draft(
        self, decoded: Decoded, chosen: Chosen, runs: Sequence[NewRun], doubted: frozenset[str]
    ) -> Draft:
        changes = [(event, change) for event in decoded.events if (change := project(event)) is not None]
        concerns = {
            at: concern
            for at, (event, change) in enumerate(changes)
            if (concern := concern_of(event, change, self._loader.index, chosen)) is not None
        }
        messages = [message for message in map(message_of, decoded.events) if message is not None]
        return Draft([change for _, change in changes], runs, doubted, messages, concerns)

    def _write(self, draft: Draft, now: datetime) -> Written:
        if not draft.changes and not draft.runs:
            return Written(frozenset(), {})
        written = self._backends.database.transact(partial(write_draft, draft=draft, now=now))
        passed(FaultPoint.MATCH_AFTER_COMMIT)
        return written

    def _find_doubted(self, matches: Sequence[Match], fresh: set[str]) -> frozenset[str]:
        """Name the runs that Redis says were made before. Redelivered entries are not asked about."""
        marks = [
            Mark(each.automation.id, each.event.key, each.event.entry_id)
            for each in matches
            if each.event.entry_id in fresh
        ]
        taken = find_taken(self._backends.redis, self._backends.keys, marks)
        return frozenset(source_id_of(mark.automation_id, mark.event_key) for mark in taken)

    def _make_runs(self, matches: Sequence[Match], now: datetime) -> list[NewRun]:
        queues = self._backlog.queues_for(each.event.workspace_id for each in matches)
        events = {each.event.entry_id: each.event for each in matches}
        renditions = {entry_id: render(event) for entry_id, event in events.items()}
        return [
            make_run(each, renditions[each.event.entry_id], queues[each.event.workspace_id], now)
            for each in matches
        ]

    def _hand_on(self, decoded: Decoded, settled: Settled, tally: Tally, now: datetime) -> None:
        """Push the handles, bury the dead, count, and acknowledge all of it, in one MULTI."""
        keys = self._backends.keys
        if settled.again:
            runs = settled.again
            again = self._backends.database.transact(partial(touch_unclaimed, runs=runs, now=now))
            for kind, run_ids in again.items():
                settled.handles[kind] += run_ids
        entry_ids = _entry_ids(decoded)
        tally.health("entries_taken", len(entry_ids))
        tally.health("entries_buried", len(decoded.burials))
        tally.health("lost_trimmed", len(decoded.trimmed))
        tally.health("definitions_unreadable", self._loader.take_unreadable())
        passed(FaultPoint.ENQUEUE_BEFORE)
        passed(FaultPoint.MATCH_BEFORE_ACK)
        with self._backends.redis.pipeline(transaction=True) as pipe:
            for kind, run_ids in settled.handles.items():
                self._backends.queue.add_to(pipe, kind, run_ids, now)
            bury(pipe, keys, decoded.burials)
            tally.add_to(pipe)
            pipe.xack(keys.stream, GROUP, *entry_ids)
            pipe.execute()
        passed(FaultPoint.ENQUEUE_AFTER)
        _log_losses(decoded, settled)


def _note_waits(
    matches: Sequence[Match], runs: Sequence[NewRun], written: Written, tally: Tally, now: datetime
) -> None:
    """Note for each new run, which stands where its match does, how long its event had been on the stream."""
    for each, run in zip(matches, runs, strict=True):
        if run.id in written.new:
            tally.waited(now - from_epoch_ms(each.event.stamp[0]))


def _entry_ids(decoded: Decoded) -> list[str]:
    events = [event.entry_id for event in decoded.events]
    buried = (burial.entry_id for burial in decoded.burials)
    return [*events, *buried, *decoded.trimmed, *decoded.unheard]


def _log_losses(decoded: Decoded, settled: Settled) -> None:
    for burial in decoded.burials:
        log.warning("entry_buried", entry_id=burial.entry_id, reason=burial.reason)
    if decoded.trimmed:
        log.error("entries_lost_trimmed", entries=len(decoded.trimmed), first=decoded.trimmed[0])
    for entry_id in dict.fromkeys(run.entry_id for run in settled.conflicts):
        log.warning("duplicate_conflict_found", entry_id=entry_id)


def _tell(error: Exception) -> str:
    """Give an error's own words, without the statement and its parameters that SQLAlchemy adds."""
    words = error.orig if isinstance(error, DBAPIError) else error
    return cut_text(f"cannot be stored: {words}", REASON_BYTES)
