"""The publishing client against a real Redis, and one that refuses, is frozen, is full, or loses answers."""

import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from knockon import Publisher
from knockon.client import EventDraft, PublishError
from knockon.embedded import RedisProcess, start_redis
from shared.model.events import Event, decode_entry

STREAM = "factory:events"


@pytest.fixture
def publisher(redis_url: str) -> Iterator[Publisher]:
    with Publisher(redis_url) as opened:
        yield opened


@pytest.fixture
def own_redis() -> Iterator[RedisProcess]:
    """Give a server of this test's own, in a folder whose path is short enough for a socket."""
    folder = Path(mkdtemp(prefix="knockon-"))
    server = start_redis(folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


def entries(redis_client: Redis, key: str = STREAM) -> list[Event]:
    found: list[Any] = redis_client.xrange(key)  # type: ignore[assignment]
    return [decode_entry(entry_id.decode(), fields) for entry_id, fields in found]


def test_an_event_arrives_as_the_matcher_reads_it(publisher: Publisher, redis_client: Redis) -> None:
    at = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    entry_id = publisher.publish("order.placed", "w1", {"name": "Zoë 😀"}, id="o-17", occurred_at=at)
    [event] = entries(redis_client)
    assert (event.entry_id, event.type, event.workspace_id) == (entry_id, "order.placed", "w1")
    assert (event.payload, event.id, event.occurred_at) == ({"name": "Zoë 😀"}, "o-17", at)
    assert (event.source, event.context, event.sanitized) == (None, None, False)


def test_an_event_always_has_an_id(publisher: Publisher, redis_client: Redis) -> None:
    publisher.publish("order.placed", "w1", {})
    publisher.publish("order.placed", "w1", {})
    one, other = (event.id for event in entries(redis_client))
    assert one
    assert other
    assert one != other
    assert UUID(one).version == 7


def test_prefix_stream_and_source_are_those_of_the_deployment(redis_url: str, redis_client: Redis) -> None:
    with Publisher(redis_url, stream="my:events", prefix="blue:", source="shop") as publisher:
        publisher.publish("order.placed", "w1", {})
        publisher.publish_many([EventDraft("order.paid", "w1", {}, source="till")])
    assert [event.source for event in entries(redis_client, "blue:my:events")] == ["shop", "till"]


def test_many_events_keep_their_order(publisher: Publisher, redis_client: Redis) -> None:
    drafts = [EventDraft("order.placed", "w1", {"n": n}) for n in range(1_203)]
    entry_ids = publisher.publish_many(iter(drafts))
    found = entries(redis_client)
    assert [event.entry_id for event in found] == entry_ids
    assert [(event.id, event.payload["n"]) for event in found] == [(d.id, n) for n, d in enumerate(drafts)]
    assert publisher.publish_many([]) == []


def test_the_stream_is_kept_near_its_length(redis_url: str, redis_client: Redis) -> None:
    with Publisher(redis_url, maxlen=100) as publisher:
        publisher.publish_many(EventDraft("order.placed", "w1", {"n": n}) for n in range(2_000))
    assert 100 <= int(redis_client.xlen(STREAM)) < 400


def nested(levels: int) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for _ in range(levels - 1):
        tree = {"a": tree}
    return tree


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - refused for this very reason


class Wide(IntEnum):
    """A number that the engine has no room for."""

    BEYOND = 2**63


@dataclass
class Holder:
    """What orjson writes as an object."""

    value: object


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("type", {"type": "order"}),
        ("type", {"type": "Order.placed"}),
        ("type", {"type": None}),
        ("workspace_id", {"workspace_id": ""}),
        ("workspace_id", {"workspace_id": 17}),
        ("workspace_id", {"workspace_id": "w\n"}),
        ("id", {"id": "i" * 201}),
        ("source", {"source": "s" * 101}),
        ("occurred_at", {"occurred_at": NAIVE}),
        ("occurred_at", {"occurred_at": datetime(1960, 1, 1, tzinfo=UTC)}),
        ("payload", {"payload": []}),
        ("payload", {"payload": {"a": float("nan")}}),
        ("payload", {"payload": {"a": 2**63}}),
        ("payload", {"payload": {"a": object()}}),
        ("payload", {"payload": {1: 2}}),
        ("payload", {"payload": {"a": "\ud83d"}}),
        ("payload", {"payload": {"a": "é" * 131_072}}),
        ("payload", {"payload": {"a": [0] * 10_000}}),
        ("payload", {"payload": nested(33)}),
        ("payload", {"payload": {"a": Wide.BEYOND}}),
        ("payload", {"payload": {"a": [Holder(Wide.BEYOND)]}}),
        ("payload", {"payload": {"a": Holder(float("inf"))}}),
        ("type", {"type": "automation.executed"}),
        ("id", {"id": "\ud83d"}),
        ("source", {"source": "\ud83d"}),
    ],
)
def test_what_the_engine_would_refuse_is_refused_at_once(
    publisher: Publisher, redis_client: Redis, field: str, change: dict[str, Any]
) -> None:
    wanted: dict[str, Any] = {"type": "order.placed", "workspace_id": "w1", "payload": {}, **change}
    with pytest.raises(ValueError, match=f"^{field}: "):
        publisher.publish_many([EventDraft(**wanted)])
    assert entries(redis_client) == []


