"""What a name may be that a person gives to a thing, so that everybody who reads it sees what was written."""

import re
import unicodedata
from typing import Final

NAME_MAX: Final = 200
# Controls, what ends a line, and what turns the direction of writing: a name must look like what it is.
_MISLEADING: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_INVISIBLE: Final = frozenset({"Zs", "Zl", "Zp", "Cf", "Cc", "Cn", "Mn"})
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def check_name(name: str) -> str:
    """Give a name back. Raises ValueError that says what is wrong with it."""
    if len(name) > NAME_MAX:
        raise ValueError(f"must have at most {NAME_MAX} characters")
    found = _MISLEADING.search(name)
    if found is not None:
        raise ValueError(f"holds U+{ord(found[0]):04X}, a control character that would hide what it says")
    if all(unicodedata.category(char) in _INVISIBLE or char in _BLANK for char in name):
        raise ValueError("must not be blank")
    return name
