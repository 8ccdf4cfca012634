"""The index finds exactly what a walk over all automations finds, without the walk."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from matcher.choosing import Bounds, choose
from matcher.index import Index
from matcher.match import Match, match
from matcher.tally import Tally
from shared.keys import Keys
from shared.model.automation import Automation
from shared.model.events import Event
from shared.rules.triggering import FED_BY
from shared.time.clock import from_epoch_ms
from tests.matching import BORN, make_automation, make_event

KEYS = Keys("", "factory:events")
LONG_AGO = Bounds(from_epoch_ms(0), 5)


def filled(*automations: Automation) -> Index:
    index = Index()
    for each in automations:
        index.put(each)
    return index


def chosen(index: Index, event: Event) -> list[str]:
    return [found.automation.id for found in choose([event], index, Tally(KEYS), LONG_AGO).matches]


def counted(index: Index, event: Event) -> dict[str, int]:
    sent: dict[str, int] = {}

    class Pipe:
        def incrby(self, key: str, count: int) -> None:
            sent[key.removeprefix("automations:skipped:")] = count

    tally = Tally(KEYS)
    choose([event], index, tally, LONG_AGO)
    tally.add_to(Pipe())  # type: ignore[arg-type]
    return sent


def test_matches_come_by_the_age_of_their_automations() -> None:
    young = make_automation(id="a", created_at=BORN + timedelta(seconds=1))
    old = make_automation(id="b")
    assert chosen(filled(young, old), make_event()) == ["b", "a"]


def test_what_is_put_again_stands_in_its_new_place_only() -> None:
    index = filled(make_automation(id="a"))
    index.put(make_automation({"type": "EVENT", "config": {"eventType": "order.paid"}}, id="a"))
    assert len(index) == 1
    assert chosen(index, make_event("order.placed")) == []
    assert chosen(index, make_event("order.paid")) == ["a"]


def test_what_is_dropped_is_gone() -> None:
    index = filled(make_automation({"type": "EVENT", "config": {"eventType": "*"}}, id="a"))
    index.drop("a")
    index.drop("a")
    assert len(index) == 0
    assert chosen(index, make_event()) == []
    assert index.survey(make_event()).active == 0


def test_one_that_watches_several_properties_is_found_once() -> None:
    trigger = {"type": "PROPERTY_CHANGED", "config": {"properties": ["a", "b", "*"]}}
    event = make_event("record.updated", {"changedProperties": ["a", "b"]})
    assert chosen(filled(make_automation(trigger, id="a")), event) == ["a"]


def test_what_the_filters_exclude_is_counted() -> None:
    scoped = [
        make_automation({"type": "RECORD_CREATED", "config": {"databaseId": f"d{n}"}}) for n in range(4)
    ]
    others = [make_automation(), make_automation({"type": "RECORD_CREATED"}, workspace_id="w2")]
    event = make_event("record.created", {"databaseId": "d1"})
    assert counted(filled(*scoped, *others), event) == {"filter_mismatch": 3}


def test_another_event_type_is_no_filter() -> None:
    other = make_automation({"type": "EVENT", "config": {"eventType": "order.paid"}})
    assert counted(filled(make_automation(), other), make_event()) == {}


def test_a_machine_made_message_is_excluded_by_the_filter() -> None:
    message = {"id": "m", "direction": "incoming", "autoSubmitted": "auto-replied"}
    event = make_event("message.created", {"conversation": {"id": "c"}, "message": message})
    assert counted(filled(make_automation({"type": "MESSAGE_CREATED"})), event) == {"filter_mismatch": 1}


def test_paused_and_later_activated_automations_are_counted_as_inactive() -> None:
    index = filled(make_automation(status="PAUSED"), make_automation(activated_ms=2000), make_automation())
    assert counted(index, make_event()) == {"inactive": 2}


def test_an_event_before_retention_matches_nothing() -> None:
    tally = Tally(KEYS)
    index = filled(make_automation())
    assert choose([make_event(entry_id="1000-0")], index, tally, Bounds(BORN, 5)).matches == []
    assert tally._counts == {"automations:skipped:expired": 1}


NAMES = st.sampled_from(["d1", "d2", "*"])
SCOPES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}), NAMES.map(lambda name: {"databaseId": name})
)
PROPERTIES = st.lists(st.sampled_from(["p", "q", "*"]), min_size=1, max_size=2).map(
    lambda names: {"properties": names}
)
PATTERNS = st.sampled_from(["*", "record.*", "rec*", "record.created", "order.placed"])
TRIGGERS = st.one_of(
    st.tuples(st.sampled_from(["RECORD_CREATED", "RECORD_UPDATED", "FORM_SUBMITTED"]), SCOPES),
    st.tuples(st.just("PROPERTY_CHANGED"), st.builds(lambda one, two: one | two, SCOPES, PROPERTIES)),
    st.tuples(st.just("EVENT"), PATTERNS.map(lambda name: {"eventType": name})),
    st.tuples(st.sampled_from(["CONTACT_UPDATED", "MESSAGE_CREATED"]), st.just({})),
).map(lambda parts: {"type": parts[0], "config": parts[1]})
AUTOMATIONS = st.lists(
    st.builds(
        lambda trigger, ws, status: make_automation(trigger, workspace_id=ws, status=status),
        TRIGGERS,
        st.sampled_from(["w1", "w2"]),
        st.sampled_from(["ACTIVE", "PAUSED", "DRAFT"]),
    ),
    max_size=8,
)
EVENTS = st.builds(
    make_event,
    st.sampled_from([*FED_BY, "order.placed"]),
    st.fixed_dictionaries(
        {}, optional={"databaseId": NAMES, "changedProperties": st.lists(st.sampled_from(["p", "q", "r"]))}
    ),
)


@given(AUTOMATIONS, EVENTS)
def test_the_index_finds_what_a_walk_finds(automations: list[Automation], event: Any) -> None:
    walked = {each.id for each in automations if isinstance(match(event, each), Match)}
    assert set(chosen(filled(*automations), event)) == walked
