"""Who has answered, and which episode a message hangs on, in any order of what comes to be known."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.model.messages import Direction, Message, SenderType
from shared.model.pending import Anchor, Episode
from shared.model.stamps import Stamp
from shared.model.subjects import SubjectDelete, SubjectRow, SubjectWrite, merge
from shared.rules.talk import Talk, message_episode, resolved_at
from tests.talks import is_of_the_contact, is_reply, talk_around

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SILENCE = Talk(None, None, None, None, None)


def at(ms: int) -> datetime:
    """Give an instant with microseconds that no float of seconds keeps."""
    return datetime(2026, 3, 1, 12, 0, 0, 123457, tzinfo=UTC) + timedelta(milliseconds=ms)


def micros(ms: int) -> int:
    return (at(ms) - EPOCH) // timedelta(microseconds=1)


def message(ms: int, sender: str = "contact", **given: Any) -> Message:
    direction = Direction.INCOMING if sender == "contact" else Direction.OUTGOING
    values: dict[str, Any] = {
        "workspace_id": "w1",
        "id": f"m{ms}",
        "conversation_id": "c1",
        "direction": direction,
        "sender_type": SenderType(sender),
        "sender_id": None,
        "agent_id": None,
        "content": "",
        "private": False,
        "auto_submitted": False,
        "stamp": (ms, 0),
        "run_id": None,
        "created_at": at(ms),
    }
    return Message(**{**values, **given})


def status(ms: int, value: object) -> SubjectWrite:
    return SubjectWrite("w1", "conversation", "c1", (ms, 0), f"id:{ms}", {"status": value})


def row_of(*writes: SubjectWrite | SubjectDelete) -> SubjectRow:
    row = merge(None, SubjectWrite("w1", "conversation", "c1", (0, 0), "id:0", {}))
    for one in writes:
        row = merge(row, one)
    return row


def episode_in(log: Sequence[Message], one: Message, resolved: Stamp | None = None) -> Episode | None:
    return message_episode(one, talk_around(log, resolved, one.stamp))


def key_in(log: Sequence[Message], one: Message, resolved: Stamp | None = None) -> str | None:
    found = episode_in(log, one, resolved)
    return found.key if found else None


def test_the_first_message_that_waits_starts_the_clock_of_all_that_follow() -> None:
    log = [message(10), message(20), message(30)]
    first, newest = episode_in(log, log[0]), episode_in(log, log[2])
    key = f"awaiting_agent:{micros(10)}"
    assert first == Episode(Anchor.AWAITING_AGENT, key, at(10), (10, 0), "m10")
    assert newest == Episode(Anchor.AWAITING_AGENT, key, at(10), (30, 0), "m30")


def test_the_microseconds_of_an_instant_stand_in_its_key() -> None:
    one = message(10, created_at=datetime(2026, 3, 1, 12, 0, 0, 999_999, tzinfo=UTC))
    other = message(10, created_at=datetime(2026, 3, 1, 12, 0, 0, 999_998, tzinfo=UTC))
    assert key_in([one], one) == "awaiting_agent:1772366400999999"
    assert key_in([other], other) == "awaiting_agent:1772366400999998"


@pytest.mark.parametrize("sender", ["agent", "bot"])
def test_a_public_reply_ends_the_waiting_and_the_next_message_begins_another(sender: str) -> None:
    log = [message(10), message(20, sender), message(30)]
    assert key_in(log, log[0]) is None
    assert key_in(log, log[2]) == f"awaiting_agent:{micros(30)}"


@pytest.mark.parametrize(
    "other",
    [
        message(20, "agent", private=True),
        message(20, "bot", private=True),
        message(20, "automation"),
        message(20, "agent", auto_submitted=True),
        message(20, auto_submitted=True),
        message(20, "automation", direction=Direction.INCOMING),
    ],
)
def test_notes_and_machines_answer_nothing(other: Message) -> None:
    log = [message(5, "agent"), message(10), other]
    assert key_in(log, log[1]) == f"awaiting_agent:{micros(10)}"
    assert key_in([message(5, "agent"), other, message(30)], message(5, "agent")) is None
    chased = message(15, "agent")
    assert key_in([message(10), chased, other], chased) == "reply_chase:m10"


@pytest.mark.parametrize(
    "machine",
    [
        message(20, auto_submitted=True),
        message(20, "agent", auto_submitted=True),
        message(20, "automation"),
        message(20, "automation", direction=Direction.INCOMING),
    ],
)
def test_what_a_machine_wrote_hangs_on_no_episode(machine: Message) -> None:
    assert key_in([message(10), machine], machine) is None


def test_a_resolve_ends_the_waiting() -> None:
    log = [message(10), message(30)]
    assert key_in(log, log[0], (20, 0)) is None
    assert key_in(log, log[1], (20, 0)) == f"awaiting_agent:{micros(30)}"
    assert key_in(log, log[1], (40, 0)) is None


def test_a_message_that_is_resolved_by_its_own_event_waits_since_its_own_time() -> None:
    one = message(10)
    assert key_in([one], one, (10, 0)) == f"awaiting_agent:{micros(10)}"


def test_a_message_of_which_the_log_does_not_know_yet_waits_since_its_own_time() -> None:
    assert message_episode(message(10), SILENCE) == Episode(
        Anchor.AWAITING_AGENT, f"awaiting_agent:{micros(10)}", at(10), (10, 0), "m10"
    )


def test_a_message_from_before_the_waiting_hangs_on_nothing() -> None:
    note = message(10, private=True)
    assert key_in([note, message(20)], note) is None
    assert key_in([message(5), note], note) == f"awaiting_agent:{micros(5)}"


def test_a_chase_follows_the_newest_reply_and_keeps_its_key() -> None:
    log = [message(10), message(20, "agent"), message(30, "agent")]
    assert episode_in(log, log[1]) == Episode(Anchor.REPLY_CHASE, "reply_chase:m10", at(20), (20, 0), "m20")
    assert episode_in(log, log[2]) == Episode(Anchor.REPLY_CHASE, "reply_chase:m10", at(30), (30, 0), "m30")


def test_whom_nobody_wrote_to_is_chased_under_zero() -> None:
    log = [message(20, "agent")]
    assert key_in(log, log[0]) == "reply_chase:0"


def test_the_contacts_answer_ends_the_chase() -> None:
    log = [message(10), message(20, "agent"), message(30), message(40, "agent")]
    assert key_in(log, log[1]) is None
    assert key_in(log, log[3]) == "reply_chase:m30"


def test_a_private_note_may_be_chased_by_whoever_asks_for_notes() -> None:
    log = [message(10), message(20, "agent", private=True)]
    assert key_in(log, log[1]) == "reply_chase:m10"


@pytest.mark.parametrize(
    ("writes", "resolved"),
    [
        ([], None),
        ([status(1, "open")], None),
        ([status(1, "resolved")], (1, 0)),
        ([status(1, "open"), status(2, "resolved")], (2, 0)),
        ([status(1, "resolved"), status(2, "open")], (1, 0)),
        ([status(1, "resolved"), status(2, "resolved"), status(3, None)], (1, 0)),
        ([status(1, "resolved"), status(2, "open"), status(3, "resolved")], (3, 0)),
        ([status(1, "resolved"), SubjectDelete("w1", "conversation", "c1", (2, 0), "id:2")], (1, 0)),
        (
            [
                status(1, "resolved"),
                SubjectDelete("w1", "conversation", "c1", (2, 0), "id:2"),
                status(3, "open"),
            ],
            (2, 0),
        ),
        ([status(1, ["resolved"]), status(2, {})], None),
    ],
)
def test_it_was_resolved_when_its_status_last_became_so(
    writes: list[SubjectWrite | SubjectDelete], resolved: Stamp | None
) -> None:
    assert resolved_at(row_of(*writes)) == resolved
    assert resolved_at(row_of(*reversed(writes))) == resolved


def test_to_be_told_sixty_times_that_it_is_resolved_resolves_it_once() -> None:
    writes = [status(ms, "resolved") for ms in range(10, 70)]
    assert resolved_at(row_of(*writes)) == (10, 0)
    assert resolved_at(row_of(*reversed(writes))) == (10, 0)


KINDS = st.sampled_from(
    [
        ("contact", {}),
        ("contact", {"auto_submitted": True}),
        ("agent", {}),
        ("agent", {"private": True}),
        ("bot", {}),
        ("automation", {}),
        ("resolved", {}),
        ("open", {}),
    ]
)


def in_order(log: Sequence[Message | SubjectWrite]) -> dict[str, str]:
    """Follow a conversation as it goes; give the key of each message that still hangs on an episode."""
    waiting: Message | None = None
    newest = "0"
    status_now: object = None
    keys: dict[str, str] = {}
    for one in log:
        if isinstance(one, SubjectWrite):
            if one.fields["status"] == "resolved" != status_now:
                waiting = None
                keys = {id_: key for id_, key in keys.items() if key.startswith("reply")}
            status_now = one.fields["status"]
        elif is_of_the_contact(one):
            waiting = waiting or one
            newest = one.id
            keys = {id_: key for id_, key in keys.items() if key.startswith("awaiting")}
            keys[one.id] = f"awaiting_agent:{(waiting.created_at - EPOCH) // timedelta(microseconds=1)}"
        elif one.direction is Direction.OUTGOING and one.sender_type is not SenderType.AUTOMATION:
            if is_reply(one):
                waiting = None
                keys = {id_: key for id_, key in keys.items() if key.startswith("reply")}
            keys[one.id] = f"reply_chase:{newest}"
    return keys


@given(kinds=st.lists(KINDS, max_size=14), source=st.data())
def test_in_any_order_each_message_hangs_on_what_it_hangs_on_in_order(
    kinds: list[tuple[str, dict[str, Any]]], source: st.DataObject
) -> None:
    log: list[Message | SubjectWrite] = [
        status(ms, kind) if kind in {"resolved", "open"} else message(ms, kind, **given)
        for ms, (kind, given) in enumerate(kinds, start=1)
    ]
    shuffled = source.draw(st.permutations(log))
    told = [one for one in shuffled if isinstance(one, Message)]
    resolved = resolved_at(row_of(*(one for one in shuffled if isinstance(one, SubjectWrite))))
    found = {one.id: key_in(told, one, resolved) for one in told}
    assert {id_: key for id_, key in found.items() if key} == in_order(log)
