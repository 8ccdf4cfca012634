"""Subjects: what an event changes, and how writes in any order end as one row."""

from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.events import Context, Event
from shared.model.field_writes import KEPT
from shared.model.stamps import Stamp
from shared.model.subject_json import row_from_json, row_to_json
from shared.model.subjects import (
    SubjectDelete,
    SubjectRef,
    SubjectRow,
    SubjectWrite,
    changed_fields,
    data,
    is_stale,
    local_stamp,
    merge,
    project,
    subject_of,
)


def event(type_: str, payload: dict[str, Any], context: Context | None = None) -> Event:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Event("100-1", type_, "w1", payload, "e1", at, context, None, sanitized=False)


Change = SubjectWrite | SubjectDelete


def write(ms: int, key: str | None = None, /, **fields: object) -> SubjectWrite:
    return SubjectWrite("w1", "conversation", "c1", (ms, 0), key or f"id:{ms}", fields)


def delete(ms: int) -> SubjectDelete:
    return SubjectDelete("w1", "conversation", "c1", (ms, 0), f"id:{ms}")


def row_of(*writes: Change) -> SubjectRow:
    row = None
    for one in writes:
        row = merge(row, one)
    assert row is not None
    return row


def projected(type_: str, payload: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    found = project(event(type_, payload))
    assert isinstance(found, SubjectWrite)
    return found.type, found.id, data(merge(None, found))


@pytest.mark.parametrize(
    ("type_", "payload", "subject", "fields"),
    [
        (
            "record.updated",
            {"recordId": "r1", "databaseId": "d1", "properties": {"status": "new", "n": None}, "before": {}},
            ("record", "r1"),
            {"status": "new", "n": None},
        ),
        ("record.created", {"recordId": "r1"}, ("record", "r1"), {}),
        (
            "form.submitted",
            {"formId": "f1", "recordId": "r1", "properties": {"mail": "a@b.test"}, "answers": {"q": 1}},
            ("record", "r1"),
            {"mail": "a@b.test"},
        ),
        (
            "page.created",
            {"pageId": "p1", "title": "Plan", "changedProperties": ["title"]},
            ("page", "p1"),
            {"title": "Plan"},
        ),
        (
            "conversation.opened",
            {"conversation": {"id": 17, "status": "open", "labels": ["a"]}, "extra": 1},
            ("conversation", "17"),
            {"status": "open", "labels": ["a"]},
        ),
        (
            "message.created",
            {"conversation": {"id": "c1", "status": "open"}, "message": {"id": "m1", "content": "hi"}},
            ("conversation", "c1"),
            {"status": "open"},
        ),
        ("contact.updated", {"contact": {"id": "k1", "name": "Zoë"}}, ("contact", "k1"), {"name": "Zoë"}),
        (
            "order.placed",
            {"subject": {"type": "order", "id": "o1", "state": {"total": 5}}, "total": 5},
            ("order", "o1"),
            {"total": 5},
        ),
        (
            "order.paid",
            {"subject": {"type": "order", "id": "o1", "state": "paid"}},
            ("order", "o1"),
            {"state": "paid"},
        ),
        ("message.read", {"subject": {"type": "message", "id": 5}}, ("message", "5"), {}),
    ],
)
def test_an_event_writes_to_its_subject(
    type_: str, payload: dict[str, Any], subject: tuple[str, str], fields: dict[str, Any]
) -> None:
    assert projected(type_, payload) == (*subject, fields)
    assert subject_of(event(type_, payload)) == SubjectRef(*subject)


@pytest.mark.parametrize(
    ("type_", "payload"),
    [
        ("record.updated", {}),
        ("record.updated", {"recordId": ""}),
        ("record.updated", {"recordId": True, "subject": {"type": "order", "id": "o1"}}),
        ("form.submitted", {"formId": "f1"}),
        ("page.updated", {"pageId": ["p1"]}),
        ("conversation.updated", {"conversation": "c1"}),
        ("contact.updated", {"contact": {"id": "k" * 201}}),
        ("automation.executed", {"runId": "r1"}),
        ("order.placed", {"subject": {"type": "order"}}),
        ("order.placed", {"subject": {"type": "o" * 101, "id": "o1"}}),
        ("order.placed", {"subject": None}),
    ],
)
def test_an_event_about_nothing_changes_nothing(type_: str, payload: dict[str, Any]) -> None:
    assert project(event(type_, payload)) is None
    assert subject_of(event(type_, payload)) is None


def test_a_deletion_deletes_only_its_own_type() -> None:
    order = {"subject": {"type": "order", "id": "o1"}}
    assert project(event("order.deleted", order)) == SubjectDelete("w1", "order", "o1", (100, 1), "id:e1")
    assert isinstance(project(event("invoice.deleted", order)), SubjectWrite)
    assert isinstance(project(event("order.line.deleted", order)), SubjectWrite)
    assert isinstance(project(event("record.deleted", {"recordId": "r1"})), SubjectDelete)
    assert isinstance(project(event("conversation.deleted", {"conversation": {"id": 1}})), SubjectDelete)


def test_the_carried_stamp_counts_before_the_entry_id() -> None:
    context = Context("a1", "r1", "r1", 1, (50, 7))
    found = project(event("contact.updated", {"contact": {"id": "k1", "name": "Zoë"}}, context))
    assert found is not None
    assert found.stamp == (50, 7)


def test_a_record_remembers_its_database_beside_its_fields() -> None:
    found = project(event("record.created", {"recordId": "r1", "databaseId": "d1", "properties": {"a": 1}}))
    assert found is not None
    row = merge(None, found)
    assert (row.database_id, data(row)) == ("d1", {"a": 1})
    assert row_of(write(1, a=1)).database_id is None


def test_a_database_whose_id_is_a_number_goes_by_its_digits() -> None:
    found = project(event("record.created", {"recordId": 1, "databaseId": 7}))
    assert found is not None
    assert (found.id, merge(None, found).database_id) == ("1", "7")


def test_the_later_write_wins_field_by_field() -> None:
    row = row_of(write(2, status="open", owner="x"), write(1, status="new", label="l"), write(3, owner=None))
    assert data(row) == {"status": "open", "owner": None, "label": "l"}
    assert row.fields["status"] == (((1, 0), "new"), ((2, 0), "open"))
    assert [touch.event_key for touch in row.touches] == ["id:1", "id:2", "id:3"]
    assert row.newest == (3, 0)


def test_a_known_event_gives_back_the_very_row() -> None:
    row = row_of(write(1, status="new"), write(2, status="open"))
    assert merge(row, write(1, status="new")) is row


def test_a_published_again_event_cannot_revert_newer_data() -> None:
    for order in permutations(
        [write(1, "id:a", status="new"), write(2, status="open"), write(3, "id:a", status="new")]
    ):
        assert data(row_of(*order)) == {"status": "open"}


def test_a_subject_is_deleted_until_something_newer_is_written() -> None:
    written: list[Change] = [write(1, a=1), delete(2)]
    for order in permutations(written):
        assert row_of(*order).deleted == (2, 0)
    for again in permutations([*written, write(3, b=2)]):
        assert row_of(*again).deleted is None
    assert data(row_of(write(1, a=1), delete(2))) == {"a": 1}


def test_a_subject_that_is_made_again_has_none_of_its_earlier_fields() -> None:
    changes: list[Change] = [write(1, a=1, b=1), delete(2), write(3, b=2)]
    for order in permutations(changes):
        assert data(row_of(*order)) == {"b": 2}
    assert data(row_of(*changes, write(1, "id:late", c=9))) == {"b": 2}
    assert data(row_of(*changes, delete(4))) == {"b": 2}
    assert data(row_of(*changes, delete(4), write(5))) == {}


def test_a_record_that_is_made_again_is_in_the_database_that_it_then_names() -> None:
    first = SubjectWrite("w1", "record", "r1", (1, 0), "id:1", {"@databaseId": "d1"})
    gone = SubjectDelete("w1", "record", "r1", (2, 0), "id:2")
    assert row_of(first, gone).database_id == "d1"
    assert row_of(first, gone, SubjectWrite("w1", "record", "r1", (3, 0), "id:3", {})).database_id is None


def test_many_later_writes_do_not_bring_an_earlier_life_back() -> None:
    changes: list[Change] = [write(1, a=1), delete(2), *(write(ms, n=ms) for ms in range(3, 60))]
    assert data(row_of(*changes)) == {"n": 59}
    assert len(row_of(*changes).touches) == KEPT + 1
    assert row_of(*changes) == row_of(*reversed(changes))


@pytest.mark.parametrize(
    ("value", "changes"), [(1, False), (1.0, False), (True, True), ("1", True), (None, True), ([1], True)]
)
def test_true_is_not_one_and_one_is_the_number_however_it_is_written(value: object, changes: bool) -> None:
    row = row_of(write(1, n=1))
    assert changed_fields(row, {"n": value}) == ({"n": value} if changes else {})
    assert is_stale(merge(row, write(2, n=value)), "n", (1, 0), ()) is changes


def test_only_the_last_twenty_writes_are_kept() -> None:
    row = row_of(*(write(ms, n=ms) for ms in range(1, 31)))
    assert [value for _, value in row.fields["n"]] == list(range(11, 31))
    assert len(row.touches) == KEPT
    assert data(merge(row, write(5, "id:late", n="late", m="new"))) == {"n": 30, "m": "new"}


WRITES = st.lists(
    st.tuples(st.integers(1, 12), st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)), st.booleans()),
    max_size=KEPT,
    unique_by=lambda drawn: drawn[0],
)


