"""Automations that start one another come to an end by themselves."""

from tests.system.account import check_account
from tests.system.conftest import Opener


def emit(event_type: str) -> dict[str, object]:
    return {"type": "EMIT_EVENT", "config": {"event_type": event_type}}


def test_a_chain_ends_at_the_depth_limit(opened: Opener) -> None:
    site = opened()
    site.automation(emit("game.pong"), on="game.ping")
    site.automation(emit("game.ping"), on="game.pong")
    site.fleet.start("matcher")
    site.fleet.start("worker")
    site.publish(event_type="game.ping")
    site.await_ended(6)
    check_account(site)
    runs = site.runs()
    assert [run.depth for run in runs] == [0, 1, 2, 3, 4, 5]
    assert [run.skip_reason for run in runs] == [None] * 5 + ["depth_limit"]
    assert {run.root_run_id for run in runs} == {runs[0].id}
    sent = site.backends.redis.xrange("factory:events")
    types = [fields[b"type"].decode() for _, fields in sent]
    assert sorted(types) == sorted(["game.ping", "game.pong"] * 3 + ["automation.executed"])


def test_an_automation_does_not_start_itself(opened: Opener) -> None:
    site = opened()
    site.automation(emit("order.placed"))
    site.fleet.start("matcher")
    site.fleet.start("worker")
    site.publish()
    site.await_ended(2)
    check_account(site)
    assert [run.skip_reason for run in site.runs()] == [None, "self_trigger"]
