"""The ways out of the house for alerts: mail to a person, a signed POST to a webhook.

Each raises what went wrong; when to try again is the caller's. A receiver knows a repeat by its id, which is
that of the row: the Message-ID of a mail, the `webhook-id` of a POST.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from typing import Final, Protocol

import orjson

from executors.deadline import Deadline
from executors.outbound import Outbound, OutboundPolicy, OutboundRequest
from executors.send_webhook import USER_AGENT, sign
from executors.smtp import open_mailer
from executors.targets import parse_target
from executors.webhook_answers import check_status
from shared.errors import FatalError
from shared.masking import mask_tree
from shared.model.alert_message import AlertMessage
from shared.settings import Settings
from shared.time.clock import Clock
from timers.alert_texts import html_text, plain_text, subject_of

SEND_TIME: Final = timedelta(seconds=30)
EVENT: Final = "alert.dead_letters"


class Mail(Protocol):
    """What takes a mail to the server."""

    def send(self, message: EmailMessage, deadline: Deadline) -> object:
        """Deliver it. Raises RetryableError or FatalError."""
        ...


@dataclass(frozen=True, slots=True)
class Hook:
    """A webhook, decrypted."""

    url: str
    secret: str | None


@dataclass(frozen=True, slots=True)
class Letter:
    """One message on its way: its id for this target, the instant it was written for, and what it says."""

    id: str
    thread: str
    message: AlertMessage


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways of one process; `mail` is None where no mail server is set."""

    mail: Mail | None
    sender: str
    http: Outbound
    clock: Clock

    def send_mail(self, letter: Letter, to: str) -> None:
        """Mail it to one person. Raises ActionError."""
        if self.mail is None:
            raise FatalError("MAIL_NOT_CONFIGURED", "SMTP_HOST is not set")
        composed = compose(letter, self.sender, to, self.clock.now())
        self.mail.send(composed, Deadline.after(self.clock, SEND_TIME))

    def send_hook(self, letter: Letter, hook: Hook) -> None:
        """POST it. Raises ActionError, or OSError where no connection came up."""
        body = orjson.dumps(hook_body(letter, self.clock.now()))
        now = self.clock.now()
        headers = {
            "user-agent": USER_AGENT,
            "accept": "*/*",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "webhook-id": letter.id,
            "webhook-timestamp": str(int(now.timestamp())),
        }
        target = parse_target(hook.url)
        if target.authorization is not None:
            headers["authorization"] = target.authorization
        secret = hook.secret if hook.secret is not None else self.http.policy.webhook_secret
        if secret is not None:
            headers["webhook-signature"] = sign(secret, letter.id, now, body)
        deadline = Deadline.after(self.clock, SEND_TIME)
        answer = self.http.exchange(OutboundRequest("POST", target, headers, body), deadline)
        check_status(answer.status, f"POST {target.shown}", None)


def open_ways(settings: Settings, clock: Clock) -> Ways:
    """Build the ways from the settings; nothing is connected yet."""
    secret = settings.webhook_secret
    policy = OutboundPolicy(settings.webhook_allow_private, secret.get_secret_value() if secret else None)
    return Ways(
        mail=open_mailer(settings) if settings.smtp_host else None,
        sender=settings.smtp_from or "",
        http=Outbound(policy, clock),
        clock=clock,
    )


def compose(letter: Letter, sender: str, to: str, now: datetime) -> EmailMessage:
    """Write the mail. Raises FatalError for an address that is none."""
    domain = parseaddr(sender)[1].rpartition("@")[2]
    message = EmailMessage()
    message["From"] = sender
    try:
        message["To"] = Address(addr_spec=to)
    except (ValueError, IndexError) as error:
        raise FatalError("MAIL_BAD_ADDRESS", "the member's address is no mail address") from error
    message["Subject"] = subject_of(letter.message)
    message["Date"] = format_datetime(now.astimezone(UTC))
    message["Message-ID"] = f"<{letter.id}@{domain}>"
    message["References"] = f"<{letter.thread}@{domain}>"
    message["List-Id"] = f"Knockon alerts <{letter.message.workspace_id}.alerts.{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message["X-Auto-Response-Suppress"] = "All"
    message.set_content(plain_text(letter.message))
    message.add_alternative(html_text(letter.message), subtype="html")
    return message


def hook_body(letter: Letter, now: datetime) -> Mapping[str, object]:
    """Give the body of a POST; `text` is what chat services show."""
    told = letter.message
    return {
        "type": EVENT,
        "timestamp": now.astimezone(UTC).isoformat(timespec="milliseconds"),
        "text": f"{subject_of(told)}\n{plain_text(told)}",
        "data": mask_tree(told.model_dump(mode="json")),
    }
