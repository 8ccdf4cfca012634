"""What the conditions of a delayed automation see of its subject, and what they read of it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.events import Event
from shared.model.subjects import SubjectRow, SubjectWrite, merge, project, subject_of
from shared.rules.standing_scope import WHOLE, Reads, reads_at, standing_scope
from shared.rules.values import Absence, look_up
from tests.matching import make_event

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def row(type_: str, id_: str, **state: object) -> SubjectRow:
    return merge(None, SubjectWrite("w1", type_, id_, (1, 0), "id:1", state))


def seen(event: Event, subject: SubjectRow, path: str, message: Mapping[str, Any] | None = None) -> object:
    """Look at a path, which reads alike under `payload`."""
    scope = standing_scope(event, subject, message, NOW)
    found = look_up(scope, tuple(path.split(".")))
    if path.split(".", maxsplit=1)[0] not in {"type", "now"}:
        assert look_up(scope, ("payload", *path.split("."))) == found
    return None if found is Absence.ABSENT else found


RECORD = make_event(
    "record.updated",
    {
        "recordId": "r1",
        "databaseId": "d1",
        "properties": {"status": "old", "gone": 1},
        "before": {"status": "older"},
        "changedProperties": ["status"],
    },
)
PAGE = make_event(
    "page.updated",
    {"pageId": "p1", "title": "Old", "gone": 1, "before": {"title": "Older"}, "changedProperties": ["title"]},
)
CONVERSATION = make_event(
    "conversation.updated", {"conversation": {"id": 17, "status": "old", "gone": 1}, "actor": "x"}
)
CONTACT = make_event("contact.updated", {"contact": {"id": "k1", "name": "Old", "gone": 1}})
ORDER = make_event(
    "order.placed", {"subject": {"type": "order", "id": "o1", "state": {"total": 1, "gone": 1}}, "total": 1}
)
BARE = make_event("order.placed", {"subject": {"type": "order", "id": "o1", "state": "placed"}})
NAMED = make_event("order.placed", {"subject": {"type": "contact", "id": "k1", "state": {"name": "Old"}}})
MAIL = make_event("conversation.updated", {"conversation": {"id": "c1"}, "subject": "Hello"})


@pytest.mark.parametrize(
    ("event", "subject", "paths"),
    [
        (
            RECORD,
            row("record", "r1", status="new", more=2),
            {
                "properties": {"status": "new", "more": 2},
                "record.status": "new",
                "record.id": "r1",
                "recordId": "r1",
                "databaseId": "d1",
                "before.status": "older",
                "changedProperties.0": "status",
                "type": "record.updated",
                "now": NOW,
                "status": None,
                "subject": None,
            },
        ),
        (
            PAGE,
            row("page", "p1", title="New"),
            {
                "title": "New",
                "page": {"title": "New", "id": "p1"},
                "gone": None,
                "pageId": "p1",
                "before.title": "Older",
            },
        ),
        (
            CONVERSATION,
            row("conversation", "17", status="new"),
            {"conversation": {"status": "new", "id": "17"}, "actor": "x", "subject": None, "message": None},
        ),
        (CONTACT, row("contact", "k1", name="New"), {"contact": {"name": "New", "id": "k1"}}),
        (
            ORDER,
            row("order", "o1", total=2, id="own"),
            {
                "order": {"total": 2, "id": "o1"},
                "subject": {"type": "order", "id": "o1", "state": {"total": 2, "id": "own"}},
                "total": 1,
            },
        ),
        (BARE, row("order", "o1", state="paid"), {"order.state": "paid", "subject.state": "paid"}),
        (
            NAMED,
            row("contact", "k1", name="New"),
            {
                "contact.name": "New",
                "subject": {"type": "contact", "id": "k1", "state": {"name": "New"}},
            },
        ),
        (MAIL, row("conversation", "c1", status="new"), {"subject": "Hello", "conversation.status": "new"}),
    ],
)
def test_the_present_state_stands_where_the_event_told_of_it(
    event: Event, subject: SubjectRow, paths: dict[str, object]
) -> None:
    assert {path: seen(event, subject, path) for path in paths} == paths


@pytest.mark.parametrize("event", [RECORD, PAGE, CONTACT, ORDER, BARE, NAMED])
def test_of_what_an_event_has_just_told_all_reads_as_it_told_it(event: Event) -> None:
    found, change = subject_of(event), project(event)
    assert found is not None
    assert change is not None
    scope = standing_scope(event, merge(None, change), None, NOW)
    payload = scope["payload"]
    assert {name: payload[name] for name in event.payload} == event.payload
    assert {name: scope[name] for name in event.payload} == event.payload


def test_the_message_that_an_episode_hangs_on_stands_under_its_name() -> None:
    told = {"id": "m1", "direction": "incoming", "files": 2}
    event = make_event("message.created", {"conversation": {"id": "c1"}, "message": told})
    subject = row("conversation", "c1", status="open")
    newer = {"id": "m2", "direction": "outgoing", "private": False}
    assert seen(event, subject, "message") == told
    assert seen(event, subject, "message", newer) == newer
    assert seen(event, subject, "message", {"id": "m1", "private": False}) == told
    assert seen(event, subject, "conversation.status", newer) == "open"
    assert event.payload["message"] is told


@pytest.mark.parametrize(
    ("path", "type_", "reads"),
    [
        ("properties.status", "record", {"status"}),
        ("payload.properties.status.0", "record", {"status"}),
        ("record.status", "record", {"status"}),
        ("record.id", "record", set()),
        ("properties.id", "record", {"id"}),
        ("properties", "record", WHOLE),
        ("record", "record", WHOLE),
        ("payload", "record", WHOLE),
        ("status", "record", set()),
        ("before.status", "record", set()),
        ("databaseId", "record", set()),
        ("conversation.status", "record", set()),
        ("subject", "record", set()),
        ("subject.state.status", "record", {"status"}),
        ("title", "page", {"title"}),
        ("payload.title", "page", {"title", "payload"}),
        ("page.title", "page", {"title"}),
        ("page", "page", WHOLE),
        ("page.id", "page", set()),
        ("pageId", "page", set()),
        ("before.title", "page", set()),
        ("now", "page", set()),
        ("subject", "page", {"subject"}),
        ("conversation.labels.0", "conversation", {"labels"}),
        ("conversation.customAttributes.tier", "conversation", {"customAttributes"}),
        ("conversation", "conversation", WHOLE),
        ("conversation.id", "conversation", set()),
        ("message.content", "conversation", set()),
        ("contact.name", "conversation", set()),
        ("contact.name", "contact", {"name"}),
        ("order.total", "order", {"total"}),
        ("order.id", "order", set()),
        ("subject.state.total", "order", {"total"}),
        ("subject.state.id", "order", {"id"}),
        ("subject.state", "order", WHOLE),
        ("subject", "order", WHOLE),
        ("subject.id", "order", set()),
        ("total", "order", set()),
    ],
)
def test_a_path_reads_the_fields_that_it_leads_to(path: str, type_: str, reads: set[str] | Reads) -> None:
    wanted = reads if isinstance(reads, Reads) else Reads(frozenset(reads))
    assert reads_at(tuple(path.split(".")), type_) == wanted


NAMES = [
    "a",
    "id",
    "type",
    "payload",
    "subject",
    "message",
    "state",
    "page",
    "record",
    "order",
    "now",
    "before",
]
HEADS = [
    "payload",
    "properties",
    "record",
    "page",
    "conversation",
    "contact",
    "order",
    "subject",
    "message",
    "pageId",
]
EVENTS = [RECORD, PAGE, CONVERSATION, CONTACT, ORDER, BARE, NAMED, MAIL]
OWN_TYPES = ["message", "payload", "subject", "type", "now", "properties", "before"]


def own_event(type_: str) -> Event:
    return make_event("order.placed", {"subject": {"type": type_, "id": "o1", "state": {"a": 1}}})


@given(
    event=st.sampled_from([*EVENTS, *map(own_event, OWN_TYPES)]),
    state=st.dictionaries(st.sampled_from(NAMES), st.sampled_from([1, {"a": 1}]), min_size=1),
    path=st.lists(st.sampled_from([*HEADS, *OWN_TYPES, *NAMES]), min_size=1, max_size=4),
    source=st.data(),
)
def test_a_field_that_no_path_reads_changes_nothing_at_its_end(
    event: Event, state: dict[str, object], path: list[str], source: st.DataObject
) -> None:
    ref = subject_of(event)
    assert ref is not None
    reads = reads_at(tuple(path), ref.type)
    changed = source.draw(st.sampled_from(sorted(state)))
    others = {name: value for name, value in state.items() if name != changed}
    before, after = (
        look_up(standing_scope(event, row(ref.type, ref.id, **told), None, NOW), tuple(path))
        for told in (state, {**others, changed: source.draw(st.sampled_from([2, {"a": 2}]))})
    )
    assert reads.is_whole or changed in reads.names or before == after
