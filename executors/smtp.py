"""Mail: one message handed to the operator's server, within one deadline for all of it.

A `Mailer` knows no run; whoever has a composed message may send it. The server's name, certificate and login
are checked; one connection serves one message, so no thread waits for another.
"""

import smtplib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Final

import httpx2

from executors.classify import classify_error
from executors.deadline import Deadline
from executors.dialing import (
    ADDRESSES_TRIED,
    UNRESOLVABLE,
    Lookup,
    Resolver,
    system_lookup,
)
from executors.smtp_session import AUTH, TLS, MailServer, Reply, Session, recipients_of
from executors.targets import Origin, Target
from shared.errors import ActionError, FatalError, RetryableError
from shared.settings import Settings

TEMPORARY: Final = "MAIL_TEMPORARY"
REFUSED: Final = "MAIL_REFUSED"
NOT_CONFIGURED: Final = "MAIL_NOT_CONFIGURED"
SAID_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Delivered:
    """How many recipients the server took a message for, and what it said about the others."""

    taken: int
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MailNetwork:
    """How a server is reached; a test puts its own resolver or trust here."""

    lookup: Lookup = system_lookup
    tls: ssl.SSLContext | None = None


class Mailer:
    """Sends through one server, or through none: then everything is refused MAIL_NOT_CONFIGURED."""

    def __init__(self, server: MailServer | None, network: MailNetwork | None = None) -> None:
        """Open nothing yet. Certificates are verified against the system's store, or SSL_CERT_FILE."""
        network = network or MailNetwork()
        self._server = server
        self._resolver = Resolver(network.lookup)
        self._tls = network.tls

    @property
    def sender(self) -> str:
        """Whom mail comes from. Raises FatalError MAIL_NOT_CONFIGURED."""
        return self._configured().sender

    def send(self, message: EmailMessage, deadline: Deadline) -> None:
        """Hand a message over to its recipients; raises as `deliver`, which tells of refused ones too."""
        self.deliver(message, deadline)

    def deliver(self, message: EmailMessage, deadline: Deadline) -> Delivered:
        """Hand a message over and tell who was refused, each with the server's words.

        Raises RetryableError MAIL_TEMPORARY or NET_* for faults that pass, and FatalError: MAIL_REFUSED where
        the server wants the message or all recipients not, MAIL_AUTH, MAIL_TLS, ACTION_TIMEOUT.
        """
        server = self._configured()
        deadline.check()
        try:
            return self._hand_over(server, message, deadline)
        except ActionError:
            raise
        except (smtplib.SMTPException, OSError) as error:
            deadline.check()
            raise _judged(error, f"{server.host}:{server.port}") from error

    def _configured(self) -> MailServer:
        if self._server is None:
            raise FatalError(NOT_CONFIGURED, "SMTP_HOST is not set")
        return self._server

    def _hand_over(self, server: MailServer, message: EmailMessage, deadline: Deadline) -> Delivered:
        tls = self._tls or ssl.create_default_context()
        session = Session(server, self._addresses(server, deadline), tls, deadline)
        try:
            session.open()
            refused = session.hand_over(message)
            session.part()
        finally:
            session.close()
        said = {address: _said(reply) for address, reply in refused.items()}
        return Delivered(len(recipients_of(message)) - len(said), said)

    def _addresses(self, server: MailServer, deadline: Deadline) -> Sequence[str]:
        origin = Origin("smtp", server.host, server.port)
        url = httpx2.URL(scheme="smtp", host=server.host, port=server.port)
        try:
            return self._resolver.addresses(Target(url, origin, None), deadline)[:ADDRESSES_TRIED]
        except FatalError as error:
            if error.code != UNRESOLVABLE:
                raise
            raise RetryableError(TEMPORARY, f"{server.host} has no address") from error


def open_mailer(settings: Settings) -> Mailer:
    """Make the mailer of a process from its settings."""
    if not settings.smtp_host:
        return Mailer(None)
    password = settings.smtp_password
    server = MailServer(
        host=settings.smtp_host,
        port=settings.smtp_port,
        tls=settings.smtp_tls,
        sender=settings.smtp_from or "",
        user=settings.smtp_user,
        password=password.get_secret_value() if password else None,
    )
    return Mailer(server)


def _judged(error: smtplib.SMTPException | OSError, where: str) -> ActionError:
    """Say what a fault of the exchange means: 4xx and broken connections pass, everything else does not."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return _by_codes([(error.smtp_code, error.smtp_error)], where, AUTH)
        case smtplib.SMTPRecipientsRefused():
            return _by_codes(list(error.recipients.values()), where, REFUSED)
        case smtplib.SMTPResponseException():
            return _by_codes([(error.smtp_code, error.smtp_error)], where, REFUSED)
        case smtplib.SMTPException() if not isinstance(error, smtplib.SMTPServerDisconnected):
            return FatalError(REFUSED, f"{where}: {error}")
        case ssl.SSLError() if not isinstance(error, ssl.SSLEOFError):
            return FatalError(TLS, f"{where}: {error.reason or error}")
    found = classify_error(error)
    code = found.code if found.retryable else TEMPORARY
    return RetryableError(code, f"{where}: {str(error) or type(error).__name__}")


def _by_codes(replies: Sequence[Reply], where: str, fatal: str) -> ActionError:
    """Take replies for temporary if each of them is one of 4xx, or the server is closing down (421)."""
    said = f"{where} answered {_said(replies[0])}" if replies else f"{where} took no recipient"
    codes = [code for code, _ in replies]
    if codes and (421 in codes or all(400 <= code < 500 for code in codes)):
        return RetryableError(TEMPORARY, said)
    return FatalError(fatal, said)


def _said(reply: Reply) -> str:
    code, words = reply
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
    return f"{code} {' '.join(text.split())}"[:SAID_MAX]
