"""An event comes many times at once, and then with another payload: it runs once, as it was at first."""

import threading
from collections.abc import Sequence

from knockon.client import EventDraft
from tests.rooms import tree
from tests.system.account import check_account
from tests.system.conftest import Opener
from tests.system.deployment import KEYS, PLACED, WORKSPACE, Deployment
from tests.waiting import poll

EVENTS = 100
THREADS = 50


def publish_at_once(site: Deployment, drafts: Sequence[EventDraft]) -> None:
    """Publish each draft on a thread of its own, all at the same moment."""
    barrier = threading.Barrier(len(drafts))

    def publish(draft: EventDraft) -> None:
        barrier.wait()
        site.publisher.publish_many([draft])

    threads = [threading.Thread(target=publish, args=(draft,)) for draft in drafts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


def count(site: Deployment, key: str) -> int:
    return int(site.backends.redis.get(key) or 0)


def test_events_published_twice_run_once(opened: Opener) -> None:
    site = opened()
    site.automation(site.hook("/one"))
    for room in ("matcher", "matcher", "worker", "worker"):
        site.fleet.start(room)
    drafts = site.publish(EVENTS)
    site.publisher.publish_many(reversed(drafts))
    site.await_ended(EVENTS)
    poll(lambda: count(site, KEYS.skipped("deduped")) == EVENTS)
    check_account(site)
    assert site.statuses() == ["SUCCEEDED"] * EVENTS
    assert len(site.receiver.deliveries()) == EVENTS


def test_one_event_from_fifty_threads_runs_once_and_another_under_its_id_is_a_conflict(
    opened: Opener,
) -> None:
    site = opened()
    site.automation(site.hook("/one"))
    matchers = [site.fleet.start("matcher") for _ in range(2)]
    site.fleet.start("worker")
    first = EventDraft(PLACED, WORKSPACE, {"total": 1}, id="o-17")
    site.published.append(first)
    publish_at_once(site, [first] * THREADS)
    poll(lambda: count(site, KEYS.skipped("deduped")) == THREADS - 1)
    publish_at_once(site, [EventDraft(PLACED, WORKSPACE, {"total": 2}, id="o-17")] * THREADS)
    poll(lambda: count(site, KEYS.count("duplicate_conflict")) == THREADS)
    site.await_ended(1)
    check_account(site)
    (run,) = site.runs()
    assert (run.status, tree(run.input)["payload"]) == ("SUCCEEDED", {"total": 1})
    assert count(site, KEYS.skipped("deduped")) == THREADS - 1
    assert any(each.has_logged("duplicate_conflict_found") for each in matchers)
