"""Requests under an Idempotency-Key: who works on one, whether it took effect, and the answer it got.

A row is claimed before the work. Each transaction of the work ends with `mark_effect`, so that work whose
claim was taken over changes nothing; the answer is written last (docs/api.md, Idempotency).
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Row

from shared.db.sql import sql
from shared.db.types import must_instant, read_instant, read_json, write_instant

KEPT: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of one request to do what its key stands for; `begun_at` stays when it is taken over."""

    api_key_id: str
    key: str
    fingerprint: str
    owner: str
    begun_at: datetime


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as it is stored; the body is sealed."""

    status: int
    headers: dict[str, str]
    body: str


@dataclass(frozen=True, slots=True)
class KeyRow:
    """What is known of a key."""

    fingerprint: str
    begun_at: datetime
    held_until: datetime
    effected_at: datetime | None
    answer: KeptAnswer | None


INSERT_CLAIM: Final = sql(
    """
    INSERT INTO idempotency_keys (api_key_id, key, fingerprint, owner, created_at, held_until)
    VALUES (:api_key_id, :key, :fingerprint, :owner, :begun_at, :until)
    ON CONFLICT (api_key_id, key) DO NOTHING
    """
)


def insert_claim(conn: Connection, claim: Claim, until: datetime) -> bool:
    """Claim a key that nobody has used; False where somebody has."""
    return INSERT_CLAIM.run(conn, {**_values(claim), "until": write_instant(until)}).rowcount == 1


LOCK_KEY: Final = sql(
    """
    SELECT r.fingerprint, r.created_at, r.held_until, r.effected_at, r.status, r.headers, r.body
    FROM idempotency_keys r WHERE r.api_key_id = :api_key_id AND r.key = :key {lock}
    """
)


def lock_key(conn: Connection, claim: Claim) -> KeyRow | None:
    """Give what is known of a claim's key, locked until the transaction ends; None where it is gone."""
    row = LOCK_KEY.run(conn, {"api_key_id": claim.api_key_id, "key": claim.key}).first()
    if row is None:
        return None
    return KeyRow(
        fingerprint=row.fingerprint,
        begun_at=must_instant(row.created_at),
        held_until=must_instant(row.held_until),
        effected_at=read_instant(row.effected_at),
        answer=_answer(row),
    )


TAKE_OVER: Final = sql(
    """
    UPDATE idempotency_keys SET owner = :owner, held_until = :until, fingerprint = :fingerprint,
        created_at = :begun_at, effected_at = NULL, status = NULL, headers = NULL, body = NULL
    WHERE api_key_id = :api_key_id AND key = :key
    """
)


def take_over(conn: Connection, claim: Claim, until: datetime) -> None:
    """Claim a key, which this transaction has locked, whatever was known of it."""
    TAKE_OVER.run(conn, {**_values(claim), "until": write_instant(until)})


HOLD_CLAIMS: Final = sql(
    """
    UPDATE idempotency_keys SET held_until = :until FROM {rows}
    WHERE idempotency_keys.api_key_id = x.api_key_id AND idempotency_keys.key = x.key
        AND idempotency_keys.owner = x.owner
    """,
    api_key_id="text",
    key="text",
    owner="text",
)


def hold_claims(conn: Connection, claims: Collection[Claim], until: datetime) -> int:
    """Hold claims until an instant; count those that were not taken over."""
    rows = [{"api_key_id": each.api_key_id, "key": each.key, "owner": each.owner} for each in claims]
    return HOLD_CLAIMS.run_set(conn, rows, until=write_instant(until)).rowcount


MARK_EFFECT: Final = sql(
    """
    UPDATE idempotency_keys SET effected_at = :now
    WHERE api_key_id = :api_key_id AND key = :key AND owner = :owner
    """
)


def mark_effect(conn: Connection, claim: Claim, *, now: datetime) -> bool:
    """Note in the transaction of an effect that there is one; False where the claim was taken over."""
    values = {"api_key_id": claim.api_key_id, "key": claim.key, "owner": claim.owner}
    return MARK_EFFECT.run(conn, {**values, "now": write_instant(now)}).rowcount == 1


KEEP_ANSWER: Final = sql(
    """
    UPDATE idempotency_keys SET status = x.status, headers = x.headers, body = x.body FROM {rows}
    WHERE idempotency_keys.api_key_id = x.api_key_id AND idempotency_keys.key = x.key
        AND idempotency_keys.owner = x.owner
    """,
    api_key_id="text",
    key="text",
    owner="text",
    status="integer",
    headers="jsonb",
    body="text",
)


def keep_answer(conn: Connection, claim: Claim, answer: KeptAnswer) -> bool:
    """Store the answer that a repeat gets; False where the claim was taken over."""
    row = {
        "api_key_id": claim.api_key_id,
        "key": claim.key,
        "owner": claim.owner,
        "status": answer.status,
        "headers": answer.headers,
        "body": answer.body,
    }
    return KEEP_ANSWER.run_set(conn, [row]).rowcount == 1


DROP_CLAIM: Final = sql(
    """
    DELETE FROM idempotency_keys
    WHERE api_key_id = :api_key_id AND key = :key AND owner = :owner AND effected_at IS NULL
    """
)
END_CLAIM: Final = sql(
    """
    UPDATE idempotency_keys SET held_until = :now
    WHERE api_key_id = :api_key_id AND key = :key AND owner = :owner
    """
)


def release_claim(conn: Connection, claim: Claim, *, now: datetime) -> None:
    """End a claim without an answer: nothing is known of the key afterwards, unless there was an effect."""
    values = {"api_key_id": claim.api_key_id, "key": claim.key, "owner": claim.owner}
    if not DROP_CLAIM.run(conn, values).rowcount:
        end_claim(conn, claim, now=now)


def end_claim(conn: Connection, claim: Claim, *, now: datetime) -> None:
    """Let the next request take a claim over at once; the key goes on to stand for this request."""
    values = {"api_key_id": claim.api_key_id, "key": claim.key, "owner": claim.owner}
    END_CLAIM.run(conn, {**values, "now": write_instant(now)})


def _values(claim: Claim) -> dict[str, Any]:
    return {
        "api_key_id": claim.api_key_id,
        "key": claim.key,
        "fingerprint": claim.fingerprint,
        "owner": claim.owner,
        "begun_at": write_instant(claim.begun_at),
    }


def _answer(row: Row[Any]) -> KeptAnswer | None:
    if row.status is None:
        return None
    return KeptAnswer(row.status, read_json(row.headers), row.body)
