"""A write under an Idempotency-Key is done once, and a repeat is answered alike."""

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api.renewing import Renewing
from shared.db.idempotency import Claim, KeptAnswer
from shared.db.sql import sql
from shared.errors import Conflict
from shared.ids import new_id
from shared.services.backends import Backends
from shared.services.idempotency import (
    HELD,
    AnswerLost,
    OtherRequest,
    Working,
    answer_claim,
    bound_to,
    claim_key,
    drop_claim,
    leave_claim,
    renew_claims,
)
from shared.services.workspaces import Scope
from shared.time.clock import ManualClock
from tests.calling import Api
from tests.people import NOW

KEY = {"Idempotency-Key": "the-key"}
WANTED = {"email": "ada@example.com", "role": "author"}
TOUCH = sql("UPDATE workspaces SET name = name || 'x' WHERE id = 'w1'")


def add(api: Api, key: str, body: Any = None, **headers: str) -> Any:
    return api("POST", "/v1/members", key=key, json=body or WANTED, headers={**KEY, **headers})


def members_of(api: Api, key: str) -> list[str]:
    return [each["id"] for each in api("GET", "/v1/members", key=key).json()["items"]]


def test_a_repeat_gets_the_first_answer_and_changes_nothing(api: Api) -> None:
    key = api.key()
    first, again = add(api, key), add(api, key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert members_of(api, key).count(first.json()["id"]) == 1
    assert len(members_of(api, key)) == 2


def test_an_answer_is_stored_encrypted(api: Api) -> None:
    made = add(api, api.key()).json()["email"]
    with api.backends.database.read() as conn:
        (stored,) = sql("SELECT body FROM idempotency_keys").run(conn).scalars()
    assert stored
    assert made not in stored


def test_a_key_stands_for_one_request(api: Api) -> None:
    key = api.key()
    made = add(api, key).json()
    other_body = add(api, key, {**WANTED, "name": "another"})
    other_route = api("DELETE", f"/v1/members/{made['id']}", key=key, headers=KEY)
    for refused in (other_body, other_route):
        assert (refused.status_code, refused.json()["error"]) == (409, "idempotency_key_reused")


def test_a_key_is_known_by_the_api_key_that_sent_it(api: Api) -> None:
    body = {"name": "welcome", "state": "on"}
    first = api("POST", "/v1/flags", key=api.key(), headers=KEY, json=body)
    other = api("POST", "/v1/flags", key=api.key(), headers=KEY, json={**body, "state": "off"})
    elsewhere = api("POST", "/v1/flags", key=api.key(workspace="w2"), headers=KEY, json=body)
    assert [each.status_code for each in (first, other, elsewhere)] == [200, 200, 200]
    lesser = api("POST", "/v1/flags", key=api.key(Scope.RUNS_READ), headers=KEY, json=body)
    assert (lesser.status_code, lesser.json()["details"]["scopes"]) == (403, ["admin"])


def test_what_is_shown_once_is_not_shown_to_a_repeat(api: Api) -> None:
    key, wanted = api.key(), {"name": "the shop", "scopes": ["runs:read"]}
    first = api("POST", "/v1/api-keys", key=key, headers=KEY, json=wanted)
    again = api("POST", "/v1/api-keys", key=key, headers=KEY, json=wanted)
    assert (first.status_code, again.status_code, again.json()["error"]) == (201, 409, "answer_lost")
    with api.backends.database.read() as conn:
        assert sql("SELECT body FROM idempotency_keys").run(conn).scalars().all() == [None]
    listed = api("GET", "/v1/api-keys", key=key).json()["items"]
    assert [each["name"] for each in listed].count("the shop") == 1


def test_a_claim_is_held_as_long_as_its_request_is_worked_on(backends: Backends, clock: ManualClock) -> None:
    first, lost = claim(clock), claim(clock, key="lost")
    for each in (first, lost):
        claim_key(backends.database, clock, each)
    clock.advance(HELD - timedelta(seconds=1))
    other = claim(clock, key="lost")
    clock.advance(timedelta(seconds=1))
    assert isinstance(claim_key(backends.database, clock, other), Claim)
    renew_claims(backends.database, clock, [first, lost])
    clock.advance(HELD - timedelta(seconds=1))
    assert claim_key(backends.database, clock, claim(clock)) == Working(timedelta(seconds=1))
    clock.advance(timedelta(seconds=1))
    assert isinstance(claim_key(backends.database, clock, claim(clock)), Claim)


def held_until(backends: Backends) -> list[str]:
    with backends.database.read() as conn:
        return list(sql("SELECT held_until FROM idempotency_keys ORDER BY key").run(conn).scalars())


def test_one_task_renews_all_claims_while_there_are_any(backends: Backends, clock: ManualClock) -> None:
    claims = [claim(clock), claim(clock, key="l")]
    for each in claims:
        claim_key(backends.database, clock, each)
    begun = held_until(backends)

    async def work() -> None:
        renewing = Renewing(backends.database, clock, every_s=0.01)
        async with renewing.holding(claims[0]), renewing.holding(claims[1]):
            clock.advance(timedelta(seconds=1))
            async with asyncio.timeout(20):
                while any(now == then for now, then in zip(held_until(backends), begun, strict=True)):
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(20):
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.01)

    asyncio.run(work())


