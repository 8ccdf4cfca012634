"""What an answer over HTTP means for the run. Pure; the codes are a webhook's unless others are given.

2xx                      done
307, 308                 followed by `executors.send_webhook`, at most 3 times
408, 425, 429, 5xx       RetryableError WEBHOOK_HTTP_RETRIABLE, not before Retry-After (0 to 600 s)
anything else            FatalError WEBHOOK_HTTP_ERROR with the status
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from shared.errors import FatalError, RetryableError

HTTP_ERROR: Final = "WEBHOOK_HTTP_ERROR"
HTTP_RETRIABLE: Final = "WEBHOOK_HTTP_RETRIABLE"
FOLLOWED: Final = frozenset({307, 308})
LONGEST_WAIT: Final = timedelta(seconds=600)

_RETRIABLE: Final = frozenset({408, 425, 429})
_SECONDS: Final = re.compile(r"-?[0-9]+")
_SURELY_LONG_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of an answer that is worth another attempt, and of one that is not."""

    retriable: str = HTTP_RETRIABLE
    fatal: str = HTTP_ERROR


WEBHOOK: Final = Codes()


def check_status(status: int, shown: str, retry_after: timedelta | None, codes: Codes = WEBHOOK) -> None:
    """Return for a 2xx, raise for all others; `shown` names the request in the message."""
    if 200 <= status < 300:
        return
    message = f"{shown} answered {status}"
    if status in _RETRIABLE or status >= 500:
        raise RetryableError(codes.retriable, message, retry_after)
    raise FatalError(codes.fatal, message)


def parse_retry_after(value: str | None, now: datetime) -> timedelta | None:
    """Read a Retry-After header, seconds or date, clamped to 0..600 s. None if absent or unreadable."""
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return _clamp(_seconds(text))
    try:
        at = parsedate_to_datetime(text)
        return _clamp((at if at.tzinfo else at.replace(tzinfo=UTC)) - now)
    except (ValueError, OverflowError):
        return None


def _seconds(text: str) -> timedelta:
    """Read digits of any number without making a huge integer of them."""
    if text.startswith("-"):
        return timedelta(0)
    return LONGEST_WAIT if len(text) > _SURELY_LONG_DIGITS else timedelta(seconds=int(text))


def _clamp(wait: timedelta) -> timedelta:
    return min(max(wait, timedelta(0)), LONGEST_WAIT)
