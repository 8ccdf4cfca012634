"""Which dead letters are one trouble (docs/operations.md, "Alerts"). Pure.

Two of them are one group when their code, their message without what differs from run to run, and their
target are equal. The target is the other side where the error is one of a network host, so that one dead
endpoint behind forty automations is one group; else it is the automation.
"""

import re
from hashlib import sha256
from typing import Final

LENGTH: Final = 16
MESSAGE_CHARS: Final = 500
MAIL_SERVER: Final = "mail server"

_HOST: Final = r"[a-z][a-z0-9+.\-]*://(?:[^\s/?#@]*@)?(?P<host>[^\s/?#'\"<>|,;)]+)"
_REQUEST: Final = re.compile(rf"\b[A-Z]{{3,10}} (?i:{_HOST})")
_URL: Final = re.compile(_HOST, re.IGNORECASE)
_URL_REST: Final = re.compile(r"(?P<front>\b[a-z][a-z0-9+.\-]*://[^\s/?#]*)[^\s'\"<>]*", re.IGNORECASE)
_SERVER: Final = re.compile(r"(?P<host>[\w.\-]+:\d{1,5}|\[[\da-fA-F:]+\]:\d{1,5})(?=[: ])")
_NETWORK: Final = "NET_"
_MAIL: Final = "MAIL_"
_OF_ONE_READER: Final = frozenset({"MAIL_REFUSED", "MAIL_BAD_ADDRESS"})

_WORDS: Final = (
    (_URL_REST, r"\g<front>"),
    (re.compile(r"(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`|[“«][^”»\n]*[”»]"), "'?'"),
    (re.compile(r"[^\s@<>]+@[^\s@<>]+"), "?@?"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "#"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?Z|[+-]\d\d:?\d\d)?)?"), "#"),
    (re.compile(r"\b(?=\w*\d)\w+\b"), "#"),
    (re.compile(r"#(?:[.,:/+\-]?#)+"), "#"),
    (re.compile(r"\s+"), " "),
)


def target_of(code: str, message: str, automation_id: str) -> str:
    """Say what is in trouble: the host and port of the other side, or the automation."""
    if code in _OF_ONE_READER:
        return automation_id
    said = message[:MESSAGE_CHARS]
    found = _REQUEST.search(said)
    if found is None and code.startswith((_NETWORK, _MAIL)):
        found = _SERVER.match(said) or (_URL.search(said) if code.startswith(_NETWORK) else None)
    if found is None:
        return MAIL_SERVER if code.startswith(_MAIL) else automation_id
    return found["host"].rstrip(".:").lower() or automation_id


def fingerprint(code: str, message: str, target: str) -> str:
    """Give the same 16 characters for what is one trouble."""
    text = "\n".join((code, normalised(message), target))
    return sha256(text.encode(errors="replace")).hexdigest()[:LENGTH]


def normalised(message: str) -> str:
    """Take out what differs from run to run: ids, numbers, times, quotes, addresses, paths and queries."""
    text = message[:MESSAGE_CHARS]
    for pattern, instead in _WORDS:
        text = pattern.sub(instead, text)
    return text.strip().lower()
