"""What a channel is told of groups of dead letters, and when (docs/operations.md, "Alerts"). Pure.

A channel is what one message goes to once, before it is split among people: the workspace's mail, or one
webhook. What a cap holds back is not lost: it stays untold, and is counted by the next message.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
QUIET: Final = DAY
DIGEST_EVERY: Final = timedelta(minutes=10)
AUTOMATION_HOUR: Final = 5
AUTOMATION_DAY: Final = 15
CHANNEL_HOUR: Final = 20


class GroupState(StrEnum):
    """How a group stands to those who are told of it."""

    NEW = "new"
    ONGOING = "ongoing"
    REGRESSED = "regressed"
    MUTED = "muted"


@dataclass(frozen=True, slots=True)
class Told:
    """How many dead letters of a group a channel has been told of, and when last."""

    count: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Group:
    """A group as far as deciding goes; `automation_id` is that of its newest dead letter."""

    id: str
    automation_id: str | None
    count: int
    regressed_at: datetime | None
    muted_until: datetime | None
    told: Mapping[str, Told]


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that a channel was given; `automation_id` is None for one about several automations."""

    automation_id: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Part:
    """A group in a message: how it stands, how many are `more` than at `since`, the message before."""

    group_id: str
    state: GroupState
    more: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Message:
    """One message to one channel. `quiet_until`: it uses a cap up, and no other follows before then."""

    parts: tuple[Part, ...]
    automation_id: str | None
    quiet_until: datetime | None


@dataclass(frozen=True, slots=True)
class Decision:
    """The messages to write now, and for each group with more to tell when to decide again."""

    messages: tuple[Message, ...]
    again: Mapping[str, datetime]


def state_of(group: Group, told: Told | None, now: datetime) -> GroupState:
    """Say how a group stands, for a channel that was `told` of it last so."""
    if group.muted_until is not None and group.muted_until > now:
        return GroupState.MUTED
    if group.regressed_at is not None and (told is None or told.at < group.regressed_at):
        return GroupState.REGRESSED
    return GroupState.NEW if told is None else GroupState.ONGOING


def decide(channel: str, groups: Sequence[Group], sent: Iterable[Sent], now: datetime) -> Decision:
    """Decide what `channel` is told now of `groups`; `sent` is what it was given in the last 24 hours.

    A group is told of at once when it is new or regressed, then at most every 10 minutes and only if it grew.
    Groups of one automation share a message; so do all that are left when a channel has one message free.
    """
    before = sorted(sent, key=lambda each: each.at)
    again: dict[str, datetime] = {}
    topics: dict[str | None, list[Part]] = {}
    for group in groups:
        told = group.told.get(channel)
        if told is not None and told.count >= group.count:
            continue
        opens_at = max(_group_opens(group, told, now), _automation_opens(before, group.automation_id, now))
        if opens_at > now:
            again[group.id] = opens_at
        else:
            topics.setdefault(group.automation_id, []).append(_part(group, told, now))
    free = CHANNEL_HOUR - len(_within([each.at for each in before], HOUR, now))
    if free <= 0:
        opens_at = _opens([each.at for each in before], CHANNEL_HOUR, HOUR, now)
        again |= {part.group_id: opens_at for parts in topics.values() for part in parts}
        return Decision((), again)
    return Decision(tuple(_messages(topics, before, free, now)), again)


def _messages(
    topics: Mapping[str | None, Sequence[Part]], before: Sequence[Sent], free: int, now: datetime
) -> Iterable[Message]:
    """Give a message for each automation, the last of them for all that are left when there are too many."""
    given = list(before)
    packed = _pack(topics, free)
    for automation_id, parts in packed:
        given.append(Sent(automation_id, now))
        quiet_until = max(
            _automation_opens(given, automation_id, now),
            _opens([each.at for each in given], CHANNEL_HOUR, HOUR, now),
        )
        yield Message(tuple(parts), automation_id, quiet_until if quiet_until > now else None)


def _pack(topics: Mapping[str | None, Sequence[Part]], free: int) -> list[tuple[str | None, Sequence[Part]]]:
    packed = list(topics.items())
    if len(packed) <= free:
        return packed
    rest = [part for _, parts in packed[free - 1 :] for part in parts]
    return [*packed[: free - 1], (None, rest)]


def _part(group: Group, told: Told | None, now: datetime) -> Part:
    more = group.count - (told.count if told else 0)
    return Part(group.id, state_of(group, told, now), more, told.at if told else None)


def _group_opens(group: Group, told: Told | None, now: datetime) -> datetime:
    muted_until = group.muted_until or now
    return max(muted_until, told.at + DIGEST_EVERY) if told else muted_until


def _automation_opens(sent: Iterable[Sent], automation_id: str | None, now: datetime) -> datetime:
    if automation_id is None:
        return now
    times = [each.at for each in sent if each.automation_id == automation_id]
    return max(_opens(times, AUTOMATION_HOUR, HOUR, now), _opens(times, AUTOMATION_DAY, DAY, now))


def _opens(times: Sequence[datetime], most: int, span: timedelta, now: datetime) -> datetime:
    """Give when one more is allowed, `now` where it is already; `times` are in order."""
    return max(now, times[-most] + span) if len(times) >= most else now


def _within(times: Sequence[datetime], span: timedelta, now: datetime) -> list[datetime]:
    return [at for at in times if at + span > now]