def made(drawn: list[tuple[int, dict[str, int], bool]], keys: list[str]) -> list[Change]:
    return [
        SubjectDelete("w1", "t", "s1", (ms, 0), key)
        if gone
        else SubjectWrite("w1", "t", "s1", (ms, 0), key, fields)
        for (ms, fields, gone), key in zip(drawn, keys, strict=True)
    ]


@given(drawn=WRITES, source=st.data())
def test_any_order_of_writes_gives_the_same_row(
    drawn: list[tuple[int, dict[str, int], bool]], source: st.DataObject
) -> None:
    few = st.sampled_from(["id:a", "id:b", "id:c", "id:d", "id:e", "id:f"])
    writes = made(drawn, source.draw(st.lists(few, min_size=len(drawn), max_size=len(drawn))))
    shuffled = source.draw(st.permutations(writes))
    repeated = source.draw(st.permutations([*shuffled, *writes]))
    if writes:
        assert row_of(*writes) == row_of(*shuffled) == row_of(*repeated)


@given(
    drawn=st.lists(
        st.tuples(st.integers(1, 500), st.booleans()), min_size=1, max_size=60, unique_by=lambda one: one[0]
    ),
    source=st.data(),
)
def test_beyond_twenty_the_last_deletion_counts_in_any_order(
    drawn: list[tuple[int, bool]], source: st.DataObject
) -> None:
    changes: list[Change] = [delete(ms) if gone else write(ms, **{f"f{ms % 3}": ms}) for ms, gone in drawn]
    shown = data(row_of(*changes))
    assert shown == data(row_of(*source.draw(st.permutations(changes))))
    before_newest = sorted(drawn)[:-1]
    born = max((ms for ms, gone in before_newest if gone), default=0)
    written = {f"f{ms % 3}": ms for ms, gone in sorted(drawn) if not gone and ms > born}
    assert shown == written


