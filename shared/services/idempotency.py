"""One request, one effect: what a request under an Idempotency-Key finds when it comes (docs/api.md)."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.idempotency import (
    KEPT,
    Claim,
    KeptAnswer,
    KeyRow,
    end_claim,
    hold_claims,
    insert_claim,
    keep_answer,
    lock_key,
    mark_effect,
    release_claim,
    take_over,
)
from shared.errors import Conflict
from shared.time.clock import Clock

HELD: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Working:
    """Another request under this key is being worked on; look again after `wait`."""

    wait: timedelta


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """The key stands for another request."""


@dataclass(frozen=True, slots=True)
class AnswerLost:
    """The request was carried out, and its answer was not stored: it is shown once, or the process died."""


Standing = Claim | KeptAnswer | Working | OtherRequest | AnswerLost


def claim_key(database: Database, clock: Clock, wanted: Claim) -> Standing:
    """Claim a request's key, or say what stands against it."""
    now = clock.now()

    def work(conn: Connection) -> Standing:
        while not insert_claim(conn, wanted, now + HELD):
            found = lock_key(conn, wanted)
            if found is not None:
                return _take(conn, wanted, found, now)
        return wanted

    return database.transact(work)


def renew_claims(database: Database, clock: Clock, claims: Collection[Claim]) -> None:
    """Hold claims that are being worked on from now on anew; those that were taken over stay lost."""
    database.transact(partial(hold_claims, claims=claims, until=clock.now() + HELD))


def bound_to(database: Database, clock: Clock, claim: Claim) -> Database:
    """Give a database on which nothing is written once the claim was taken over.

    Its transactions raise Conflict then, and change nothing.
    """

    def note(conn: Connection) -> None:
        if not mark_effect(conn, claim, now=clock.now()):
            raise Conflict("another try of this request has taken it over")

    return database.ending_with(note)


def answer_claim(database: Database, claim: Claim, answer: KeptAnswer) -> bool:
    """Store the answer; False where the claim was taken over."""
    return database.transact(partial(keep_answer, claim=claim, answer=answer))


def drop_claim(database: Database, clock: Clock, claim: Claim) -> None:
    """Let the next request under this key do the work, unless this one did."""
    database.transact(partial(release_claim, claim=claim, now=clock.now()))


def leave_claim(database: Database, clock: Clock, claim: Claim) -> None:
    """Let the next try of this request go on at once, where nobody knows how far this one came."""
    database.transact(partial(end_claim, claim=claim, now=clock.now()))


def _take(conn: Connection, wanted: Claim, found: KeyRow, now: datetime) -> Standing:
    if found.begun_at <= now - KEPT:
        take_over(conn, wanted, now + HELD)
        return wanted
    if found.fingerprint != wanted.fingerprint:
        return OtherRequest()
    if found.answer is not None:
        return found.answer
    if found.held_until > now:
        return Working(min(found.held_until - now, HELD))
    if found.effected_at is not None:
        return AnswerLost()
    taken = replace(wanted, begun_at=found.begun_at)
    take_over(conn, taken, now + HELD)
    return taken