def test_the_bounds_themselves_are_taken(publisher: Publisher, redis_client: Redis) -> None:
    payload = {"deep": nested(31), "ints": [2**63 - 1, -(2**63)], "many": [0] * 9_000}
    publisher.publish("a." + "b" * 98, "w" * 100, payload, id="i" * 200)
    assert entries(redis_client)[0].payload == payload


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(payload=st.dictionaries(TEXT, JSON, max_size=4))
def test_the_engine_takes_whatever_the_client_sends(
    publisher: Publisher, redis_client: Redis, payload: dict[str, Any]
) -> None:
    redis_client.flushdb()
    try:
        publisher.publish("order.placed", "w1", payload)
    except ValueError:
        return
    [event] = entries(redis_client)
    assert event.sanitized or event.payload == payload


def drafts_of(error: pytest.ExceptionInfo[PublishError]) -> tuple[str, ...]:
    return tuple(draft.id for draft in error.value.drafts)


def test_a_refusing_redis_fails_the_call_at_once() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    started = time.monotonic()
    with Publisher(f"redis://127.0.0.1:{port}/0") as publisher, pytest.raises(PublishError) as caught:
        publisher.publish("order.placed", "w1", {}, id="o-17")
    assert time.monotonic() - started < 1
    assert drafts_of(caught) == ("o-17",)


def test_a_silent_redis_fails_the_call_within_three_seconds() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        started = time.monotonic()
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        with Publisher(url) as publisher, pytest.raises(PublishError) as caught:
            publisher.publish_many([EventDraft("order.placed", "w1", {}, id="o-17")])
    assert time.monotonic() - started < 3
    assert drafts_of(caught) == ("o-17",)


def test_a_redis_that_freezes_fails_the_call_within_three_seconds(own_redis: RedisProcess) -> None:
    with Publisher(own_redis.url) as publisher:
        publisher.publish("order.placed", "w1", {})
        os.kill(own_redis.pid, signal.SIGSTOP)
        started = time.monotonic()
        try:
            with pytest.raises(PublishError) as caught:
                publisher.publish("order.placed", "w1", {}, id="o-17")
            assert time.monotonic() - started < 3
        finally:
            os.kill(own_redis.pid, signal.SIGCONT)
        assert drafts_of(caught) == ("o-17",)
        assert publisher.publish("order.placed", "w1", {}, id="o-17")


def test_a_full_redis_fails_the_call_and_is_used_again_once_there_is_room(own_redis: RedisProcess) -> None:
    with closing(Redis.from_url(own_redis.url)) as client, Publisher(own_redis.url) as publisher:
        client.config_set("maxmemory", 1)
        with pytest.raises(PublishError, match="maxmemory"):
            publisher.publish("order.placed", "w1", {})
        client.config_set("maxmemory", 0)
        assert publisher.publish("order.placed", "w1", {})


def test_a_redis_that_keeps_hanging_up_fails_the_call(redis_url: str) -> None:
    with losing_answers(redis_url, first=2, last=99) as url, Publisher(url) as publisher:
        publisher.publish("order.placed", "w1", {})
        with pytest.raises(PublishError):
            publisher.publish("order.placed", "w1", {})


def test_a_lost_answer_is_made_up_for_under_the_same_id(redis_url: str, redis_client: Redis) -> None:
    with losing_answers(redis_url, first=1, last=1) as url, Publisher(url) as publisher:
        entry_id = publisher.publish("order.placed", "w1", {}, id="o-17")
    found = entries(redis_client)
    assert [event.key for event in found] == ["id:o-17", "id:o-17"]
    assert found[-1].entry_id == entry_id


def test_one_event_is_counted_as_one() -> None:
    draft = EventDraft("order.placed", "w1", {})
    assert str(PublishError("away", [draft])) == "1 event is not confirmed: away"
    assert str(PublishError("away", [draft, draft])) == "2 events are not confirmed: away"


def test_what_redis_did_not_take_is_named(redis_url: str, redis_client: Redis) -> None:
    redis_client.set(STREAM, "no stream")
    with Publisher(redis_url) as publisher, pytest.raises(PublishError, match="WRONGTYPE") as caught:
        publisher.publish_many([EventDraft("order.placed", "w1", {}, id=name) for name in ("a", "b")])
    assert drafts_of(caught) == ("a", "b")


@contextmanager
def losing_answers(redis_url: str, first: int, last: int) -> Iterator[str]:
    """Stand before a Redis and hang up instead of passing on the answers to the first..last XADD."""
    seen = [0]
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(
            target=_serve, args=(server, redis_url, seen, range(first, last + 1)), daemon=True
        ).start()
        number = redis_url.rpartition("db=")[2]
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/{number}"


def _serve(server: socket.socket, redis_url: str, seen: list[int], lost: range) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        with client, _connect(redis_url) as redis:
            _pass_on(client, redis, seen, lost)


def _pass_on(client: socket.socket, redis: socket.socket, seen: list[int], lost: range) -> None:
    while request := client.recv(65_536):
        redis.sendall(request)
        answer = redis.recv(65_536)
        seen[0] += request.count(b"XADD")
        if b"XADD" in request and seen[0] in lost:
            return
        client.sendall(answer)


def _connect(redis_url: str) -> socket.socket:
    where = urlsplit(redis_url)
    if where.scheme == "unix":
        opened = socket.socket(socket.AF_UNIX)
        opened.connect(where.path)
        return opened
    return socket.create_connection((where.hostname or "127.0.0.1", where.port or 6379))


@pytest.mark.parametrize(
    "url", ["redis://:pw/SECRET@127.0.0.1:1/0", "redis://u:SECRET@h:port/0", "http://u:SECRET@h"]
)
def test_a_url_that_names_no_redis_is_refused_without_a_part_of_it(url: str) -> None:
    with pytest.raises(ValueError, match="redis_url: is no redis://") as caught:
        Publisher(url)
    assert "SECRET" not in str(caught.value)
