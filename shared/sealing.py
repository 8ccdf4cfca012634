"""How a text is sealed before it is stored: encrypted and signed, so that rows alone give nothing away.

A key is 32 bytes. Of several the first one seals and each one opens, while one replaces the other.
"""

import base64
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


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
