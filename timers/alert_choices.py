"""What a workspace's channels are told now: one transaction over its groups that are due."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.alert_channels import MAIL_NAME, admin_addresses, list_channels
from shared.db.alert_groups import Decided, GroupRow, lock_due_groups, save_decisions
from shared.db.alert_sends import Address, ChannelKind, NewSend, RecentSend, insert_sends, recent_sends
from shared.db.alerts import AUTOMATIONS_KEPT
from shared.db.dead_letters import automation_names
from shared.model.alert_message import SHOWN_PARTS, SHOWN_SHARES, AlertMessage, AlertPart, AlertShare
from shared.rules.alerting import DAY, HOUR, Decision, Message, Part, Sent, Told, decide

GROUPS_AT_ONCE: Final = 5_000

Channels = Mapping[str, Sequence[Address]]


def choose(conn: Connection, workspace_id: str, kinds: frozenset[ChannelKind], now: datetime) -> int:
    """Write what is to be sent, and note what each channel knows then; give how many messages that is.

    A channel is asked once for each message, however many people it goes to. Nothing is done while another
    process decides for this workspace.
    """
    rows = lock_due_groups(conn, workspace_id, now=now, most=GROUPS_AT_ONCE)
    if not rows:
        return 0
    channels = _channels(conn, workspace_id, kinds)
    everyone = [address for addresses in channels.values() for address in addresses]
    recent = recent_sends(conn, everyone, after=now - DAY) if everyone else []
    decisions = {
        channel: decide(channel, [row.group for row in rows], _fullest(recent, addresses, now), now)
        for channel, addresses in channels.items()
    }
    names = automation_names(conn, (found for row in rows for found in _automations(row)))
    desk = _Desk(workspace_id, {row.group.id: row for row in rows}, names)
    sends = [
        send
        for channel, decision in decisions.items()
        for message in decision.messages
        for send in desk.split(message, channels[channel])
    ]
    insert_sends(conn, sends, now=now)
    save_decisions(conn, (_decided(row, decisions, now) for row in rows), now=now)
    return sum(len(decision.messages) for decision in decisions.values())


def _automations(row: GroupRow) -> set[str]:
    newest = row.group.automation_id
    return {*row.automations, *([newest] if newest else [])}


def _channels(conn: Connection, workspace_id: str, kinds: frozenset[ChannelKind]) -> Channels:
    """Give the channels by name, each with the targets that one message of it is split among."""
    channels: dict[str, Sequence[Address]] = {
        channel.id: [Address(ChannelKind.WEBHOOK, channel.id)]
        for channel in list_channels(conn, workspace_id)
        if channel.kind is ChannelKind.WEBHOOK
    }
    if ChannelKind.MAIL in kinds:
        people = [Address(ChannelKind.MAIL, to) for to in admin_addresses(conn, workspace_id)]
        channels |= {MAIL_NAME: people} if people else {}
    return channels


def _fullest(recent: Iterable[RecentSend], addresses: Sequence[Address], now: datetime) -> list[Sent]:
    """Give what the busiest target of a channel was sent: a person may be told by several workspaces."""
    sent: dict[Address, list[Sent]] = {address: [] for address in addresses}
    for each in recent:
        if each.address in sent:
            sent[each.address].append(Sent(each.automation_id, each.at))
    return max(sent.values(), key=lambda given: (sum(each.at + HOUR > now for each in given), len(given)))


@dataclass(frozen=True, slots=True)
class _Desk:
    """Writes messages out: the groups of one workspace by id, and the names of their automations."""

    workspace_id: str
    groups: Mapping[str, GroupRow]
    names: Mapping[str, str]

    def split(self, message: Message, addresses: Iterable[Address]) -> Iterator[NewSend]:
        """Give one sending for each address; what they say is equal."""
        told = self._written(message)
        text = told.model_dump(mode="json")
        for address in addresses:
            yield NewSend(self.workspace_id, told.parts[0].group_id, message.automation_id, address, text)

    def _written(self, message: Message) -> AlertMessage:
        """Tell of the groups that grew most, and count the others."""
        parts = sorted(message.parts, key=lambda part: -part.more)
        unshown = parts[SHOWN_PARTS:]
        is_shared = any(len(self.groups[part.group_id].automations) > 1 for part in parts)
        return AlertMessage(
            workspace_id=self.workspace_id,
            about=None if is_shared else self._name(message.automation_id),
            parts=tuple(self._part(part, self.groups[part.group_id]) for part in parts[:SHOWN_PARTS]),
            unshown_groups=len(unshown),
            unshown_letters=sum(part.more for part in unshown),
            quiet_until=message.quiet_until,
        )

    def _name(self, automation_id: str | None) -> str | None:
        return self.names.get(automation_id, automation_id) if automation_id else None

    def _part(self, part: Part, row: GroupRow) -> AlertPart:
        automation_id = row.group.automation_id
        return AlertPart(
            group_id=row.group.id,
            fingerprint=row.fingerprint,
            state=part.state,
            automation_id=automation_id,
            automation=self._name(automation_id) or row.target,
            host=None if automation_id is None or row.target == automation_id else row.target,
            code=row.code,
            title=title_of(row),
            message=row.body,
            run_id=row.run_id,
            count=row.group.count,
            more=part.more,
            first_at=row.first_at,
            last_at=row.last_at,
            since=part.since,
            automations=len(row.automations),
            shares=self._shares(row.automations) if len(row.automations) > 1 else (),
        )

    def _shares(self, counts: Mapping[str, int]) -> tuple[AlertShare, ...]:
        most = sorted(counts.items(), key=lambda each: -each[1])[:SHOWN_SHARES]
        return tuple(
            AlertShare(automation_id=found, automation=self.names.get(found, found), count=count)
            for found, count in most
        )


def title_of(row: GroupRow) -> str:
    """Say what is in trouble: the newest dead letter's automation, or how many they are."""
    found = len(row.automations)
    if found < 2:
        return row.title
    return f"{found if found < AUTOMATIONS_KEPT else f'{found} or more'} automations dead-lettered alike"


def _decided(row: GroupRow, decisions: Mapping[str, Decision], now: datetime) -> Decided:
    group = row.group
    telling = [
        channel
        for channel, decision in decisions.items()
        if any(part.group_id == group.id for message in decision.messages for part in message.parts)
    ]
    again = [decision.again[group.id] for decision in decisions.values() if group.id in decision.again]
    told = {channel: each for channel, each in group.told.items() if channel in decisions}
    told |= {channel: Told(group.count, now) for channel in telling}
    return Decided(group.id, told, len(telling), min(again, default=None))
