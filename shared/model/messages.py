"""What an event about a message says of its sender.

Mail systems lose every trace of who caused what, so an answer to an automatic answer can only be noticed by
how the message itself is marked.
"""

from collections.abc import Mapping
from typing import Any, Final

from shared.model.events import Event

_BULK: Final = frozenset({"auto_reply", "bulk", "junk", "list"})
_HUMAN: Final = frozenset({"", "no"})
_EMPTY_PATHS: Final = frozenset({"", "<>"})
_MACHINES: Final = frozenset({"automation", "bot"})


def is_machine_made(event: Event) -> bool:
    """Tell whether the event is an incoming message that no person wrote. It is no reply, and starts nothing.

    It says so itself by `autoSubmitted` (anything but false, empty or `no`), `precedence` (bulk, list, junk,
    auto_reply), an empty `returnPath`, `ownAddress: true`, or the `senderType` of a machine.
    """
    message = event.payload.get("message")
    if event.type != "message.created" or not isinstance(message, Mapping):
        return False
    return message.get("direction") == "incoming" and _is_marked(message)


def _is_marked(message: Mapping[str, Any]) -> bool:
    submitted = message.get("autoSubmitted")
    word = _word(submitted)
    return (
        (bool(submitted) if word is None else word not in _HUMAN)
        or _word(message.get("precedence")) in _BULK
        or _word(message.get("returnPath")) in _EMPTY_PATHS
        or message.get("ownAddress") is True
        or _word(message.get("senderType")) in _MACHINES
    )


def _word(value: object) -> str | None:
    return value.strip().lower() if isinstance(value, str) else None
