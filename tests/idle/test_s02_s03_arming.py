"""What begins to wait for a silent customer, and when it is due (docs/idle-sequences.md, "Arming")."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.idling import Idled, Talks, keep_idle
from shared.model.idle_steps import IdleResult
from shared.model.messages import message_of
from shared.model.subjects import project
from shared.services.subjects import delete_subject
from tests.arming import Told, another, conversation, hour, message, stamp_of
from tests.idle_stage import LEGACY, STEPS, IdleStage, bot, open_idle, rule_of
from tests.listening import capture_logs
from tests.matching import make_event
from tests.people import CALLER
from tests.statements import statements

EXAMPLES = {"sqlite": 150, "postgresql": 40}
NOON = hour("12:00")
MINUTE = timedelta(minutes=1)


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[IdleStage]:
    with open_idle(database_url, redis_url) as opened:
        yield opened


def after(minutes: int) -> datetime:
    return NOON + minutes * MINUTE


def test_s02_ac_1_a_message_of_the_agent_arms_step_0_with_its_own_duration(stage: IdleStage) -> None:
    told = bot(NOON, "m1")
    stage.tell(told)
    (row,) = stage.rows()
    assert (row.rule, row.agent_id, row.channel_id, row.conversation_id) == ("agent", "nora", None, "c1")
    assert (row.step_index, row.step_count, row.action, row.status) == (0, 3, "follow_up", "pending")
    assert (row.sequence_id, row.run_id, row.version) == (row.id, None, 1)
    assert (row.anchor.message_id, row.anchor.stamp) == ("m1", stamp_of(NOON))
    assert row.due_at == after(10)


def test_what_was_written_long_ago_is_due_at_once(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1", createdAt="2026-02-01T00:00:00Z"))
    (row,) = stage.rows()
    assert row.due_at == datetime.fromisoformat("2026-02-01T00:10:00Z")


def test_s03_ac_1_a_reply_ends_at_once_what_waits(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.tell(message(after(5), "m2"))
    assert stage.stands() == [("m1", "stopped", "customer_replied")]
    assert stage.counted(IdleResult.RESET) == 1


def test_s03_ac_2_the_next_reply_of_the_agent_starts_a_fresh_chain_at_step_0(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"), message(after(5), "m2"))
    stage.tell(bot(after(6), "m3"))
    (row,) = [row for row in stage.rows() if row.status == "pending"]
    assert (row.step_index, row.anchor.message_id, row.sequence_id) == (0, "m3", row.id)


def test_s03_ac_3_its_clock_runs_from_that_reply(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.tell(message(after(5), "m2"))
    stage.tell(bot(after(9), "m3"))
    assert [row.due_at for row in stage.rows()] == [after(10), after(19)]


def test_s03_neg_1_a_reply_after_the_sequence_ended_starts_no_old_step(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.tell(conversation(after(1), "resolved", status="resolved"))
    before = stage.rows()
    stage.tell(message(after(2), "m2"))
    assert stage.rows() == before
    assert stage.stands() == [("m1", "stopped", "conversation_closed")]
    assert stage.counted(IdleResult.RESET) == 0


def test_a_newer_message_of_the_agent_supersedes_what_waits(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.tell(bot(after(1), "m2"))
    assert stage.stands() == [("m1", "superseded", "superseded"), ("m2", "pending", None)]
    assert stage.counted(IdleResult.RESET) == 0


def test_a_late_message_of_the_agent_changes_nothing(stage: IdleStage) -> None:
    stage.tell(bot(after(1), "m2"))
    before = stage.rows()
    stage.tell(bot(NOON, "m1"))
    assert stage.rows() == before


def test_a_late_answer_to_an_older_message_changes_nothing(stage: IdleStage) -> None:
    stage.tell(bot(after(2), "m3"))
    stage.tell(message(after(1), "m2"))
    assert stage.stands() == [("m3", "pending", None)]


def test_an_answer_to_the_first_message_that_comes_late_ends_a_later_step(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.change(
        "UPDATE idle_steps SET step_index = 1, anchor_message_id = 'a1', anchor_ms = anchor_ms + 600000"
    )
    stage.tell(message(after(5), "m2"))
    assert stage.stands() == [("a1", "stopped", "customer_replied")]


def test_a_person_who_writes_supersedes_what_waits(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.tell(message(after(1), "m2", "outgoing"))
    assert stage.stands() == [("m1", "superseded", "superseded")]


@pytest.mark.parametrize(
    "told",
    [
        {"autoSubmitted": "auto-replied"},
        {"precedence": "bulk"},
        {"returnPath": "<>"},
        {"senderType": "automation"},
        {"private": True},
    ],
    ids=str,
)
def test_f02_what_a_machine_answers_is_no_reply_nor_is_a_note(stage: IdleStage, told: dict[str, Any]) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.tell(message(after(5), "m2", **told))
    assert stage.stands() == [("m1", "pending", None)]
    stage.sweep_at(after(10))
    assert [row.status for row in stage.rows()] == ["processing"]
    assert len(stage.runs()) == 1


@pytest.mark.parametrize(
    "told",
    [
        {"private": True},
        {"autoSubmitted": True},
        {"senderType": "automation"},
        {"agentId": "nobody"},
        {"agentId": None},
        {"senderType": "agent"},
    ],
    ids=str,
)
def test_other_messages_arm_nothing(stage: IdleStage, told: dict[str, Any]) -> None:
    stage.tell(bot(NOON, "m1", **told))
    assert stage.rows() == []


@pytest.mark.parametrize("sender", ["agent", "bot"])
def test_without_an_agent_the_rule_of_the_channel_waits(stage: IdleStage, sender: str) -> None:
    stage.tell(conversation(NOON, "created", inboxId="shop"))
    stage.tell(message(after(1), "m1", "outgoing", senderType=sender))
    (row,) = stage.rows()
    assert (row.rule, row.agent_id, row.channel_id, row.step_count) == ("channel", None, "shop", 1)
    assert (row.due_at, row.action) == (after(6), "resolve")


def test_a_channel_that_is_off_or_unknown_arms_nothing(stage: IdleStage) -> None:
    stage.tell(conversation(NOON, "created", inboxId="other"), message(after(1), "m1", "outgoing"))
    stage.change("UPDATE channels SET enabled = 0")
    stage.tell(conversation(NOON, "created", "c2", inboxId="shop"), message(after(1), "m2", "outgoing", "c2"))
    assert stage.rows() == []


def test_s04_neg_1_where_no_rule_is_nothing_is_armed(stage: IdleStage) -> None:
    stage.change("DELETE FROM ai_agents")
    stage.change("DELETE FROM channels")
    stage.tell(bot(NOON, "m1"), message(after(1), "m2", "outgoing"), message(after(2), "m3"))
    assert stage.rows() == []
    stage.sweep_at(after(60))
    assert stage.runs() == []


def test_s04_ac_1_in_legacy_mode_the_one_action_waits(database_url: str, redis_url: str) -> None:
    with open_idle(database_url, redis_url, **LEGACY) as stage:
        stage.tell(bot(NOON, "m1"))
        (row,) = stage.rows()
        assert (row.step_count, row.action, row.due_at) == (1, "resolve", after(1))


@pytest.mark.parametrize("rule", [LEGACY, {**LEGACY, "steps": STEPS}, {**LEGACY, "steps": "all"}], ids=str)
def test_s04_ac_3_with_the_flag_off_the_legacy_keys_decide(stage: IdleStage, rule: dict[str, Any]) -> None:
    stage.change("UPDATE feature_flags SET enabled = 0")
    rule_of(stage, rule)
    stage.tell(bot(NOON, "m1"))
    (row,) = stage.rows()
    assert (row.step_count, row.action, row.due_at) == (1, "resolve", after(1))


def test_malformed_steps_arm_nothing_and_are_told_once(stage: IdleStage) -> None:
    rule_of(stage, {**LEGACY, "steps": [{"action": "dance"}]})
    with capture_logs() as logs:
        stage.tell(bot(NOON, "m1"))
    assert stage.rows() == []
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["idle_rule_malformed"]


@pytest.mark.parametrize("told", ["resolved", "deleted"])
def test_the_end_of_a_conversation_ends_what_waits(stage: IdleStage, told: str) -> None:
    stage.tell(bot(NOON, "m1"))
    fields = {"status": "resolved"} if told == "resolved" else {}
    stage.tell(conversation(after(1), told, **fields))
    reason = "conversation_closed" if told == "resolved" else "conversation_gone"
    assert stage.stands() == [("m1", "stopped", reason)]


def test_what_waits_in_a_conversation_that_a_person_deleted_does_not_fire(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.move_to(after(1))
    delete_subject(stage.backends, CALLER, "conversation", "c1")
    stage.sweep_at(after(10))
    assert stage.stands() == [("m1", "stopped", "conversation_gone")]


def test_in_a_conversation_that_was_resolved_nothing_is_armed(stage: IdleStage) -> None:
    stage.tell(conversation(NOON, "resolved", status="resolved"))
    stage.tell(bot(after(1), "m1"))
    assert stage.rows() == []


def test_a_message_that_is_told_again_arms_nothing(stage: IdleStage) -> None:
    stage.change("UPDATE ai_agents SET id = 'later'")
    told = bot(NOON, "m1")
    stage.tell(told)
    stage.change("UPDATE ai_agents SET id = 'nora'")
    stage.tell(told)
    stage.tell(bot(after(1), "m1"))
    assert stage.rows() == []


def test_a_step_that_has_its_run_is_left_to_it(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.sweep_at(after(10))
    stage.tell(message(after(11), "m2"))
    stage.tell(bot(after(12), "m3"))
    assert stage.stands() == [("m1", "processing", None), ("m3", "pending", None)]


def test_a_step_that_a_sweep_has_only_claimed_is_ended_like_one_that_waits(stage: IdleStage) -> None:
    stage.tell(bot(NOON, "m1"))
    stage.change("UPDATE idle_steps SET status = 'processing', claimed_at = updated_at")
    stage.tell(bot(after(12), "m3"))
    assert stage.stands() == [("m1", "superseded", "superseded"), ("m3", "pending", None)]


def test_where_no_rule_is_a_set_of_events_costs_two_statements(stage: IdleStage) -> None:
    """One looks for what waits in the conversations, one for the workspaces in which there may be rules."""
    stage.change("DELETE FROM ai_agents")
    stage.change("DELETE FROM channels")
    events = [make_event("message.created", bot(NOON, f"m{number}").payload) for number in range(9)]
    changes, messages = [*map(project, events)], [*map(message_of, events)]
    talks = Talks([each for each in changes if each], [each for each in messages if each])
    with stage.backends.database.begin() as conn, statements(conn) as seen:
        fresh = talks.fresh(conn)
        assert keep_idle(conn, talks, fresh, NOON) == Idled()
    assert (fresh, len(seen)) == ([], 2)


Make = tuple[str, dict[str, Any]]
STATUSES = st.sampled_from(["open", "pending", "resolved"])
MAKES: st.SearchStrategy[Make] = st.one_of(
    st.tuples(st.sampled_from(["bot", "agent", "incoming"]), st.just({})),
    st.tuples(st.sampled_from(["bot", "agent"]), st.fixed_dictionaries({"conversation": STATUSES})),
    st.tuples(
        st.sampled_from(["bot", "incoming"]),
        st.sampled_from([{"private": True}, {"senderType": "automation"}, {"autoSubmitted": True}]),
    ),
    st.tuples(st.sampled_from(["updated", "resolved"]), st.fixed_dictionaries({"status": STATUSES})),
    st.tuples(st.just("created"), st.just({"inboxId": "shop"})),
    st.just(("deleted", {})),
)


def event_of(make: Make, talk: str, minute: int) -> Told:
    kind, given = make
    at, id_ = after(minute), f"{talk}-{minute}"
    told = {name: value for name, value in given.items() if name != "conversation"}
    match kind:
        case "bot":
            made = bot(at, id_, talk, **told)
        case "agent" | "incoming":
            made = message(at, id_, "outgoing" if kind == "agent" else "incoming", talk, **told)
        case _:
            return conversation(at, kind, talk, **told)
    if "conversation" in given:
        made.payload["conversation"]["status"] = given["conversation"]
    return made


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[list[Make], list[int], list[tuple[int, int]]]:
    """Draw events, an order in which they come, and sets of it: how many, and for which of two matchers."""
    makes = draw(st.lists(MAKES, min_size=2, max_size=8))
    order = draw(st.permutations(range(len(makes))))
    cuts = st.tuples(st.integers(1, 3), st.integers(0, 1))
    return makes, order, draw(st.lists(cuts, min_size=len(makes), max_size=len(makes)))


def waiting_of(stage: IdleStage, talk: str) -> list[tuple[str, str, datetime]]:
    rows = [row for row in stage.rows(talk) if row.status == "pending"]
    return [(row.anchor.message_id.removeprefix(talk), row.rule, row.due_at) for row in rows]


def test_in_whatever_order_events_come_the_same_step_waits(stage: IdleStage) -> None:
    numbers = count()
    matchers = [stage.desk.post.intake, another(stage.desk)]

    @settings(max_examples=EXAMPLES[stage.backends.database.dialect])
    @given(shuffled())
    def check(drawn: tuple[list[Make], list[int], list[tuple[int, int]]]) -> None:
        makes, order, cuts = drawn
        straight, mixed = f"s{next(numbers)}-", f"m{next(numbers)}-"
        for minute, make in enumerate(makes):
            stage.tell(event_of(make, straight, minute))
        rest = list(order)
        for size, matcher in cuts:
            taken, rest = rest[:size], rest[size:]
            if taken:
                told = [event_of(makes[minute], mixed, minute) for minute in taken]
                stage.desk.tell(*told, by=matchers[matcher])
        assert waiting_of(stage, straight) == waiting_of(stage, mixed)

    check()


def test_a_set_that_is_taken_again_changes_nothing(stage: IdleStage) -> None:
    numbers = count()

    @settings(max_examples=EXAMPLES[stage.backends.database.dialect] // 3)
    @given(shuffled())
    def check(drawn: tuple[list[Make], list[int], list[tuple[int, int]]]) -> None:
        makes, order, _ = drawn
        talk = f"a{next(numbers)}-"
        told = [event_of(makes[minute], talk, minute) for minute in order]
        stage.tell(*told)
        before = stage.rows(talk)
        stage.tell(*told)
        assert stage.rows(talk) == before

    check()
