"""What is to become of claimed rows, in the order of docs/delayed.md, "Firing"."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection

from shared.db.pending_due import DueClaim
from shared.model.pending import PendingRow, PendingSkip, has_expired, trigger_event_of
from shared.model.stamps import Stamp
from shared.services.standing import Lapsed, Rule, Rules, lapse_of, read_facts


@dataclass(frozen=True, slots=True)
class Firing:
    """A row that fires, its automation, and the newest write of its subject upon which this was decided."""

    row: PendingRow
    rule: Rule
    seen: Stamp


@dataclass(frozen=True, slots=True)
class Decisions:
    """Rows that fire, those that do not and why, and those after whose episode another one has begun."""

    firing: list[Firing] = field(default_factory=list)
    skipped: list[tuple[PendingRow | DueClaim, PendingSkip]] = field(default_factory=list)
    moved: list[tuple[PendingRow, Rule, Stamp]] = field(default_factory=list)


def decide(
    conn: Connection, rows: Sequence[PendingRow], rules: Rules, oldest: datetime, now: datetime
) -> Decisions:
    """Decide about locked rows by what is stored now; what could have fired before `oldest` has expired.

    Of those nothing more is read, so that what cannot be read of a row does not keep it for ever.
    """
    found = Decisions()
    asked: list[PendingRow] = []
    for row in rows:
        if has_expired(row.due_at, row.armed_at, oldest):
            found.skipped.append((row, PendingSkip.EXPIRED))
        else:
            asked.append(row)
    if not asked:
        return found
    current = rules.current(conn, (row.automation_id for row in asked))
    facts = read_facts(conn, asked)
    for row in asked:
        rule = current.get(row.automation_id)
        if rule is None or not rule.is_active:
            found.skipped.append((row, PendingSkip.RULE_INACTIVE))
        elif not rule.is_readable or trigger_event_of(row.trigger_event) is None:
            found.skipped.append((row, PendingSkip.UNREADABLE))
        elif (lapsed := lapse_of(row, rule, facts, now)) is None:
            found.firing.append(Firing(row, rule, facts.newest(row)))
        else:
            _skip(found, row, rule, lapsed)
    return found


def _skip(found: Decisions, row: PendingRow, rule: Rule, lapsed: Lapsed) -> None:
    found.skipped.append((row, lapsed.reason))
    if lapsed.began is not None:
        found.moved.append((row, rule, lapsed.began))
