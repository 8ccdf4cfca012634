"""The last writes of a field: which are kept, and since when a value is known to have been so."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.field_writes import KEPT
from shared.model.stamps import Stamp
from shared.model.subjects import SubjectDelete, SubjectRow, SubjectWrite, data, merge


def write(ms: int, value: object) -> SubjectWrite:
    return SubjectWrite("w1", "t", "s1", (ms, 0), f"id:{ms}", {"v": value})


def delete(ms: int) -> SubjectDelete:
    return SubjectDelete("w1", "t", "s1", (ms, 0), f"id:{ms}")


def row_of(*changes: SubjectWrite | SubjectDelete) -> SubjectRow:
    row = None
    for one in changes:
        row = merge(row, one)
    assert row is not None
    return row


def kept(*changes: SubjectWrite | SubjectDelete) -> list[tuple[int, Any]]:
    return [(ms, value) for (ms, _), value in row_of(*changes).fields["v"]]


def test_sixty_equal_writes_keep_the_first_and_the_newest() -> None:
    writes = [write(ms, {"a": [1]}) for ms in range(1, 61)]
    wanted = [(1, {"a": [1]}), *((ms, {"a": [1]}) for ms in range(42, 61))]
    assert kept(*writes) == kept(*reversed(writes)) == wanted


def test_the_beginning_of_each_stretch_outlives_its_repeats() -> None:
    writes = [write(ms, ms // 25) for ms in range(1, 100)]
    found = kept(*writes)
    assert len(found) == KEPT
    assert [ms for (ms, value), (_, before) in zip(found[1:], found, strict=False) if value != before] == [
        25,
        50,
        75,
    ]


@pytest.mark.parametrize("values", [(1, 1.0), (True, 1), (0, False), ("1", 1), (None, "")])
def test_what_is_written_another_way_is_another_value(values: tuple[object, object]) -> None:
    found = kept(*(write(ms, values[ms % 2]) for ms in range(1, 31)))
    assert [ms for ms, _ in found] == list(range(11, 31))


def test_the_newest_write_stays_though_it_says_nothing_new() -> None:
    writes = [*(write(ms, ms) for ms in range(1, 21)), write(21, 20)]
    assert kept(*writes)[0] == (2, 2)
    assert kept(*writes)[-2:] == [(20, 20), (21, 20)]
    assert data(row_of(*writes, SubjectWrite("w1", "t", "s1", (20, 5), "id:late", {"v": "late"}))) == {
        "v": 20
    }


def test_a_repeat_in_another_life_is_none() -> None:
    writes: list[SubjectWrite | SubjectDelete] = [
        write(1, "a"),
        delete(2),
        *(write(ms, "a") for ms in range(3, 40)),
    ]
    row = row_of(*writes)
    assert row.fields["v"][:2] == (((1, 0), "a"), ((3, 0), "a"))
    assert data(row) == {"v": "a"}


VALUES = st.sampled_from(["a", "b", 1, None])


@given(values=st.lists(VALUES, min_size=1, max_size=KEPT), source=st.data())
def test_up_to_twenty_writes_are_kept_in_any_order(values: list[object], source: st.DataObject) -> None:
    writes = [write(ms, value) for ms, value in enumerate(values)]
    assert kept(*source.draw(st.permutations(writes))) == list(enumerate(values))


@given(values=st.lists(VALUES, min_size=1, max_size=80), source=st.data())
def test_the_newest_write_wins_in_any_order(values: list[object], source: st.DataObject) -> None:
    writes = [write(ms, value) for ms, value in enumerate(values)]
    assert data(row_of(*source.draw(st.permutations(writes)))) == {"v": values[-1]}


@given(runs=st.lists(st.tuples(VALUES, st.integers(1, 15)), min_size=1, max_size=10))
def test_of_what_is_known_in_order_each_value_stands_at_its_time(runs: list[tuple[object, int]]) -> None:
    values = [value for value, times in runs for _ in range(times)]
    found = row_of(*(write(ms, value) for ms, value in enumerate(values))).fields["v"]
    oldest: Stamp = found[0][0]
    for ms, value in list(enumerate(values))[oldest[0] :]:
        assert [told for stamp, told in found if stamp <= (ms, 0)][-1] == value
