"""What kinds of channels there are, and what an id may be that somebody else gives to a thing of ours."""

from enum import StrEnum
from typing import Final

# What a path, a log line and a table show as it is.
GIVEN_ID: Final = r"[A-Za-z0-9_][A-Za-z0-9_.:@|=+\-]{0,99}"


class ChannelKind(StrEnum):
    """By what means a channel's messages go."""

    WHATSAPP = "whatsapp"
    EMAIL = "email"
    SMS = "sms"
    WEBCHAT = "webchat"
    SANDBOX = "sandbox"
