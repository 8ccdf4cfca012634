"""Mail addresses as people are known by: one name at one domain, compared without case."""

import re
from typing import Final

ADDRESS_MAX: Final = 254
_ADDRESS: Final = re.compile(r"[^@\s\x00-\x1f\x7f<>()\[\],;:\"\\]{1,64}@[^@\s\x00-\x1f\x7f<>()\[\],;:\"\\]+")


def read_address(text: str) -> str:
    """Give an address in the form in which it is stored. Raises ValueError for what is none."""
    address = text.strip().lower()
    domain = address.partition("@")[2]
    labels = domain.split(".")
    if len(address) > ADDRESS_MAX or not _ADDRESS.fullmatch(address) or not all(labels):
        raise ValueError("is no mail address; they look like anna@example.org")
    return address
