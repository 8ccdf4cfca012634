"""What is no event, or cannot be taken, goes to the dead stream with its reason; the others flow on."""

import orjson
from redis import Redis

from shared.dead_stream import list_dead, requeue
from shared.keys import GROUP
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import KEYS, PLACED, WORKSPACE
from tests.waiting import poll

GOOD = 20
ORDINARY: dict[str, str | bytes] = {"type": PLACED, "workspaceId": WORKSPACE, "payload": "{}"}
BAD: dict[str, dict[str, str | bytes]] = {
    "type: is not UTF-8": {**ORDINARY, "type": b"order.\xff\xfe"},
    "payload: is not UTF-8": {**ORDINARY, "payload": b'{"a": "\xff"}'},
    "entry: is larger than 256 KiB": {**ORDINARY, "payload": orjson.dumps({"a": "x" * 300 * 1024})},
    "payload: is missing": {"type": PLACED, "workspaceId": WORKSPACE},
    "workspaceId: is missing": {"type": PLACED, "payload": "{}"},
    "type: is missing": {"workspaceId": WORKSPACE, "payload": "{}"},
}
ODD = {**ORDINARY, "payload": '{"name": "a\\u0000b"}'}


def test_bad_entries_do_not_stop_good_ones(opened: Opener, redis_client: Redis) -> None:
    site = opened()
    automation_id = site.automation(site.hook("/one"))
    site.fleet.start("worker")
    for fields in BAD.values():
        site.publish(GOOD // 10)
        site.backends.redis.xadd(KEYS.stream, fields)
    odd = site.backends.redis.xadd(KEYS.stream, ODD)
    site.fleet.start("matcher")
    site.await_ended(len(site.published) + 1)
    poll(lambda: redis_client.xlen(KEYS.dead_stream) == len(BAD))
    dead = list_dead(site.backends.redis, KEYS, 100)
    assert {entry.reason.partition(" (")[0] for entry in dead} == set(BAD)
    mended = site.one("SELECT * FROM automation_runs WHERE entry_id = :id", id=odd.decode())
    assert (mended.status, mended.automation_id) == ("SUCCEEDED", automation_id)
    assert set(site.statuses()) == {"SUCCEEDED"}


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
    assert requeue(site.backends.redis, KEYS, [dead.id]) == 1
    site.await_ended(1)
    check_account(site)
    assert site.statuses() == ["SUCCEEDED"]
    assert redis_client.xlen(KEYS.dead_stream) == 0