def test_what_failed_is_worked_on_anew(api: Api) -> None:
    key = api.key()
    assert add(api, key, {**WANTED, "name": "\u202e"}).status_code == 422
    assert add(api, key).status_code == 201


@pytest.mark.parametrize("bad", ["", "a b", "x" * 256, "é"])
def test_a_key_that_cannot_be_is_refused(api: Api, bad: str) -> None:
    refused = api("POST", "/v1/flags", key=api.key(), headers={"Idempotency-Key": bad.encode()}, json={})
    assert (refused.status_code, refused.json()["details"]["field"]) == (422, "Idempotency-Key")


def test_of_many_at_once_one_is_worked_on(api: Api) -> None:
    key = api.key()
    barrier = threading.Barrier(8)
    answers: list[Any] = []

    def go() -> None:
        barrier.wait()
        answers.append(add(api, key))

    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    made = {answer.json()["id"] for answer in answers if answer.status_code == 201}
    refused = [answer for answer in answers if answer.status_code != 201]
    assert len(made) == 1
    assert len(members_of(api, key)) == 2
    assert all(answer.json()["error"] == "in_progress" for answer in refused)
    assert all(1 <= int(answer.headers["Retry-After"]) <= 10 for answer in refused)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


def claim(clock: ManualClock, **given: Any) -> Claim:
    return replace(Claim("w1", "k", "print", new_id(), clock.now()), **given)


def test_a_claim_whose_process_died_is_taken_over(backends: Backends, clock: ManualClock) -> None:
    first, second = claim(clock), claim(clock)
    assert claim_key(backends.database, clock, first) == first
    assert claim_key(backends.database, clock, second) == Working(HELD)
    clock.advance(HELD)
    taken = claim_key(backends.database, clock, claim(clock, owner=second.owner))
    assert taken == replace(second, begun_at=first.begun_at)


def test_a_try_that_nobody_knows_of_goes_on_under_its_first_instant(
    backends: Backends, clock: ManualClock
) -> None:
    first = claim(clock)
    claim_key(backends.database, clock, first)
    leave_claim(backends.database, clock, first)
    clock.advance(timedelta(seconds=1))
    second = claim(clock)
    assert claim_key(backends.database, clock, second) == replace(second, begun_at=first.begun_at)


def test_whose_claim_was_taken_over_changes_nothing(backends: Backends, clock: ManualClock) -> None:
    first = claim(clock)
    claim_key(backends.database, clock, first)
    clock.advance(HELD)
    claim_key(backends.database, clock, claim(clock))
    with pytest.raises(Conflict):
        bound_to(backends.database, clock, first).transact(TOUCH.run)
    assert not answer_claim(backends.database, first, KeptAnswer(201, {}, "x"))


def test_what_took_effect_is_not_done_again_though_its_answer_is_lost(
    backends: Backends, clock: ManualClock
) -> None:
    first = claim(clock)
    claim_key(backends.database, clock, first)
    bound_to(backends.database, clock, first).transact(TOUCH.run)
    clock.advance(HELD)
    assert claim_key(backends.database, clock, claim(clock)) == AnswerLost()
    drop_claim(backends.database, clock, first)
    assert claim_key(backends.database, clock, claim(clock)) == AnswerLost()


def test_a_key_is_free_again_after_a_day(backends: Backends, clock: ManualClock) -> None:
    first = claim(clock)
    claim_key(backends.database, clock, first)
    answer_claim(backends.database, first, KeptAnswer(201, {"etag": "x"}, "sealed"))
    clock.advance(timedelta(hours=23, minutes=59))
    assert claim_key(backends.database, clock, claim(clock)) == KeptAnswer(201, {"etag": "x"}, "sealed")
    assert claim_key(backends.database, clock, claim(clock, fingerprint="other")) == OtherRequest()
    clock.advance(timedelta(minutes=1))
    later = claim(clock, fingerprint="other")
    assert claim_key(backends.database, clock, later) == later
