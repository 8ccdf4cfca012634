"""Episodes that begin to be waited for: each has one row for ever, new or from an earlier time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from shared.db.pending import EpisodeKey, Stand, insert_pending
from shared.db.pending_turns import Turn, reopen_pending, revive_pending
from shared.model.pending import PendingRow


@dataclass(frozen=True, slots=True)
class Begun:
    """What became of episodes that were to be waited for.

    `new` and `revived` wait now; those that are `spent` stand for their episode again, and fire no more.
    """

    new: Sequence[PendingRow]
    revived: Sequence[tuple[Stand, Turn]]
    spent: Sequence[Stand]


def begin_episodes(
    conn: Connection, wanted: Sequence[PendingRow], known: Mapping[EpisodeKey, Stand], *, now: datetime
) -> Begun:
    """Let rows wait, each for its episode; `known` are the rows that these episodes have already, locked.

    An episode that has a row gets no second one: the row waits again if it was skipped for a reason that
    holds no longer; if it is spent, it stays so. One that goes on is left alone.
    """
    ended = [(row, stand) for row in wanted if (stand := known.get(episode_key(row))) and stand.ended_at]
    spent = [stand for _, stand in ended if stand.is_spent]
    reopen_pending(conn, ((stand.id, stand.version) for stand in spent), now=now)
    turns = [(stand, _turn(row, stand)) for row, stand in ended if not stand.is_spent]
    revived = revive_pending(conn, (turn for _, turn in turns), now=now)
    rows = [row for row in wanted if episode_key(row) not in known]
    new = insert_pending(conn, rows)
    return Begun(
        new=[row for row in rows if row.id in new],
        revived=[(stand, turn) for stand, turn in turns if stand.id in revived],
        spent=spent,
    )


def episode_key(row: PendingRow) -> EpisodeKey:
    """Give the unique key of a row's episode."""
    return row.automation_id, row.subject_type, row.subject_id, row.episode.key


def _turn(row: PendingRow, stand: Stand) -> Turn:
    return Turn(stand.id, stand.version, row.episode, row.trigger_event, row.due_at)
