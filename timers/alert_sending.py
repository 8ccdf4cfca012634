"""Messages that are due go out one after another, each claimed first and written off afterwards.

A process that dies while it sends leaves a claim that runs out: the message goes out once more, under the
same id. A target that fails is tried again later and later; that makes no dead letter of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from executors.classify import classify_error
from shared.db.alert_channels import (
    MAIL_NAME,
    ChannelFailure,
    admin_addresses,
    find_channel,
    note_failure,
    note_success,
)
from shared.db.alert_sends import ChannelKind, ClaimedSend, claim_send, end_send
from shared.db.engine import Database
from shared.db.history import AuditEntry, insert_audit
from shared.db.people import ADMIN_ROLES, Notice, insert_notices
from shared.errors import ActionError, ConfigError, FatalError
from shared.logs import get_logger
from shared.model.alert_message import AlertMessage
from shared.sealing import Unreadable
from shared.secrets import find_seal
from shared.settings import Settings
from timers.alert_ways import SEND_TIME, Hook, Letter, Ways

ATTEMPTS_MAX: Final = 8
FIRST_WAIT: Final = timedelta(minutes=1)
LONGEST_WAIT: Final = timedelta(hours=1)
HOLD: Final = 3 * SEND_TIME
CHANNEL: Final = "alert_channel"
ACTOR: Final = "SYSTEM alerts"
ERROR_CHARS: Final = 500
FAULTS: Final = (ActionError, ConfigError, Unreadable, OSError, ValueError, LookupError)

log: Final = get_logger("alerts")


class Gone(Exception):
    """Whom a message was for is no longer to be told: its channel was removed, or its reader's role."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a message: an error or none, and when it is tried again, if ever."""

    error: str | None = None
    again_at: datetime | None = None


Follow = Callable[[Connection, ClaimedSend, datetime], None]


def wait_after(attempts: int) -> timedelta | None:
    """Say how long to wait after so many failed attempts; None to give up."""
    if attempts >= ATTEMPTS_MAX:
        return None
    return min(FIRST_WAIT * (1 << (attempts - 1)), LONGEST_WAIT)


class Sender:
    """Sends what is due."""

    def __init__(self, settings: Settings, database: Database, ways: Ways) -> None:
        """Keep what it works with."""
        self._settings = settings
        self._database = database
        self._ways = ways

    def send_due(self, until_s: float) -> None:
        """Send what is due, until a reading of the monotonic clock.

        Mail has one server for all. Once it failed, the rest of this time is for webhooks.
        """
        but: ChannelKind | None = None
        while self._ways.clock.monotonic() < until_s:
            send = self._claim(but)
            if send is None:
                return
            if not self._is_over(send) and send.address.kind is ChannelKind.MAIL:
                but = ChannelKind.MAIL

    def _claim(self, but: ChannelKind | None) -> ClaimedSend | None:
        now = self._ways.clock.now()
        return self._database.transact(lambda conn: claim_send(conn, but, now=now, hold=HOLD))

    def _is_over(self, send: ClaimedSend) -> bool:
        """Send a message outside any transaction, and write what came of it; False where its way is down."""
        if send.attempts > ATTEMPTS_MAX:
            self._end(send, Outcome("SENDER_DIED: whoever sent it died each time"), _note_nothing)
            return True
        try:
            self._deliver(send)
        except Gone as gone:
            self._end(send, Outcome(str(gone)), _note_nothing)
        except FAULTS as error:
            found = classify_error(error)
            self._fail(send, f"{found.code}: {found.message}"[:ERROR_CHARS])
            return not found.retryable
        else:
            self._end(send, Outcome(), _note_success)
        return True

    def _deliver(self, send: ClaimedSend) -> None:
        message = AlertMessage.model_validate(send.message)
        thread = send.group_id if message.groups == 1 else f"digest.{send.workspace_id}"
        letter = Letter(send.id, thread, message)
        match send.address.kind:
            case ChannelKind.MAIL:
                with self._database.read() as conn:
                    readers = admin_addresses(conn, send.workspace_id)
                if send.address.target not in readers:
                    raise Gone("REFERENCE_GONE: no owner or admin has this address any more")
                self._ways.send_mail(letter, send.address.target)
            case ChannelKind.WEBHOOK:
                self._ways.send_hook(letter, self.hook(send.workspace_id, send.address.target))

    def hook(self, workspace_id: str, channel_id: str) -> Hook:
        """Read a webhook and decrypt it. Raises Gone, or FatalError where no key opens it."""
        with self._database.read() as conn:
            channel = find_channel(conn, workspace_id, channel_id)
        if channel is None:
            raise Gone("REFERENCE_GONE: the channel was removed")
        found = find_seal(self._settings)
        if found is None:
            raise FatalError("SECRET_UNREADABLE", "the key that encrypts channels is not there")
        try:
            secret = found.seal.open(channel.secret) if channel.secret else None
            return Hook(found.seal.open(channel.url), secret)
        except Unreadable as error:
            raise FatalError("SECRET_UNREADABLE", f"no key opens the channel {channel.name}") from error

    def _fail(self, send: ClaimedSend, error: str) -> None:
        wait = wait_after(send.attempts)
        again_at = self._ways.clock.now() + wait if wait else None
        log.warning(
            "alert_failed", channel=send.address.kind, send_id=send.id, attempts=send.attempts, reason=error
        )
        self._end(send, Outcome(error, again_at), _note_failure)

    def _end(self, send: ClaimedSend, outcome: Outcome, follow: Follow) -> None:
        """Write what came of it, unless the claim ran out and another process has it now."""
        now = self._ways.clock.now()

        def work(conn: Connection) -> bool:
            if not end_send(conn, send, outcome.error, outcome.again_at, now=now):
                return False
            follow(conn, send, now)
            return True

        if not self._database.transact(work):
            log.warning("alert_claim_lost", send_id=send.id)


def _note_nothing(conn: Connection, send: ClaimedSend, now: datetime) -> None:
    """Say nothing of the channel: that the message did not arrive was not its fault."""


def _note_success(conn: Connection, send: ClaimedSend, now: datetime) -> None:
    if note_success(conn, send.workspace_id, _channel_of(send)):
        log.info("alert_channel_recovered", channel=_channel_of(send), at=now.isoformat())


def _note_failure(conn: Connection, send: ClaimedSend, now: datetime) -> None:
    failure = note_failure(conn, send.workspace_id, _channel_of(send), now=now)
    if failure is not None and failure.has_broken:
        insert_notices(conn, [_broken_notice(send.workspace_id, failure)], now=now)
        detail = {"name": failure.name, "failures": failure.failures}
        entry = AuditEntry(send.workspace_id, ACTOR, "alert_channel.broken", CHANNEL, failure.id, detail)
        insert_audit(conn, [entry], now=now)


def _channel_of(send: ClaimedSend) -> str:
    return MAIL_NAME if send.address.kind is ChannelKind.MAIL else send.address.target


def _broken_notice(workspace_id: str, failure: ChannelFailure) -> Notice:
    return Notice(
        workspace_id=workspace_id,
        roles=ADMIN_ROLES,
        title=f'Alert channel "{failure.name}" is broken',
        body=f"{failure.failures} attempts in a row failed. What is wrong: knockon alerts test",
        resource_type=CHANNEL,
        resource_id=failure.id,
    )
