"""Does to rows what was decided for a wave of events: a set statement for each kind of deed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from matcher.deeds import Arm, Close, Deed, Lapse, Move, Rekey
from matcher.ledger import Ledger
from shared.db.pending import (
    Ending,
    EpisodeKey,
    Stand,
    close_pending,
    find_trigger_events,
    insert_pending,
    lock_episodes,
)
from shared.db.pending_beginnings import begin_episodes
from shared.db.pending_turns import Turn, move_pending, rekey_pending, reopen_pending
from shared.model.events import event_to_json
from shared.model.pending import PendingRow, PendingSkip, PendingStatus
from shared.rules.arming import due_at, new_pending


@dataclass(frozen=True, slots=True)
class Noted:
    """One change, as logs and counts tell of it; `reason` is why a row that waited was skipped."""

    automation_id: str
    subject_type: str
    subject_id: str
    episode_key: str
    reason: PendingSkip | None = None


@dataclass(slots=True)
class Armed:
    """What became of rows: who began to wait, who waits for something newer, whose episode is over."""

    armed: list[Noted] = field(default_factory=list)
    moved: list[Noted] = field(default_factory=list)
    closed: list[Noted] = field(default_factory=list)

    def add(self, other: "Armed") -> None:
        """Take in what became of more rows."""
        self.armed += other.armed
        self.moved += other.moved
        self.closed += other.closed


@dataclass(slots=True)
class _Book:
    """One transaction's rows, as they stand, and what has become of them."""

    conn: Connection
    ledger: Ledger
    now: datetime
    armed: Armed = field(default_factory=Armed)


def perform(conn: Connection, deeds: Sequence[Deed], ledger: Ledger, now: datetime) -> Armed:
    """Do all of it, and bring the ledger up to date.

    What is over ends before anything begins in its place.
    """
    book = _Book(conn, ledger, now)
    _close(book, [deed for deed in deeds if isinstance(deed, Close)])
    keyed = [deed for deed in deeds if isinstance(deed, Arm | Rekey)]
    known = lock_episodes(conn, (deed.key for deed in keyed))
    _rekey(book, [deed for deed in keyed if isinstance(deed, Rekey)], known)
    _arm(book, [deed for deed in keyed if isinstance(deed, Arm)], known)
    _lapse(book, [deed for deed in deeds if isinstance(deed, Lapse)])
    _move(book, [deed for deed in deeds if isinstance(deed, Move)])
    return book.armed


def _close(book: _Book, deeds: list[Close]) -> None:
    endings = (Ending(deed.stand.id, deed.stand.version, deed.reason) for deed in deeds)
    closed = close_pending(book.conn, endings, now=book.now)
    for deed in deeds:
        book.ledger.drop(deed.stand)
        if deed.stand.id in closed:
            reason = deed.reason if deed.stand.is_waiting else None
            book.armed.closed.append(_noted(deed.stand, deed.stand.episode.key, reason))


def _rekey(book: _Book, deeds: list[Rekey], known: Mapping[EpisodeKey, Stand]) -> None:
    """Tell spent rows when their episode began; where another row has that very key, it takes their place."""
    taken = [(deed.stand, known[deed.key]) for deed in deeds if deed.key in known]
    free = [deed for deed in deeds if deed.key not in known]
    given_up = (Ending(stand.id, stand.version, PendingSkip.EPISODE_MOVED) for stand, _ in taken)
    close_pending(book.conn, given_up, now=book.now)
    reopen_pending(book.conn, ((other.id, other.version) for _, other in taken), now=book.now)
    _stand_again(book, (other for _, other in taken))
    turned = ((deed.stand.id, deed.stand.version, deed.episode) for deed in free)
    rekey_pending(book.conn, turned, now=book.now)
    for deed in free:
        book.ledger.put(replace(deed.stand, episode=deed.episode, version=deed.stand.version + 1))


def _stand_again(book: _Book, stands: Iterable[Stand]) -> None:
    """Note that rows which are spent stand for their episode again."""
    for stand in stands:
        book.ledger.put(replace(stand, ended_at=None, version=stand.version + 1))


def _arm(book: _Book, deeds: list[Arm], known: Mapping[EpisodeKey, Stand]) -> None:
    events = _events(book, deeds)
    wanted = [_row(deed, events[deed.key], book.now) for deed in deeds]
    begun = begin_episodes(book.conn, wanted, known, now=book.now)
    _stand_again(book, begun.spent)
    for stand, turn in begun.revived:
        _begin(book, _following(stand, turn))
    for row in begun.new:
        _begin(book, _stand(row))


def _begin(book: _Book, stand: Stand) -> None:
    book.ledger.put(stand)
    book.armed.armed.append(_noted(stand, stand.episode.key))


def _lapse(book: _Book, deeds: list[Lapse]) -> None:
    rows = [
        new_pending(deed.delayed.automation, deed.subject, deed.episode, event_to_json(deed.event), book.now)
        for deed in deeds
    ]
    new = insert_pending(book.conn, rows)
    stands = [_stand(row) for row in rows if row.id in new]
    _close(book, [Close(stand, PendingSkip.EPISODE_MOVED) for stand in stands])


def _move(book: _Book, deeds: list[Move]) -> None:
    turns = [_moved(deed) for deed in deeds]
    moved = move_pending(book.conn, turns, now=book.now)
    for deed, turn in zip(deeds, turns, strict=True):
        if deed.stand.id in moved:
            book.ledger.put(_following(deed.stand, turn))
            book.armed.moved.append(_noted(deed.stand, turn.episode.key))


def _moved(deed: Move) -> Turn:
    """Follow the newer message; the hour changes with the clock alone, whatever the delay is by now."""
    stand, started_at = deed.stand, deed.episode.started_at
    keeps_hour = started_at == stand.episode.started_at
    due = stand.due_at if keeps_hour else due_at(deed.delayed.automation, started_at)
    return Turn(stand.id, stand.version, deed.episode, event_to_json(deed.event), due)


def _events(book: _Book, deeds: Sequence[Arm]) -> dict[EpisodeKey, Mapping[str, Any]]:
    """Give the event that each episode waits with: its own, or that of the row whose place it takes."""
    borrowed = {deed.key: deed.instead_of.id for deed in deeds if deed.event is None and deed.instead_of}
    found = find_trigger_events(book.conn, borrowed.values())
    own = {deed.key: event_to_json(deed.event) for deed in deeds if deed.event is not None}
    return {**{key: found[id_] for key, id_ in borrowed.items()}, **own}


def _row(deed: Arm, event: Mapping[str, Any], now: datetime) -> PendingRow:
    return new_pending(deed.delayed.automation, deed.subject, deed.episode, event, now)


def _following(stand: Stand, turn: Turn) -> Stand:
    return replace(
        stand,
        episode=turn.episode,
        due_at=turn.due_at,
        status=PendingStatus.PENDING,
        skip_reason=None,
        ended_at=None,
        version=stand.version + 1,
    )


def _stand(row: PendingRow) -> Stand:
    return Stand(
        id=row.id,
        workspace_id=row.workspace_id,
        automation_id=row.automation_id,
        subject_type=row.subject_type,
        subject_id=row.subject_id,
        episode=row.episode,
        due_at=row.due_at,
        status=row.status,
        skip_reason=row.skip_reason,
        version=row.version,
        ended_at=row.ended_at,
    )


def _noted(stand: Stand, key: str, reason: PendingSkip | None = None) -> Noted:
    return Noted(stand.automation_id, stand.subject_type, stand.subject_id, key, reason)
