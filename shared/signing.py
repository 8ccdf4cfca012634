"""Secrets that webhooks are signed with: base64 text, with `whsec_` in front or without.

Two of them by a space are in force together, while receivers change from one to the other.
"""

import base64
import binascii
from typing import Final

PREFIX: Final = "whsec_"
AT_ONCE: Final = 2


def split_secrets(text: str) -> tuple[str, ...]:
    """Give the secrets of a setting or an action, each as it was written."""
    return tuple(text.split())


def read_keys(text: str) -> tuple[bytes, ...]:
    """Give the key of each secret. Raises ValueError unless they are one or two and each is readable."""
    secrets = split_secrets(text)
    if not 1 <= len(secrets) <= AT_ONCE:
        raise ValueError("must be one signing secret, or two with a space between them")
    return tuple(map(_read_key, secrets))


def _read_key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("a signing secret is base64 text, with whsec_ in front or without") from error
    if not key:
        raise ValueError("the signing secret is empty")
    return key
