"""What is logged while a test listens, from whatever thread."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog
from structlog.testing import LogCapture


@contextmanager
def capture_logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """Give the lines that are logged in this block.

    That of structlog empties the processors for a moment, and a thread that logs just then dies of it.
    """
    heard = LogCapture()
    before = structlog.get_config()["processors"]
    structlog.configure(processors=[heard])
    try:
        yield heard.entries
    finally:
        structlog.configure(processors=before)
