"""What SEND_EMAIL takes, and how an address is written."""

import re
from collections.abc import Iterable
from email.errors import HeaderParseError
from email.headerregistry import Address
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, PlainValidator, ValidationInfo, WithJsonSchema

from shared.errors import Fault
from shared.model.action_config import ActionConfig, Filled, Given, is_final
from shared.model.parts import Text
from shared.model.refusals import Refused
from shared.rules.plain_text import as_text

RECIPIENTS_MAX: Final = 50
ADDRESS_MAX: Final = 320
SUBJECT_MAX: Final = 998
_NAMED: Final = re.compile(r"(?P<name>[^<>]*)<(?P<spec>[^<>]*)>\s*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")


def read_address(text: str) -> Address:
    """Read `ada@example.test` or `Ada <ada@example.test>`; the domain comes back in ASCII.

    Raises ValueError for anything else, also for two addresses in one text.
    """
    if len(text) > ADDRESS_MAX or _CONTROL.search(text):
        raise ValueError(f"an address is one line of at most {ADDRESS_MAX} characters")
    named = _NAMED.fullmatch(text)
    name = named["name"].strip().strip('"') if named else ""
    local, _, domain = (named["spec"] if named else text).strip().rpartition("@")
    try:
        address = Address(name, addr_spec=f"{local}@{domain.encode('idna').decode('ascii')}")
    except (ValueError, HeaderParseError, IndexError) as error:
        raise ValueError("must be one mail address, with a name before it or without") from error
    if not address.username or not address.domain:
        raise ValueError("must be one mail address, with a name before it or without")
    return address


def _check_line(text: str, info: ValidationInfo) -> str:
    if is_final(text, info) and _CONTROL.search(text):
        raise ValueError("must be one line")
    if len(text) > SUBJECT_MAX and is_final(text, info):
        raise ValueError(f"has at most {SUBJECT_MAX} characters")
    return text


def _check_addresses(given: object, info: ValidationInfo) -> str | list[str]:
    """Check one address or a list; each text that is not a template any more must be one address."""
    if isinstance(given, str):
        _check_address(given, info)
        return given
    if not isinstance(given, list | tuple):
        raise ValueError("must be an address or a list of them")
    if not 1 <= len(given) <= RECIPIENTS_MAX:
        raise ValueError(f"must have 1 to {RECIPIENTS_MAX} entries, not {len(given)}")
    faults = list(_address_faults(given, info))
    if faults:
        raise Refused(faults)
    return list(map(as_text, given))


def _address_faults(given: Iterable[object], info: ValidationInfo) -> Iterable[Fault]:
    for index, each in enumerate(given):
        try:
            _check_address(as_text(each), info)
        except ValueError as error:
            yield Fault(f"[{index}]", str(error))


def _check_address(text: str, info: ValidationInfo) -> None:
    if is_final(text, info):
        read_address(text)


Addresses = Annotated[
    str | list[str],
    PlainValidator(_check_addresses),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class SendEmail(ActionConfig):
    """Send a mail. In `html` each rendered value is escaped."""

    html_text: ClassVar[frozenset[str]] = frozenset({"html"})

    to: Addresses
    cc: Annotated[Addresses | None, Given] = None
    bcc: Annotated[Addresses | None, Given] = None
    reply_to: Annotated[Addresses | None, Given] = None
    subject: Annotated[Filled, AfterValidator(_check_line)]
    body: Text
    html: Annotated[Filled | None, Given] = None
