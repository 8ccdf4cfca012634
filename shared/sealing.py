"""How a text is sealed before it is stored: encrypted and signed, so that rows alone give nothing away.

A key is 32 bytes. Of several the first one seals and each one opens, while one replaces the other.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

KEY_BYTES: Final = 32
AT_ONCE: Final = 2

_FROM_URL_SAFE: Final = str.maketrans("-_", "+/")


class Unreadable(Exception):
    """A sealed text that none of the keys opens: it was sealed with another one, or changed since."""


class Seal:
    """Seals and opens texts with the keys given."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Take one key or more, the newest first."""
        boxes = [Fernet(base64.urlsafe_b64encode(key)) for key in keys]
        self._newest = boxes[0]
        self._boxes = MultiFernet(boxes)

    def close(self, text: str) -> str:
        """Give what may be stored of a text; two calls never give the same."""
        return self._newest.encrypt(text.encode()).decode("ascii")

    def open(self, sealed: str) -> str:
        """Give the text back. Raises Unreadable."""
        try:
            return self._boxes.decrypt(sealed.encode()).decode()
        except (InvalidToken, UnicodeError) as error:
            raise Unreadable("no key opens it") from error

    def is_newest(self, sealed: str) -> bool:
        """Tell whether the newest key opens it, so that no older one is needed."""
        try:
            self._newest.decrypt(sealed.encode())
        except (InvalidToken, UnicodeError):
            return False
        return True


def read_seal_keys(text: str) -> tuple[bytes, ...]:
    """Give the keys of a setting or a file. Raises ValueError unless they are one or two of 32 bytes."""
    keys = tuple(map(_read_key, text.split()))
    if not 1 <= len(keys) <= AT_ONCE or any(len(key) != KEY_BYTES for key in keys):
        raise ValueError(f"must be {KEY_BYTES} bytes in base64, or two such keys with a space between them")
    return keys


def write_seal_key(key: bytes) -> str:
    """Give a key as `read_seal_keys` reads it."""
    return base64.b64encode(key).decode("ascii")


def _read_key(text: str) -> bytes:
    try:
        return base64.b64decode(text.translate(_FROM_URL_SAFE), validate=True)
    except (binascii.Error, ValueError):
        return b""