@given(drawn=st.lists(st.integers(1, 500), min_size=1, max_size=60, unique=True), source=st.data())
def test_beyond_twenty_the_newest_writes_win_in_any_order(drawn: list[int], source: st.DataObject) -> None:
    writes = [write(ms, n=ms) for ms in drawn]
    assert row_of(*writes) == row_of(*source.draw(st.permutations(writes)))
    assert [value for _, value in row_of(*writes).fields["n"]] == sorted(drawn)[-KEPT:]


@given(
    values=st.lists(st.none() | st.integers(-9, 9) | st.text(max_size=3), min_size=2, max_size=5),
    source=st.data(),
)
def test_even_two_writes_of_one_stamp_end_alike(values: list[object], source: st.DataObject) -> None:
    writes = [write(7, f"id:{n}", v=value) for n, value in enumerate(values)]
    assert row_of(*writes) == row_of(*source.draw(st.permutations(writes)))


@given(drawn=WRITES.filter(bool))
def test_a_row_survives_json(drawn: list[tuple[int, dict[str, int], bool]]) -> None:
    row = row_of(*made(drawn, [f"id:{n}" for n in range(len(drawn))]))
    assert row_from_json(orjson.loads(orjson.dumps(row_to_json(row)))) == row


@pytest.mark.parametrize(
    ("now_ms", "newest", "stamp"),
    [
        (500, (100, 3), (500, 0)),
        (100, (100, 3), (100, 4)),
        (50, (100, 3), (100, 4)),
        (100, (99, 9), (100, 0)),
    ],
)
def test_a_local_write_is_later_than_all_that_the_row_knows(now_ms: int, newest: Stamp, stamp: Stamp) -> None:
    row = merge(None, SubjectWrite("w1", "t", "s1", newest, "id:1", {}))
    assert local_stamp(now_ms, row) == stamp
    assert local_stamp(now_ms, None) == (now_ms, 0)


@pytest.mark.parametrize(
    ("writes", "stale"),
    [
        ([], False),
        ([write(1, a=1)], False),
        ([write(1, a=1), write(10, a=2)], False),
        ([write(1, a=1), write(11, b=2)], False),
        ([write(1, a=1), write(11, a=2)], True),
        ([write(1, a=1), write(11, a=1)], False),
        ([write(11, a=1)], True),
        ([write(1, a=1), write(11, a=2), write(12, a=1)], True),
        ([write(1, a=1), write(11, "id:mine", a=2)], False),
        ([write(1, a=1), write(11, "id:mine", a=2), write(12, a=3)], True),
        ([write(1, a=1), write(11, a=3), write(12, "id:mine", a=2)], True),
    ],
)
def test_a_field_is_stale_once_somebody_else_changed_it(writes: list[SubjectWrite], stale: bool) -> None:
    row = row_of(write(0), *writes)
    assert is_stale(row, "a", (10, 0), {"id:mine"}) is stale
