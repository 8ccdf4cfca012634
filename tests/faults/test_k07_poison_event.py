"""What is no event, or cannot be taken, goes to the dead stream with its reason; the others flow on.

The verdicts are the same on both databases, and what was buried keeps its bytes.
"""

import base64
from typing import Any

import orjson
import pytest
from redis import Redis

from shared.dead_stream import list_dead, requeue
from shared.keys import GROUP
from tests.rooms import tree
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import KEYS, PLACED, WORKSPACE
from tests.waiting import poll

Raw = dict[bytes, bytes]


def entry(payload: bytes, **changed: bytes) -> Raw:
    """Make an entry that is in order but for its payload, and for what is changed."""
    fields = {"type": PLACED.encode(), "workspaceId": WORKSPACE.encode(), "payload": payload, **changed}
    return {name.encode(): value for name, value in fields.items()}


def without(name: str) -> Raw:
    return {key: value for key, value in entry(b"{}").items() if key != name.encode()}


BAD: list[tuple[str, Raw]] = [
    ("type: is not UTF-8", entry(b"{}", type=b"order.\xff\xfe")),
    ("payload: is not UTF-8", entry(b'{"a": "\xff"}')),
    ("payload: is not UTF-8", entry(b'{"a": "\xed\xa0\x80"}')),
    ("payload: is missing", without("payload")),
    ("workspaceId: is missing", without("workspaceId")),
    ("type: is missing", without("type")),
    ("type: is missing", {b"reason": b"a name of ours", b"entry": b"and another"}),
    ("payload: holds NaN, which is not JSON", entry(b'{"a": NaN}')),
    ("payload: holds an integer beyond 64 bits", entry(b'{"a": ' + b"9" * 4301 + b"}")),
    ("payload: is nested more than 32 levels deep", entry(b'{"a":' * 5000 + b"1" + b"}" * 5000)),
    ("payload: has a duplicate key: 'a'", entry(b'{"a": 1, "a": 2}')),
    ("entry: is larger than 256 KiB", entry(b'{"a": "' + b"x" * 300 * 1024 + b'"}')),
    ("entry: is larger than 256 KiB", entry(b'{"a": "' + b"x" * 20_000_000 + b'"}')),
]
MENDED = [(b'{"name": "a\\u0000b"}', "a\ufffdb"), (b'{"name": "\\ud800"}', "\ufffd")]


def buried_bytes(fields: Raw) -> Raw:
    """Give a dead entry's fields as they were before it was buried."""
    pairs = orjson.loads(fields.get(b"raw", b"[]"))
    restored = {base64.b64decode(name): base64.b64decode(value) for name, value in pairs}
    ours = (b"reason", b"error", b"entry", b"raw")
    return {name: value for name, value in fields.items() if name not in ours} | restored


def test_bad_entries_do_not_stop_good_ones(opened: Opener, redis_client: Redis) -> None:
    client: Any = redis_client
    site = opened()
    automation_id = site.automation(site.hook("/one"))
    site.fleet.start("worker")
    for _, fields in BAD:
        site.publish(2)
        client.xadd(KEYS.stream, fields)
    site.fleet.start("matcher")
    site.await_ended(len(site.published))
    poll(lambda: client.xlen(KEYS.dead_stream) == len(BAD))
    check_account(site)
    assert {(run.status, run.automation_id) for run in site.runs()} == {("SUCCEEDED", automation_id)}
    dead = list_dead(site.backends.redis, KEYS, 100)[::-1]
    assert [each.reason.partition(" (")[0] for each in dead] == [reason for reason, _ in BAD]
    for shown, (_, kept), (_, original) in zip(dead, client.xrange(KEYS.dead_stream), BAD, strict=True):
        assert shown.is_cut or buried_bytes(kept) == original


@pytest.mark.parametrize(("payload", "name"), MENDED)
def test_a_text_that_sql_cannot_hold_is_mended_and_run(
    opened: Opener, redis_client: Redis, payload: bytes, name: str
) -> None:
    client: Any = redis_client
    site = opened()
    site.automation(site.hook("/one"))
    client.xadd(KEYS.stream, entry(payload))
    for room in ("matcher", "worker"):
        site.fleet.start(room)
    site.await_ended(1)
    (run,) = site.runs()
    assert (run.status, tree(run.input)["payload"]) == ("SUCCEEDED", {"name": name})


def test_an_entry_that_is_given_up_can_be_put_back(opened: Opener, redis_client: Redis) -> None:
    site = opened(CLAIM_IDLE_S=0.2)
    site.automation(site.hook("/one"))
    site.backends.redis.xgroup_create(KEYS.stream, GROUP, id="0", mkstream=True)
    site.publish()
    ((_, ((entry_id, _),)),) = site.backends.redis.xreadgroup(GROUP, "ghost", {KEYS.stream: ">"})
    for _ in range(5):  # as if five matchers had died of it
        redis_client.xclaim(KEYS.stream, GROUP, "ghost", 0, [entry_id])
    site.fleet.start("matcher")
    site.fleet.start("worker")
    poll(lambda: redis_client.xlen(KEYS.dead_stream) == 1)
    (dead,) = list_dead(site.backends.redis, KEYS, 10)
    assert dead.entry_id == entry_id.decode()
    assert "was handed out" in dead.reason
    assert site.runs() == []
    assert list(requeue(site.backends.redis, KEYS, [dead.id])) == [(dead.id, None)]
    site.await_ended(1)
    check_account(site)
    assert site.statuses() == ["SUCCEEDED"]
    assert redis_client.xlen(KEYS.dead_stream) == 0
