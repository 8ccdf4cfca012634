"""One conversation with a mail server, in which every wait ends with the deadline."""

import io
import smtplib
import socket
import ssl
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from email.generator import BytesGenerator
from email.headerregistry import AddressHeader
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Final

from executors.deadline import Deadline
from executors.dialing import CONNECT_TIMEOUT_S
from shared.errors import FatalError
from shared.settings import SmtpTls

AUTH: Final = "MAIL_AUTH"
TLS: Final = "MAIL_TLS"
RECIPIENT_HEADERS: Final = ("To", "Cc", "Bcc")
POLICY: Final = SMTP.clone(cte_type="7bit")

Reply = tuple[int, bytes | str]


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail is handed over, and by whom. Without a user nobody logs in."""

    host: str
    port: int
    tls: SmtpTls
    sender: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)


class Session(smtplib.SMTP):
    """One connection; every wait in it ends with the deadline, however slowly the other side drips."""

    def __init__(
        self, server: MailServer, addresses: Sequence[str], tls: ssl.SSLContext, deadline: Deadline
    ) -> None:
        super().__init__(local_hostname=_own_name())
        self._server = server
        self._addresses = addresses
        self._tls = tls
        self._deadline = deadline
        self._host = server.host  # the name that STARTTLS verifies

    def open(self) -> None:
        """Connect, go over to TLS and log in, as far as the server is to be treated so."""
        reply = self.connect(self._server.host, self._server.port)
        if reply[0] != 220:
            raise smtplib.SMTPConnectError(*reply)
        self.ehlo_or_helo_if_needed()
        if self._server.tls is SmtpTls.STARTTLS:
            self._go_over()
        if self._server.user is not None:
            self._log_in(self._server.user, self._server.password or "")

    def hand_over(self, message: EmailMessage) -> Mapping[str, Reply]:
        """Send the message and give the recipients that were refused.

        Not by the library's own way, which puts a `>` before lines of the text that begin with `From `.
        """
        sender, recipients = _addresses_in(message, ("From",))[0], recipients_of(message)
        return self.sendmail(sender, recipients, _flattened(message))

    def part(self) -> None:
        """Say good-bye and wait for no answer: the message is taken, whatever comes now."""
        try:
            self.putcmd("quit")
        except (smtplib.SMTPException, OSError):
            return

    def getreply(self) -> tuple[int, bytes]:
        """Read one reply of the server."""
        if self.file is None:
            self.file = io.BufferedReader(_InTime(self._socket(), self._deadline))
        return super().getreply()

    def send(self, s: Any) -> None:
        """Write to the server."""
        self._socket().settimeout(_left_s(self._deadline))
        super().send(s)

    def _socket(self) -> socket.socket:
        if self.sock is None:
            raise smtplib.SMTPServerDisconnected("there is no connection")
        return self.sock

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """Dial the addresses in their order; the signature is the library's."""
        for tries_left in range(len(self._addresses), 1, -1):
            try:
                return self._dial(self._addresses[-tries_left], port, tries_left)
            except OSError:
                continue
        return self._dial(self._addresses[-1], port, 1)

    def _dial(self, address: str, port: int, tries: int) -> socket.socket:
        wait_s = min(CONNECT_TIMEOUT_S, _left_s(self._deadline)) / tries
        found = socket.create_connection((address, port), wait_s)
        if self._server.tls is not SmtpTls.TLS:
            return found
        try:
            found.settimeout(_left_s(self._deadline))
            return self._tls.wrap_socket(found, server_hostname=self._server.host)
        except OSError:
            found.close()
            raise

    def _go_over(self) -> None:
        if not self.has_extn("starttls"):
            raise FatalError(TLS, f"{self._server.host} offers no STARTTLS")
        self._socket().settimeout(_left_s(self._deadline))
        self.starttls(context=self._tls)
        self.ehlo_or_helo_if_needed()

    def _log_in(self, user: str, password: str) -> None:
        if not self.has_extn("auth"):
            raise FatalError(AUTH, f"{self._server.host} offers no login")
        try:
            self.login(user, password)
        except smtplib.SMTPResponseException:
            raise
        except smtplib.SMTPServerDisconnected:
            raise
        except smtplib.SMTPException as error:
            raise FatalError(AUTH, f"{self._server.host} offers no login that is known here") from error


class _InTime(io.RawIOBase):
    """What a socket says, as long as there is time."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        super().__init__()
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        """Tell that this can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there, at the latest by the deadline."""
        self._sock.settimeout(_left_s(self._deadline))
        return self._sock.recv_into(buffer)


def _left_s(deadline: Deadline) -> float:
    left_s = deadline.remaining_s()
    if left_s <= 0:
        raise TimeoutError("no time was left")
    return left_s


def _own_name() -> str:
    """Name this machine for the greeting, without asking a resolver."""
    name = socket.gethostname()
    return name if "." in name and name.isascii() else "[127.0.0.1]"


def recipients_of(message: EmailMessage) -> list[str]:
    """Give everybody whom a message goes to, each once."""
    return _addresses_in(message, RECIPIENT_HEADERS)


def _flattened(message: EmailMessage) -> bytes:
    shown = copy(message)
    del shown["Bcc"]
    content = io.BytesIO()
    BytesGenerator(content, mangle_from_=False, policy=POLICY).flatten(shown)
    return content.getvalue()


def _addresses_in(message: EmailMessage, names: Sequence[str]) -> list[str]:
    headers = [message[name] for name in names]
    found = [
        each.addr_spec for header in headers if isinstance(header, AddressHeader) for each in header.addresses
    ]
    return list(dict.fromkeys(found))
