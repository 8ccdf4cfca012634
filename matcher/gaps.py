"""Entries that were trimmed away before anybody read them, noticed by what is missing. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.model.stamps import Stamp, format_stamp

_START: Stamp = (0, 0)


@dataclass(frozen=True, slots=True)
class Gap:
    """Entries between these two ids may be lost; `before` is None when nothing newer is there."""

    after: str
    before: str | None


def find_gap(about: Mapping[str, Any], delivered: bytes, read: str | None) -> Gap | None:
    """Tell whether the stream was cut beyond the last entry that the group was given.

    `about` is XINFO STREAM from just before the reading, `delivered` the group's last entry then, `read` the
    first entry of the reading. Redis does not count what it trims, so a cut exactly behind the last delivered
    entry counts as a gap too.
    """
    last = _stamp(delivered.decode())
    if last == _START:
        return None
    first = about["first-entry"]
    if first is None:
        is_cut = _stamp(about["last-generated-id"].decode()) > last
        return Gap(format_stamp(last), None) if is_cut and read is None else None
    first_id = _stamp(first[0].decode())
    if read is None or first_id <= last or _stamp(read) != first_id:
        return None
    return Gap(format_stamp(last), read)


def _stamp(entry_id: str) -> Stamp:
    """Read an entry id, however far in the future it claims to be."""
    ms, _, seq = entry_id.partition("-")
    return int(ms), int(seq)
