"""Keys of the secret store as they are written: base64 text, one key or two with a space between them.

Apart from the sealing itself, since every process reads its settings and few seal anything.
"""

import base64
import binascii
from typing import Final

KEY_BYTES: Final = 32
AT_ONCE: Final = 2

_FROM_URL_SAFE: Final = str.maketrans("-_", "+/")


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
