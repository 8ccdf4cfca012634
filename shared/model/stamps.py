"""Stamps: when something was written, as `(ms, seq)`; a stream's entry id is one, and they sort by time."""

from typing import Final

Stamp = tuple[int, int]

MAX_MS: Final = 7_258_118_400_000  # the year 2200; a stamp beyond it would win every comparison for ever
MAX_SEQ: Final = 2**63 - 1


def parse_stamp(text: str) -> Stamp:
    """Read `ms-seq`. Raises ValueError for any other form and for values beyond the bounds."""
    ms, dash, seq = text.partition("-")
    if not (dash and _is_number(ms) and _is_number(seq)):
        raise ValueError(f"is not a stamp of the form ms-seq: {text[:60]!r}")
    stamp = int(ms), int(seq)
    if stamp[0] > MAX_MS or stamp[1] > MAX_SEQ:
        raise ValueError(f"is out of bounds: {text}")
    return stamp


def format_stamp(stamp: Stamp) -> str:
    """Write a stamp as `ms-seq`."""
    return f"{stamp[0]}-{stamp[1]}"


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= 20
