"""A mail server on loopback that keeps what it took, and answers as a test wants."""

import asyncio
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

WAIT_S = 5.0


@dataclass
class Office:
    """What came in. `replies` are the answers to a recipient, and to `DATA`; others are taken."""

    replies: Mapping[str, str] = field(default_factory=dict)
    mails: list[EmailMessage] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    envelopes: list[tuple[str | None, list[str]]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    was_tls: list[bool] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802  # the names that the server calls
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        reply = self.replies.get(address, "250 OK")
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        parsed = message_from_bytes(content, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        reply = self.replies.get("DATA", "250 OK")
        if reply.startswith("250"):
            self.mails.append(parsed)
            self.contents.append(content)
            self.envelopes.append((envelope.mail_from, envelope.rcpt_tos))
            self.was_tls.append(session.ssl is not None)
        return reply

    def knows(self, server: Any, session: Any, envelope: Any, mechanism: str, found: Any) -> AuthResult:
        """Let in whoever has the password `right`."""
        assert isinstance(found, LoginPassword)
        self.logins.append((found.login.decode(), found.password.decode()))
        return AuthResult(success=found.password == b"right", handled=False)


class Door(Controller):
    """Listens on a port that was free, knows which it is, and leaves no connection open when it ends."""

    def __init__(self, handler: object, **given: Any) -> None:
        super().__init__(handler, hostname="127.0.0.1", port=0, **given)
        self._callers: list[SMTP] = []

    def factory(self) -> SMTP:
        caller = super().factory()  # type: ignore[no-untyped-call]  # the library has no types here
        assert isinstance(caller, SMTP)
        self._callers.append(caller)
        return caller

    def part(self) -> None:
        """End what is still open, and then itself."""
        asyncio.run_coroutine_threadsafe(self._part(), self.loop).result(WAIT_S)
        self.stop()

    async def _part(self) -> None:
        for caller in self._callers:
            if isinstance(caller.transport, asyncio.WriteTransport):
                caller.transport.abort()
        while any(caller.transport is not None for caller in self._callers):
            await asyncio.sleep(0.001)
        for _ in range(3):  # what lies under TLS is closed a turn later
            await asyncio.sleep(0)

    def _trigger_server(self) -> None:
        assert self.server is not None
        self.port = self.server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]  # its own type hides it
        super()._trigger_server()  # type: ignore[no-untyped-call]  # the library has no types here


@contextmanager
def opened_office(
    replies: Mapping[str, str] | None = None, tls: ssl.SSLContext | None = None, **given: Any
) -> Iterator[tuple[Office, int]]:
    """Open a mail server on a free port; `tls` offers STARTTLS, or with `ssl_context` speaks TLS at once."""
    office = Office(replies or {})
    options: dict[str, Any] = {"enable_SMTPUTF8": False, **given}
    if options.pop("asks_login", False):
        options |= {"authenticator": office.knows, "auth_require_tls": False}
    door = Door(office, tls_context=tls, **options)
    door.start()
    try:
        yield office, door.port
    finally:
        door.part()
