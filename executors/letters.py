"""How a mail is written: addresses, headers that no text can break out of, plain text and HTML."""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

from shared.errors import FatalError
from shared.model.mail_config import read_address

CONFIG_INVALID: Final = "CONFIG_INVALID"
POLICY: Final = SMTP.clone(cte_type="7bit")


@dataclass(frozen=True, slots=True)
class Letter:
    """What a mail says, to whom, and from whom; addresses are texts such as `Ada <ada@example.test>`."""

    sender: str
    to: tuple[str, ...]
    subject: str
    body: str
    at: datetime
    message_id: str
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    reply_to: tuple[str, ...] = ()
    html: str | None = None


def compose(letter: Letter) -> EmailMessage:
    """Write the mail. Raises FatalError CONFIG_INVALID for what no header can hold."""
    message = EmailMessage(policy=POLICY)
    named = (
        ("From", (letter.sender,)),
        ("To", letter.to),
        ("Cc", letter.cc),
        ("Bcc", letter.bcc),
        ("Reply-To", letter.reply_to),
    )
    try:
        for name, addresses in named:
            if addresses:
                message[name] = [read_address(each) for each in addresses]
        message["Subject"] = letter.subject
    except ValueError as error:
        raise FatalError(CONFIG_INVALID, f"the mail cannot be written: {error}") from error
    message["Date"] = format_datetime(letter.at.astimezone(UTC))
    message["Message-ID"] = letter.message_id
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(_sendable(letter.body))
    if letter.html is not None:
        message.add_alternative(_sendable(letter.html), subtype="html")
    return message


def domain_of(sender: str) -> str:
    """Give the domain of a sender, in ASCII. Raises FatalError CONFIG_INVALID for what is no address."""
    try:
        return read_address(sender).domain
    except ValueError as error:
        raise FatalError(CONFIG_INVALID, f"SMTP_FROM {error}") from error


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
