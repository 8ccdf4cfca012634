"""A subject remembers whom its last events named, whatever the order in which they came to be known."""

from itertools import permutations

import orjson
import pytest

from shared.model.field_writes import KEPT
from shared.model.naming import note_named, was_named
from shared.model.subject_json import row_from_json, row_to_json
from shared.model.subjects import SubjectRow, SubjectWrite, merge

TOLD = {1: ("a", "b"), 2: ("a",), 3: ()}


def told(row: SubjectRow | None, second: int, *names: str) -> SubjectRow:
    write = SubjectWrite("w1", "conversation", "c1", (second, 0), f"id:e{second}", {"n": second})
    return note_named(merge(row, write), write.event_key, names)


@pytest.mark.parametrize("order", list(permutations(TOLD)), ids=str)
def test_the_newest_event_that_named_one_is_remembered(order: tuple[int, ...]) -> None:
    row: SubjectRow | None = None
    for second in order:
        row = told(row, second, *TOLD[second])
    assert row is not None
    assert [touch.names for touch in row.touches] == [("b",), ("a",), ()]
    assert was_named(row, "a", (2, 0))
    assert not was_named(row, "a", (2, 1))
    assert not was_named(row, "b", (2, 0))
    assert row_from_json(orjson.loads(orjson.dumps(row_to_json(row)))) == row


def test_what_names_nobody_is_kept_as_ever() -> None:
    row = told(None, 1)
    assert note_named(row, "id:e1", ()) is row
    assert note_named(row, "id:other", ("a",)) is row
    assert row_to_json(row)["touches"] == [[1, 0, "id:e1", False]]


def test_a_repeat_changes_nothing() -> None:
    row = told(None, 1, "a")
    assert told(row, 1, "a") is row


def test_it_is_forgotten_with_its_event() -> None:
    row = told(None, 1, "a")
    for second in range(2, KEPT + 2):
        row = told(row, second)
    assert not was_named(row, "a", (0, 0))
