"""Who waits for whom in a conversation whose messages are told in their order. Pure."""

from dataclasses import dataclass
from datetime import datetime

from shared.model.messages import Direction, Message, SenderType
from shared.model.stamps import Stamp
from shared.rules.talk import Talk


@dataclass(slots=True)
class Talking:
    """What the messages say up to now. `before` is the contact's newest one but the last told."""

    cleared: Stamp | None = None
    waiting: tuple[Stamp, datetime] | None = None
    newest: tuple[Stamp, str] | None = None
    before: str | None = None

    def hear(self, message: Message | None, resolved: Stamp | None) -> None:
        """Take in a message, if one is told, and when the conversation was last resolved."""
        if resolved is not None and (self.cleared is None or resolved > self.cleared):
            self._clear(resolved)
        self.before = None if self.newest is None else self.newest[1]
        if message is None or message.private or message.auto_submitted:
            return
        if message.direction is Direction.INCOMING:
            self.newest = message.stamp, message.id
            self.waiting = self.waiting or (message.stamp, message.created_at)
        elif message.sender_type in (SenderType.AGENT, SenderType.BOT):
            self._clear(message.stamp)

    def around(self) -> Talk:
        """Say how the talk stands around the message that was told last."""
        stamp, since = self.waiting or (None, None)
        return Talk(self.cleared, stamp, since, self.newest[0] if self.newest else None, self.before)

    def is_answered_since(self, stamp: Stamp) -> bool:
        """Tell whether somebody has answered after a message."""
        return self.cleared is not None and self.cleared > stamp

    def has_come_since(self, stamp: Stamp) -> bool:
        """Tell whether the contact has written after a message."""
        return self.newest is not None and self.newest[0] > stamp

    def _clear(self, stamp: Stamp) -> None:
        self.cleared = stamp
        if self.waiting is not None and self.waiting[0] < stamp:
            self.waiting = None
