"""In whatever order events come, and however they are cut into sets: the same subject, the same episodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.model.events import Context
from shared.model.pending import PendingRow
from shared.model.subject_json import row_to_json
from shared.services.backends import Backends
from tests.arming import (
    IS_INCOMING,
    IS_OPEN,
    IS_OUTGOING,
    IS_PENDING,
    MONDAY,
    Desk,
    Told,
    another,
    conversation,
    message,
    open_desk,
    tell_one_by_one,
)

EXAMPLES = {"sqlite": 150, "postgresql": 40}
TO_PENDING = {"field": "conversation.status", "op": "changed_to", "value": "pending"}
IS_VIP = {"field": "conversation.labels", "op": "contains", "value": "vip"}
STATUSES = st.sampled_from(["open", "pending", "resolved"])


@pytest.fixture
def desk(backends: Backends) -> Desk:
    """Give a matcher with automations of every kind."""
    desk = open_desk(backends)
    own = desk.rule(id="own", conditions=IS_PENDING)
    assert own.id == "own"
    desk.rule("CONVERSATION_CREATED", conditions=IS_OPEN)
    desk.rule("CONVERSATION_OPENED")
    desk.rule(conditions={"all": [TO_PENDING, IS_PENDING]})
    desk.rule(conditions={"any": [IS_VIP, {"not": IS_OPEN}]})
    desk.rule("MESSAGE_CREATED", conditions=IS_INCOMING)
    desk.rule("MESSAGE_CREATED", conditions=IS_OUTGOING)
    desk.rule("EVENT", config={"eventType": "*"})
    return desk


def at(minute: int) -> Any:
    return MONDAY + timedelta(minutes=minute)


@dataclass(frozen=True)
class Make:
    """An event of some conversation yet to be named: of what kind, and what it tells."""

    kind: str
    fields: dict[str, Any]

    def __call__(self, talk: str, minute: int) -> Told:
        match self.kind:
            case "incoming" | "outgoing":
                return message(at(minute), f"{talk}-{minute}", self.kind, talk, **self.fields)
            case "changed":
                told = {"changedProperties": ["status"], "before": {}}
                payload = {"conversation": {"id": talk, **self.fields}, **told}
                return Told(at(minute), "conversation.updated", payload)
            case "ours":
                context = Context("own", "r1", "r1", 1)
                return conversation(at(minute), "updated", talk, context=context, **self.fields)
        return conversation(at(minute), self.kind, talk, **self.fields)


STATUS = STATUSES.map(lambda status: {"status": status})
FIELDS = st.fixed_dictionaries({}, optional={"status": STATUSES, "labels": st.sampled_from([["vip"], []])})
MAKES = st.one_of(
    st.builds(Make, st.sampled_from(["updated", "opened", "resolved", "created"]), FIELDS),
    st.builds(Make, st.sampled_from(["changed", "ours"]), STATUS),
    st.builds(Make, st.sampled_from(["incoming", "outgoing"]), st.just({})),
    st.builds(Make, st.just("outgoing"), st.sampled_from([{"private": True}, {"senderType": "automation"}])),
    st.builds(Make, st.just("incoming"), st.just({"autoSubmitted": "auto-replied"})),
    st.just(Make("deleted", {})),
)


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[list[Make], list[int], list[tuple[int, int]]]:
    """Draw events, an order in which they come, and sets of it: how many, and for which of two matchers."""
    makes = draw(st.lists(MAKES, min_size=2, max_size=8))
    order = draw(st.permutations(range(len(makes))))
    sets = draw(
        st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1)), min_size=len(makes), max_size=len(makes))
    )
    return makes, order, sets


def test_any_order_ends_with_the_same_subject_and_the_same_open_episodes(desk: Desk) -> None:
    numbers = count()
    matchers = [desk.post.intake, another(desk)]

    @settings(max_examples=EXAMPLES[desk.backends.database.dialect])
    @given(shuffled())
    def check(drawn: tuple[list[Make], list[int], list[tuple[int, int]]]) -> None:
        makes, order, sets = drawn
        straight, mixed = f"s{next(numbers)}-", f"m{next(numbers)}-"
        tell_one_by_one(desk, (make(straight, minute) for minute, make in enumerate(makes)))
        for cut, matcher in cuts(order, sets):
            desk.tell(*(makes[minute](mixed, minute) for minute in cut), by=matchers[matcher])
        assert subject_of(desk, straight) == subject_of(desk, mixed)
        assert open_of(desk, straight) == open_of(desk, mixed)

    check()


def test_however_the_stream_is_cut_the_same_rows_are_written(desk: Desk) -> None:
    numbers = count()

    @settings(max_examples=EXAMPLES[desk.backends.database.dialect] // 2)
    @given(shuffled())
    def check(drawn: tuple[list[Make], list[int], list[tuple[int, int]]]) -> None:
        makes, _, sets = drawn
        single, cut_up = f"s{next(numbers)}-", f"m{next(numbers)}-"
        tell_one_by_one(desk, (make(single, minute) for minute, make in enumerate(makes)))
        for cut, _matcher in cuts(list(range(len(makes))), sets):
            desk.tell(*(makes[minute](cut_up, minute) for minute in cut))
        assert rows_of(desk, single) == rows_of(desk, cut_up)

    check()


def test_a_set_that_is_taken_again_changes_nothing(desk: Desk) -> None:
    numbers = count()

    @settings(max_examples=EXAMPLES[desk.backends.database.dialect] // 3)
    @given(shuffled())
    def check(drawn: tuple[list[Make], list[int], list[tuple[int, int]]]) -> None:
        makes, order, _ = drawn
        talk = f"a{next(numbers)}-"
        events = [makes[minute](talk, minute) for minute in order]
        desk.tell(*events)
        before = desk.rows_about(talk)
        subject = subject_of(desk, talk)
        desk.tell(*events)
        assert desk.rows_about(talk) == before
        assert subject_of(desk, talk) == subject

    check()


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_what_was_resolved_before_is_not_resolved_by_being_said_again(
    desk: Desk, order: tuple[int, ...]
) -> None:
    resolved = Make("updated", {"status": "resolved"})
    makes = [resolved, Make("incoming", {}), resolved]
    tell_one_by_one(desk, (makes[minute]("c1", minute) for minute in order))
    waiting = [row for row in desk.rows_about("c1") if row.episode.anchor == "awaiting_agent"]
    assert {(row.status.value, row.ended_at, row.episode.started_at) for row in waiting} == {
        ("pending", None, at(1))
    }
    assert {row.trigger_event["payload"]["message"]["id"] for row in waiting} == {"c1-1"}


def cuts(order: list[int], sets: list[tuple[int, int]]) -> Iterator[tuple[list[int], int]]:
    """Cut what comes into sets, each for one of the matchers."""
    rest = list(order)
    for size, matcher in sets:
        if rest:
            yield rest[:size], matcher
            rest = rest[size:]


def subject_of(desk: Desk, talk: str) -> Any:
    written = row_to_json(desk.subject(talk))
    return {name: written[name] for name in ("fields", "touches")}


def open_of(desk: Desk, talk: str) -> list[Any]:
    return sorted(shown(row, talk) for row in desk.rows_about(talk) if row.ended_at is None)


def rows_of(desk: Desk, talk: str) -> list[Any]:
    return sorted(
        (*shown(row, talk), row.status, row.skip_reason or "", row.ended_at is None)
        for row in desk.rows_about(talk)
    )


def shown(row: PendingRow, talk: str) -> tuple[Any, ...]:
    key = row.episode.key.replace(talk, "")
    return row.automation_id, row.episode.anchor, key, row.due_at
