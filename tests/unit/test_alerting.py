"""What a channel is told, and when: the whole of the decision as a table."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.rules.alerting import (
    AUTOMATION_DAY,
    AUTOMATION_HOUR,
    CHANNEL_HOUR,
    Decision,
    Group,
    GroupState,
    Sent,
    Told,
    decide,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NEW, ONGOING, REGRESSED = GroupState.NEW, GroupState.ONGOING, GroupState.REGRESSED


def ago(minutes: float) -> datetime:
    return NOW - minutes * MINUTE


def group(id_: str = "g1", count: int = 1, automation: str | None = "a1", **given: object) -> Group:
    values: dict = {"regressed_at": None, "muted_until": None, "told": {}, **given}
    return Group(id_, automation, count, **values)


def told(count: int, minutes: float) -> dict[str, Told]:
    return {"mail": Told(count, ago(minutes))}


def sent(count: int, minutes: float, automation: str | None = "a1") -> list[Sent]:
    return [Sent(automation, ago(minutes))] * count


@pytest.mark.parametrize(
    ("about", "before", "says", "again"),
    [
        (group(count=3), [], (NEW, 3), None),
        (group(count=3, told=told(3, 60)), [], None, None),
        (group(count=4, told=told(3, 9)), [], None, 1),
        (group(count=4, told=told(3, 10)), [], (ONGOING, 1), None),
        (group(count=4, told=told(3, 1500), regressed_at=ago(1)), [], (REGRESSED, 1), None),
        (group(count=4, told=told(3, 60), regressed_at=ago(90)), [], (ONGOING, 1), None),
        (group(count=4, regressed_at=ago(90)), [], (REGRESSED, 4), None),
        (group(count=4, muted_until=ago(-5)), [], None, 5),
        (group(count=4, muted_until=ago(0)), [], (NEW, 4), None),
        (group(count=4, told={"hook": Told(4, NOW)}), [], (NEW, 4), None),
        (group(), sent(4, 5), (NEW, 1), None),
        (group(), sent(5, 5), None, 55),
        (group(), sent(5, 60), (NEW, 1), None),
        (group(), sent(5, 5, "a2"), (NEW, 1), None),
        (group(), sent(14, 120), (NEW, 1), None),
        (group(), sent(15, 120), None, 24 * 60 - 120),
        (group(), sent(15, 24 * 60), (NEW, 1), None),
        (group(), sent(19, 5, "a2"), (NEW, 1), None),
        (group(), sent(20, 5, "a2"), None, 55),
        (group(), sent(20, 60, "a2"), (NEW, 1), None),
        (group(automation=None), sent(6, 5, None), (NEW, 1), None),
    ],
)
def test_one_group(
    about: Group, before: list[Sent], says: tuple[GroupState, int] | None, again: float | None
) -> None:
    found = decide("mail", [about], before, NOW)
    parts = [(part.state, part.more) for message in found.messages for part in message.parts]
    assert parts == ([says] if says else [])
    assert found.again == ({"g1": NOW + again * MINUTE} if again else {})


@pytest.mark.parametrize(
    ("before", "quiet"),
    [
        ([], None),
        (sent(3, 5), None),
        (sent(4, 5), 55),
        (sent(14, 120), 24 * 60 - 120),
        (sent(19, 5, "a2"), 55),
        (sent(18, 5, "a2"), None),
    ],
)
def test_the_message_that_uses_a_cap_up_says_so(before: list[Sent], quiet: float | None) -> None:
    (message,) = decide("mail", [group()], before, NOW).messages
    assert message.quiet_until == (NOW + quiet * MINUTE if quiet else None)


def test_groups_of_one_automation_share_a_message() -> None:
    found = decide("mail", [group("g1"), group("g2", 5), group("g3", automation="a2")], [], NOW)
    assert [[part.group_id for part in message.parts] for message in found.messages] == [["g1", "g2"], ["g3"]]
    assert [message.automation_id for message in found.messages] == ["a1", "a2"]


def test_the_last_free_message_tells_of_all_that_are_left() -> None:
    groups = [group(f"g{number}", automation=f"a{number}") for number in range(10)]
    found = decide("mail", groups, sent(17, 5, "b"), NOW)
    assert [len(message.parts) for message in found.messages] == [1, 1, 8]
    assert [message.automation_id for message in found.messages] == ["a0", "a1", None]
    assert [message.quiet_until is None for message in found.messages] == [True, True, False]
    assert decide("mail", groups, sent(20, 5, "b"), NOW) == Decision(
        (), {each.id: NOW + 55 * MINUTE for each in groups}
    )


@given(
    arrivals=st.lists(
        st.tuples(st.integers(0, 600), st.integers(0, 7), st.integers(0, 3), st.integers(1, 500)), max_size=60
    )
)
def test_no_order_of_events_breaks_a_cap_or_loses_a_count(
    arrivals: list[tuple[int, int, int, int]],
) -> None:
    counts: dict[str, int] = {}
    known: dict[str, Told] = {}
    given_out: list[Sent] = []
    heard = 0
    arrivals.sort()
    for minute in range(0, 3000, 5):
        now = NOW + minute * MINUTE
        while arrivals and arrivals[0][0] <= minute:
            _, kind, automation, letters = arrivals.pop(0)
            counts[f"{automation}:{kind}"] = counts.get(f"{automation}:{kind}", 0) + letters
        groups = [
            group(id_, count, id_.partition(":")[0], told={"mail": known[id_]} if id_ in known else {})
            for id_, count in counts.items()
        ]
        recent = [each for each in given_out if each.at > now - timedelta(days=1)]
        for message in decide("mail", groups, recent, now).messages:
            given_out.append(Sent(message.automation_id, now))
            heard += sum(part.more for part in message.parts)
            known |= {part.group_id: Told(counts[part.group_id], now) for part in message.parts}
        _check_caps(given_out, now)
    assert heard == sum(counts.values())


def _check_caps(given_out: list[Sent], now: datetime) -> None:
    hour = [each.automation_id for each in given_out if each.at > now - timedelta(hours=1)]
    day = [each.automation_id for each in given_out if each.at > now - timedelta(days=1)]
    assert len(hour) <= CHANNEL_HOUR
    for automation in {*day} - {None}:
        assert hour.count(automation) <= AUTOMATION_HOUR
        assert day.count(automation) <= AUTOMATION_DAY
