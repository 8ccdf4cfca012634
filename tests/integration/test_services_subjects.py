"""Subjects that are written by hand: merged under a stamp of their own, and told by one event."""

from typing import Any

import pytest

from shared.db.subjects import find_subject, project_changes
from shared.errors import BadEvent, NotFound
from shared.model.events import Event, decode_entry
from shared.model.subjects import SubjectRow, data, project
from shared.services.backends import Backends, Caller
from shared.services.subjects import SubjectFields, delete_subject, get_subject, put_subject
from shared.time.clock import ManualClock
from tests.people import CALLER, NOW


def put(backends: Backends, type_: str = "contact", id_: str = "c1", **fields: Any) -> Any:
    return put_subject(backends, CALLER, SubjectFields(type_, id_, fields))


def told(backends: Backends) -> list[Event]:
    entries = backends.redis.xrange(backends.keys.stream)
    return [decode_entry(entry_id.decode(), fields) for entry_id, fields in entries]


def stored(backends: Backends, type_: str = "contact", id_: str = "c1") -> SubjectRow:
    with backends.database.read() as conn:
        row = find_subject(conn, "w1", type_, id_)
    assert row is not None
    return row


def lay(backends: Backends, event: Event) -> int:
    change = project(event)
    assert change is not None
    return backends.database.transact(lambda conn: project_changes(conn, [change], now=NOW))


def test_a_write_merges_its_fields_and_tells_what_changed(backends: Backends) -> None:
    first, second = put(backends, name="Ada", city="Rome"), put(backends, city="Oslo")
    assert (first.was_made, first.changed) == (True, ("city", "name"))
    assert (second.was_made, second.changed) == (False, ("city",))
    seen = get_subject(backends.database, CALLER, "contact", "c1")
    assert data(seen.row) == {"name": "Ada", "city": "Oslo"}
    made, changed = told(backends)
    assert (made.type, made.payload) == (
        "contact.created",
        {"contact": {"id": "c1", "name": "Ada", "city": "Rome"}},
    )
    assert (changed.type, changed.payload["changedProperties"]) == ("contact.updated", ["city"])
    assert changed.payload["before"] == {"city": "Rome"}


def test_a_write_that_changes_nothing_is_told_by_nothing(backends: Backends) -> None:
    put(backends, name="Ada")
    again = put(backends, name="Ada")
    assert (again.changed, again.event_id, len(told(backends))) == ((), None, 1)


def test_the_event_of_a_write_carries_its_stamp_and_changes_nothing_when_it_comes_back(
    backends: Backends,
) -> None:
    for number in range(30):
        put(backends, number=number)
    events = told(backends)
    assert [event.write_stamp for event in events] == sorted(event.write_stamp for event in events)
    assert stored(backends).newest == events[-1].write_stamp != events[-1].stamp
    for event in events:
        lay(backends, event)
    assert data(stored(backends)) == {"number": 29}


def test_a_write_stands_behind_what_the_stream_told_before_by_a_clock_that_is_ahead(
    backends: Backends,
) -> None:
    put(backends, name="Ada")
    (event,) = told(backends)
    ahead = Event(
        "1900000000000-7",
        "contact.updated",
        "w1",
        {"contact": {"id": "c1", "name": "Bea"}},
        None,
        NOW,
        None,
        None,
        False,
    )
    lay(backends, ahead)
    put(backends, name="Cleo")
    assert data(stored(backends)) == {"name": "Cleo"}
    assert stored(backends).newest > ahead.stamp > event.write_stamp


def test_a_deleted_subject_is_gone_until_it_is_written_again(backends: Backends) -> None:
    put(backends, name="Ada", city="Rome")
    delete_subject(backends, CALLER, "contact", "c1")
    for gone in (
        lambda: get_subject(backends.database, CALLER, "contact", "c1"),
        lambda: delete_subject(backends, CALLER, "contact", "c1"),
    ):
        with pytest.raises(NotFound, match="there is no contact 'c1'"):
            gone()
    assert put(backends, name="Bea").was_made
    assert data(stored(backends)) == {"name": "Bea"}
    assert [event.type for event in told(backends)] == [
        "contact.created",
        "contact.deleted",
        "contact.created",
    ]


def test_a_record_has_its_database_and_a_conversation_its_own_events(backends: Backends) -> None:
    put_subject(backends, CALLER, SubjectFields("record", "r1", {"status": "new"}, "d1"))
    for status in ("pending", "open", "resolved"):
        put(backends, "conversation", "v1", status=status)
    record, *conversation = told(backends)
    assert record.payload == {"recordId": "r1", "databaseId": "d1", "properties": {"status": "new"}}
    assert [event.type for event in conversation] == [
        "conversation.created",
        "conversation.opened",
        "conversation.resolved",
    ]


def test_an_own_type_is_told_by_its_state(backends: Backends) -> None:
    put(backends, "order", "o1", id="inner", total=5)
    (event,) = told(backends)
    assert (event.type, event.payload) == (
        "order.created",
        {"subject": {"type": "order", "id": "o1", "state": {"id": "inner", "total": 5}}},
    )


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (SubjectFields("contact", "c1", {"id": "c2"}), "data.id"),
        (SubjectFields("page", "p1", {"before": 1}), "data.before"),
        (SubjectFields("record", "r1", {"@databaseId": "d"}), "data.@databaseId"),
        (SubjectFields("contact", "c1", {}, "d1"), "databaseId"),
        (SubjectFields("Contact", "c1", {"a": 1}), "type"),
        (SubjectFields("message", "m1", {"a": 1}), "payload"),
        (SubjectFields("contact", "c1", {"a": "x" * 300_000}), "entry"),
    ],
)
def test_what_no_event_could_tell_of_is_refused_and_nothing_is_written(
    backends: Backends, wanted: SubjectFields, field: str
) -> None:
    with pytest.raises(BadEvent) as refused:
        put_subject(backends, CALLER, wanted)
    assert refused.value.field == field
    with backends.database.read() as conn:
        assert find_subject(conn, "w1", wanted.type, wanted.id) is None
    assert told(backends) == []


def test_another_workspaces_subject_is_not_there(backends: Backends) -> None:
    put(backends, name="Ada")
    other = Caller("w2", "USER cli:bea")
    with pytest.raises(NotFound):
        get_subject(backends.database, other, "contact", "c1")
    with pytest.raises(NotFound):
        delete_subject(backends, other, "contact", "c1")
    with pytest.raises(NotFound, match="no workspace"):
        put_subject(backends, Caller("w3", "USER x"), SubjectFields("contact", "c1", {"a": 1}))


def test_a_write_while_the_clock_stands_still_is_later_than_the_one_before(backends: Backends) -> None:
    assert isinstance(backends.clock, ManualClock)
    stamps = [put(backends, number=number).row.newest for number in range(3)]
    assert stamps == sorted(set(stamps))
