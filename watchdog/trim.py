"""The stream's length: past the limit its oldest entries go, but never one that was not acknowledged yet."""

from typing import Final

from shared.keys import GROUP
from shared.logs import get_logger
from watchdog.parts import Parts

TOLERATED: Final = 10  # a warning from a tenth over the limit

log: Final = get_logger("watchdog")


def trim_stream(parts: Parts) -> None:
    """Bring the stream back to about EVENTS_MAXLEN; entries that nobody has read and acknowledged stay."""
    stream = parts.keys.stream
    excess = parts.redis.xlen(stream) - parts.settings.events_maxlen
    if excess <= 0:
        return
    oldest = _oldest_unacknowledged(parts)
    removed = 0
    if oldest is not None:
        # LIMIT keeps the history that the length allows, even where everything is acknowledged.
        removed = parts.redis.xtrim(stream, minid=oldest, approximate=True, limit=excess)
    if removed:
        log.info("stream_trimmed", removed=removed)
    if excess - removed > parts.settings.events_maxlen // TOLERATED:
        log.warning("stream_over_limit", excess=excess - removed)


def _oldest_unacknowledged(parts: Parts) -> bytes | None:
    """Give the first entry that must stay, or None where the matcher's group is not there yet: all must."""
    stream = parts.keys.stream
    for group in parts.redis.xinfo_groups(stream):
        if group["name"] == GROUP.encode():
            pending = parts.redis.xpending_range(stream, GROUP, min="-", max="+", count=1)
            found: bytes = pending[0]["message_id"] if pending else group["last-delivered-id"]
            return found
    return None
