"""Messages that events tell of become rows, once, on both databases."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.db.types import must_instant
from shared.dead_stream import list_dead
from shared.model.event_fields import format_instant
from shared.model.events import Context
from shared.services.backends import Backends
from shared.time.clock import SystemClock, from_epoch_ms
from tests.matching import Post, open_post


@pytest.fixture
def post(backends: Backends) -> Post:
    return open_post(replace(backends, clock=SystemClock()))


def published(post: Post, message: Any, **given: Any) -> Any:
    """Publish one message of the conversation c1 and give its row."""
    post.publish("message.created", {"conversation": {"id": "c1"}, "message": message}, **given)
    assert post.step() == 1
    return post.rows("SELECT * FROM messages ORDER BY stamp_ms, stamp_seq")[-1]


def test_a_message_is_kept_as_it_was_told(post: Post) -> None:
    told = {
        "id": "m1",
        "direction": "outgoing",
        "senderType": "agent",
        "senderId": 7,
        "agentId": "g1",
        "content": "Hello",
        "private": True,
        "createdAt": "2026-03-01T10:00:00Z",
    }
    row = published(post, told)
    assert (row.workspace_id, row.id, row.conversation_id, row.content) == ("w1", "m1", "c1", "Hello")
    assert (row.direction, row.sender_type, row.sender_id, row.agent_id) == ("outgoing", "agent", "7", "g1")
    assert (row.private, row.auto_submitted, row.run_id) == (1, 0, None)
    assert str(row.created_at).replace("T", " ").startswith("2026-03-01 10:00:00")


def test_a_message_that_is_told_of_again_stays_as_it_is(post: Post) -> None:
    published(post, {"id": "m1", "content": "first"})
    published(post, {"id": "m1", "content": "second"})
    published(post, {"id": "m1", "content": "other workspace"}, workspace_id="w2")
    rows = post.rows("SELECT workspace_id, content FROM messages ORDER BY workspace_id")
    assert [tuple(row) for row in rows] == [("w1", "first"), ("w2", "other workspace")]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({}, ("incoming", "contact", 0)),
        ({"direction": "sideways" * 9, "senderType": "ghost" * 9}, ("incoming", "contact", 0)),
        ({"senderType": "bot"}, ("outgoing", "bot", 0)),
        ({"direction": "outgoing"}, ("outgoing", "agent", 0)),
        ({"direction": "incoming", "autoSubmitted": "auto-replied"}, ("incoming", "contact", 1)),
        ({"direction": "incoming", "autoSubmitted": "no"}, ("incoming", "contact", 0)),
        ({"direction": "incoming", "precedence": "bulk"}, ("incoming", "contact", 1)),
        ({"direction": "outgoing", "autoSubmitted": True}, ("outgoing", "agent", 1)),
        (
            {"direction": ["x"], "senderType": {"a": 1}, "senderId": [1], "content": 5},
            ("incoming", "contact", 0),
        ),
    ],
)
def test_what_is_not_said_is_the_contacts_own(
    post: Post, told: dict[str, Any], kept: tuple[str, str, int]
) -> None:
    row = published(post, {"id": "m1", **told})
    assert (row.direction, row.sender_type, row.auto_submitted) == kept
    assert list_dead(post.backends.redis, post.backends.keys, 10) == []


def test_a_message_without_an_id_of_its_own_has_that_of_its_event(post: Post) -> None:
    assert published(post, {"content": "a"}, id="e1", source="shop").id == "s:shop|e1"
    assert published(post, {"id": "x" * 5_000}, id="e2").id == "id:e2"
    run_id = "0190aaaa-0000-7000-8000-000000000001"
    row = published(post, {"id": "m3"}, context=Context("a1", run_id, run_id, 1, (5_000, 3)))
    [ours] = post.rows("SELECT * FROM messages WHERE id = 'm3'")
    assert (ours.run_id, ours.stamp_ms, ours.stamp_seq) == (run_id, 5_000, 3)
    assert row.id != "m3"


@pytest.mark.parametrize("message", [None, "text", [1]])
def test_an_event_without_a_message_makes_no_row(post: Post, message: Any) -> None:
    post.publish("message.created", {"conversation": {"id": "c1"}, "message": message})
    post.publish("conversation.updated", {"conversation": {"id": "c1"}, "message": {"id": "m1"}})
    assert post.step() == 2
    assert post.rows("SELECT * FROM messages") == []


def test_a_message_from_the_future_has_just_been_written(post: Post) -> None:
    row = published(post, {"id": "m1", "createdAt": "2199-01-01T00:00:00Z"})
    assert must_instant(row.created_at) == from_epoch_ms(row.stamp_ms)


def test_a_clock_that_is_a_little_ahead_is_believed(post: Post) -> None:
    ahead = post.backends.clock.now() + timedelta(minutes=2)
    row = published(post, {"id": "m1", "createdAt": format_instant(ahead)})
    assert abs(must_instant(row.created_at) - ahead) < timedelta(milliseconds=1)
