"""What is missing before the next entry tells that the stream was cut too far."""

from typing import Any

import pytest

from matcher.gaps import Gap, find_gap

FIRST: tuple[bytes, dict[bytes, bytes]] = (b"5-0", {})


@pytest.mark.parametrize(
    ("first", "generated", "delivered", "read", "gap"),
    [
        (FIRST, b"9-0", b"0-0", "5-0", None),  # nothing was ever delivered
        (FIRST, b"9-0", b"4-0", "5-0", Gap("4-0", "5-0")),
        (FIRST, b"9-0", b"5-0", "6-0", None),  # the last delivered entry is still there
        (FIRST, b"9-0", b"7-0", "8-0", None),
        (FIRST, b"9-0", b"4-0", None, None),  # told when the next one is read
        (None, b"9-0", b"9-0", None, None),
        (None, b"9-0", b"8-0", None, Gap("8-0", None)),
        (None, b"9-0", b"9-0", "10-0", None),
        (
            (b"18446744073709551615-1", {}),
            b"9-0",
            b"4-0",
            "18446744073709551615-1",
            Gap("4-0", "18446744073709551615-1"),
        ),
    ],
)
def test_a_gap_is_what_was_cut_before_it_was_delivered(
    first: Any, generated: bytes, delivered: bytes, read: str | None, gap: Gap | None
) -> None:
    about = {"first-entry": first, "last-generated-id": generated}
    assert find_gap(about, delivered, read) == gap
