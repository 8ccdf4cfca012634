"""Since when the conditions of a delayed automation have held."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import DefinitionError
from shared.model.events import Event
from shared.model.pending import Anchor, Episode
from shared.model.stamps import Stamp
from shared.model.subjects import SubjectDelete, SubjectRow, SubjectWrite, merge
from shared.rules.episodes import Start, compile_standing, state_episode
from shared.rules.standing_tree import lasting_leaves
from tests.matching import make_event

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PENDING = {"field": "conversation.status", "op": "eq", "value": "pending"}
UNASSIGNED = {"field": "conversation.owner", "op": "is_empty"}
RELABELLED = {"field": "conversation.labels", "op": "changed"}

Change = SubjectWrite | SubjectDelete


def write(ms: int, /, **fields: object) -> SubjectWrite:
    return SubjectWrite("w1", "conversation", "c1", (ms, 0), f"id:{ms}", fields)


def delete(ms: int) -> SubjectDelete:
    return SubjectDelete("w1", "conversation", "c1", (ms, 0), f"id:{ms}")


def row_of(changes: Sequence[Change]) -> SubjectRow:
    row = None
    for change in changes:
        row = merge(row, change)
    assert row is not None
    return row


def touched(*changed: str, at: int = 500, **conversation: object) -> Event:
    payload = {"conversation": {"id": "c1", **conversation}, "changedProperties": list(changed)}
    return make_event("conversation.updated", payload, entry_id=f"{at}-0")


def start_of(tree: Mapping[str, object] | None, *changes: Change) -> Start | None:
    return compile_standing(tree).start(touched(), row_of(changes), NOW)


def since(ms: int) -> Start:
    return Start((ms, 0), is_first_known=False)


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ([write(1, status="open")], None),
        ([write(1, status="pending")], since(1)),
        ([write(1, status="open"), write(2, status="pending")], since(2)),
        ([write(1, status="pending"), write(2, status="pending")], since(1)),
        ([write(1, status="pending"), write(2, labels=["a"]), write(3)], since(1)),
        ([write(1, status="pending"), write(2, status="open"), write(3, status="pending")], since(3)),
        ([write(1, status="pending"), delete(2)], None),
        ([write(1, status="pending"), delete(2), write(3, status="pending")], since(3)),
        ([write(1, status="pending"), delete(2), write(3)], None),
        ([write(1, owner="x"), write(2, status="pending"), write(3, status="open")], None),
    ],
)
def test_a_stretch_begins_with_the_write_that_made_the_conditions_true(
    changes: list[Change], start: Start | None
) -> None:
    for order in permutations(changes):
        assert start_of(PENDING, *order) == start


def test_a_flip_of_a_millisecond_or_less_begins_another_stretch() -> None:
    flip: list[Change] = [write(1, status="pending"), write(2, status="open"), write(3, status="pending")]
    assert start_of(PENDING, *flip) == since(3)
    in_one_ms = [
        SubjectWrite("w1", "conversation", "c1", (7, seq), f"id:{seq}", {"status": status})
        for seq, status in enumerate(["pending", "open", "pending"])
    ]
    for order in permutations(in_one_ms):
        assert start_of(PENDING, *order) == Start((7, 2), is_first_known=False)


def test_a_flip_among_values_that_match_begins_nothing() -> None:
    either = {"field": "conversation.status", "op": "in", "value": ["pending", "snoozed"]}
    flips = [write(ms, status=("pending", "snoozed")[ms % 2]) for ms in range(1, 9)]
    assert start_of(either, *flips) == since(1)
    labelled = {"field": "conversation.labels", "op": "contains", "value": "vip"}
    kept: list[Change] = [
        write(1, labels=["vip"]),
        write(2, labels=["a", "vip"]),
        write(3, labels=["vip", "b"]),
    ]
    assert start_of(labelled, *kept) == since(1)
    assert start_of(labelled, *kept, write(4, labels=[]), write(5, labels=["vip"])) == since(5)


def test_all_conditions_must_hold_at_the_same_time() -> None:
    tree = {"all": [PENDING, UNASSIGNED]}
    changes: list[Change] = [
        write(1, status="pending"),
        write(2, owner="x"),
        write(3, status="open"),
        write(4, owner=None),
        write(5, status="pending"),
    ]
    assert [start_of(tree, *changes[:n]) for n in range(1, 6)] == [since(1), None, None, None, since(5)]
    assert start_of({"any": [PENDING, UNASSIGNED]}, *changes) == since(4)


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ([write(3)], since(3)),
        ([write(3), write(4, status="open")], since(3)),
        ([write(3, status="open"), write(4, owner=None)], since(3)),
        ([write(3, owner="x"), write(4, owner="")], since(4)),
        ([write(1, owner="x"), delete(2), write(3), write(4)], since(3)),
    ],
)
def test_what_holds_for_a_field_that_is_not_there_has_held_since_birth(
    changes: list[Change], start: Start
) -> None:
    for order in permutations(changes):
        assert start_of(UNASSIGNED, *order) == start


def test_an_automation_without_conditions_waits_since_its_event() -> None:
    assert start_of(None, write(1, status="open")) == since(500)
    assert start_of(None, write(1), delete(2)) is None


@pytest.mark.parametrize(
    "tree",
    [
        {"field": "changedProperties", "op": "is_empty"},
        {"not": {"field": "type", "op": "eq", "value": "order.placed"}},
        {"field": "conversation.id", "op": "eq", "value": "c1"},
        RELABELLED,
        {"any": [PENDING, RELABELLED]},
        {"not": {"all": [PENDING, RELABELLED]}},
    ],
)
def test_conditions_that_read_nothing_of_the_subject_hold_since_the_event(tree: dict[str, object]) -> None:
    standing = compile_standing(tree)
    assert not standing.reads_subject("conversation")
    assert standing.start(touched(), row_of([write(1, status="open")]), NOW) == since(500)


def test_a_write_that_an_event_carries_is_its_stamp() -> None:
    event = make_event("conversation.updated", {"conversation": {"id": "c1"}}, written=(77, 3))
    start = compile_standing(None).start(event, row_of([write(1)]), NOW)
    assert start == Start((77, 3), is_first_known=False)


def test_a_templated_value_reads_every_field() -> None:
    tree = {"field": "conversation.status", "op": "eq", "value": "{{ conversation.wanted }}"}
    assert compile_standing(tree).reads_subject("anything")
    changes: list[Change] = [write(1, status="a", wanted="b"), write(2, wanted="a"), write(3, other=1)]
    assert start_of(tree, *changes) == since(2)
    assert start_of(tree, *changes, write(4, wanted="c"), write(5, wanted="a")) == since(5)


def test_a_path_that_reads_the_whole_subject_reads_every_field() -> None:
    whole = {"field": "conversation", "op": "is_not_empty"}
    assert start_of(whole, write(1, a=1), write(2, b=1)) == since(1)


def test_sixty_writes_of_one_value_do_not_hide_when_it_began() -> None:
    writes: list[Change] = [write(1, status="open"), *(write(ms, status="pending") for ms in range(2, 62))]
    assert start_of(PENDING, *writes) == Start((2, 0), is_first_known=False)
    assert start_of(PENDING, *writes[1:]) == Start((2, 0), is_first_known=True)
    assert start_of(PENDING, *reversed(writes[1:])) == Start((2, 0), is_first_known=True)


def test_where_a_full_history_is_true_all_along_it_may_have_begun_before() -> None:
    pending_or_not = {"field": "conversation.status", "op": "is_not_empty"}
    writes = [write(ms, status=("pending", "open")[ms % 2]) for ms in range(1, 41)]
    assert start_of(pending_or_not, *writes) == Start((21, 0), is_first_known=True)
    assert start_of(PENDING, *writes) == since(40)


def test_where_one_of_two_histories_is_cut_off_the_other_says_nothing_of_before() -> None:
    tree = {
        "all": [
            {"field": "conversation.owner", "op": "is_not_empty"},
            {"field": "conversation.status", "op": "ne", "value": "closed"},
        ]
    }
    writes: list[Change] = [
        *(write(ms, owner=ms) for ms in range(1, 21)),
        write(21, status="closed"),
        *(write(ms, status=ms) for ms in range(31, 71)),
    ]
    assert start_of(tree, *writes[:25]) == since(31)
    assert start_of(tree, *writes) == Start((51, 0), is_first_known=True)


@pytest.mark.parametrize(
    "tree",
    [
        {"all": [PENDING, RELABELLED]},
        {"all": [PENDING, {"not": RELABELLED}]},
        {"any": [PENDING, {"not": {"any": [RELABELLED, {"not": UNASSIGNED}]}}]},
        {"any": [PENDING, {"all": [{"not": {"not": RELABELLED}}, PENDING]}]},
        {"not": {"any": [RELABELLED, {"not": PENDING}]}},
    ],
)
def test_what_an_event_changed_does_not_move_the_beginning(tree: dict[str, object]) -> None:
    standing = compile_standing(tree)
    assert standing.reads_subject("conversation")
    assert start_of(tree, write(1, status="open", owner="x"), write(2, status="pending")) == since(2)


def test_after_many_touches_the_birth_is_not_known_any_more() -> None:
    touches = [write(ms, labels=[ms]) for ms in range(1, 41)]
    assert start_of(UNASSIGNED, *touches[:10]) == since(1)
    assert start_of(UNASSIGNED, *touches) == Start((21, 0), is_first_known=True)
    assert start_of(PENDING, write(0, status="pending"), *touches) == since(0)
    ne = {"field": "conversation.status", "op": "ne", "value": "closed"}
    assert start_of(ne, write(0, status="pending"), *touches) == Start((0, 0), is_first_known=True)


@pytest.mark.parametrize(
    ("tree", "arms", "holds"),
    [
        (RELABELLED, {"labels"}, True),
        ({"all": [PENDING, RELABELLED]}, {"labels"}, True),
        ({"not": RELABELLED}, {"status", ""}, True),
        ({"all": [PENDING, {"not": RELABELLED}]}, {"status", ""}, True),
        ({"not": {"not": RELABELLED}}, {"labels"}, True),
        ({"not": {"any": [RELABELLED, PENDING]}}, set(), False),
        ({"field": "conversation.status", "op": "changed_to", "value": "pending"}, {"status"}, True),
        ({"field": "conversation.status", "op": "changed_to", "value": "open"}, set(), True),
        ({"field": "status", "op": "changed_from", "value": None}, set(), True),
    ],
)
def test_what_an_event_changed_counts_when_it_arms_and_never_hinders_afterwards(
    tree: dict[str, object], arms: set[str], holds: bool
) -> None:
    standing = compile_standing(tree)
    row = row_of([write(1, status="pending")])
    for changed in ("labels", "status", ""):
        event = touched(*filter(None, [changed]), status="pending")
        assert standing.arms(event, row, NOW) is (changed in arms)
        assert standing.holds(event, row, None, NOW) is holds


def test_what_an_event_changed_is_asked_of_that_event_whatever_came_later() -> None:
    standing = compile_standing({"field": "conversation.status", "op": "changed_to", "value": "pending"})
    late = touched("status", status="pending")
    assert standing.arms(late, row_of([write(1, status="pending"), write(2, status="open")]), NOW)


def test_whom_conditions_blame_stands_where_it_stands_in_the_tree() -> None:
    standing = compile_standing({"all": [RELABELLED, {"not": {"any": [PENDING, RELABELLED]}}, UNASSIGNED]})
    row = row_of([write(1, status="pending", owner="x")])
    blamed = standing.blame(touched(), row, None, NOW)
    assert [(leaf.path, leaf.field) for leaf in blamed] == [
        ("conditions.all[1].not.any[0]", "conversation.status"),
        ("conditions.all[2]", "conversation.owner"),
    ]
    assert standing.blame(touched(), row_of([write(1)]), None, NOW) == []


@pytest.mark.parametrize(
    ("field", "reads"),
    [
        ("message.private", True),
        ("payload.message.private", True),
        ("message.direction", False),
        ("conversation.private", False),
    ],
)
def test_notes_count_for_whoever_asks_for_them(field: str, reads: bool) -> None:
    leaf = {"field": field, "op": "eq", "value": True}
    assert compile_standing({"any": [PENDING, {"not": leaf}]}).reads_private is reads
    assert not compile_standing(None).reads_private


def test_a_wrong_tree_is_refused_with_its_faults() -> None:
    with pytest.raises(DefinitionError) as caught:
        compile_standing({"all": [{"field": "a", "op": "equals", "value": 1}, {"any": []}]})
    assert [fault.path for fault in caught.value.faults] == ["conditions.all[0].op", "conditions.all[1].any"]


def test_an_episode_is_named_after_the_write_that_began_it() -> None:
    assert state_episode((1_772_366_400_001, 7)) == Episode(
        Anchor.STATE,
        "state:1772366400001-7",
        datetime(2026, 3, 1, 12, 0, 0, 1000, tzinfo=UTC),
        (1_772_366_400_001, 7),
    )


VALUES = st.sampled_from([0, 1, None])
LEAVES = st.one_of(
    st.builds(
        lambda field, value: {"field": field, "op": "eq", "value": value},
        st.sampled_from(["conversation.a", "conversation.b", "payload.conversation.a"]),
        st.sampled_from([0, 1]),
    ),
    st.sampled_from(["conversation.a", "conversation.b"]).map(lambda name: {"field": name, "op": "is_empty"}),
    st.sampled_from(["conversation.a", "b"]).map(lambda name: {"field": name, "op": "changed"}),
)
TREES = st.recursive(
    LEAVES,
    lambda below: st.one_of(
        st.lists(below, min_size=1, max_size=3).map(lambda nodes: {"all": nodes}),
        st.lists(below, min_size=1, max_size=3).map(lambda nodes: {"any": nodes}),
        below.map(lambda node: {"not": node}),
    ),
    max_leaves=6,
)
STEPS = st.one_of(
    st.just(None),
    st.dictionaries(st.sampled_from("abx"), VALUES),
    st.dictionaries(st.sampled_from("abx"), VALUES),
    st.dictionaries(st.sampled_from("abx"), VALUES),
)


def says(node: Mapping[str, Any], state: Mapping[str, object], nots: int = 0) -> bool:
    """Judge a tree of LEAVES the plain way; what was changed hinders nothing."""
    if "all" in node:
        return all(says(each, state, nots) for each in node["all"])
    if "any" in node:
        return any(says(each, state, nots) for each in node["any"])
    if "not" in node:
        return not says(node["not"], state, nots + 1)
    if node["op"] == "changed":
        return nots % 2 == 0
    found = state.get(node["field"][-1])
    return found is None if node["op"] == "is_empty" else found == node["value"]


def replayed(tree: Mapping[str, Any], steps: Sequence[Mapping[str, object] | None]) -> Stamp | None:
    """Follow the writes one by one; give the stamp since which the tree has held at each of them."""
    state: dict[str, object] = {}
    begun: Stamp | None = None
    for ms, fields in enumerate(steps):
        state = {} if fields is None else {**state, **fields}
        holds = fields is not None and says(tree, state)
        begun = (begun or (ms, 0)) if holds else None
    return begun


def changes_of(steps: Sequence[Mapping[str, object] | None]) -> list[Change]:
    return [delete(ms) if fields is None else write(ms, **fields) for ms, fields in enumerate(steps)]


def is_open(tree: Mapping[str, object]) -> bool:
    return bool(lasting_leaves(tree))


@given(tree=TREES.filter(is_open), steps=st.lists(STEPS, min_size=1, max_size=19), source=st.data())
def test_in_any_order_the_start_is_where_a_replay_finds_it(
    tree: dict[str, Any], steps: list[dict[str, object] | None], source: st.DataObject
) -> None:
    begun = replayed(tree, steps)
    wanted = None if begun is None else Start(begun, is_first_known=False)
    changes = changes_of(steps)
    assert start_of(tree, *changes) == wanted
    assert start_of(tree, *source.draw(st.permutations(changes))) == wanted


@given(tree=TREES.filter(is_open), steps=st.lists(STEPS, min_size=20, max_size=90))
def test_what_has_been_forgotten_is_never_taken_for_known(
    tree: dict[str, Any], steps: list[dict[str, object] | None]
) -> None:
    begun = replayed(tree, steps)
    found = start_of(tree, *changes_of(steps))
    if found is None or begun is None:
        assert found is None
        assert begun is None
    elif found.is_first_known:
        assert found.stamp >= begun
    else:
        assert found.stamp == begun


@given(tree=TREES, steps=st.lists(STEPS.filter(bool), min_size=1, max_size=10))
def test_an_event_that_changed_all_it_is_asked_for_arms_what_holds(
    tree: dict[str, Any], steps: list[dict[str, object]]
) -> None:
    standing, row = compile_standing(tree), row_of(changes_of(steps))
    event = touched("a", "b")
    assert standing.holds(event, row, None, NOW) or not standing.arms(event, row, NOW)
    assert standing.holds(event, row, None, NOW) is (standing.blame(event, row, None, NOW) == [])
