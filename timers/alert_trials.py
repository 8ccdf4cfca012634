"""A real sample through each of a workspace's channels, so that a person sees whether it arrives."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from executors.classify import classify_error
from executors.targets import parse_target
from shared.db.alert_channels import MAIL_NAME, list_channels, note_success
from shared.db.alert_sends import ChannelKind
from shared.db.engine import Database
from shared.ids import new_id
from shared.model.alert_message import AlertMessage, AlertPart
from shared.rules.alerting import GroupState
from shared.settings import Settings
from timers.alert_sending import FAULTS, Gone, Sender
from timers.alert_ways import Letter, Ways

NOBODY: Final = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of one sample: `error` is None where the other side took it."""

    channel: str
    target: str
    error: str | None


class Trials:
    """Tries the channels of one workspace."""

    def __init__(self, settings: Settings, database: Database, ways: Ways) -> None:
        """Keep what it works with."""
        self._database = database
        self._ways = ways
        self._sender = Sender(settings, database, ways)

    def run(self, workspace_id: str, to: str | None) -> Iterator[Trial]:
        """Try each webhook, and mail to one address if it is given. One that works is broken no more."""
        with self._database.read() as conn:
            channels = list_channels(conn, workspace_id)
        message = sample(workspace_id, self._ways.clock.now())
        for channel in channels:
            if channel.kind is ChannelKind.WEBHOOK:
                yield self._try_hook(message, channel.id, channel.name)
        if to is not None:
            yield self._try_mail(message, to)

    def _try_hook(self, message: AlertMessage, channel_id: str, name: str) -> Trial:
        host = ""
        try:
            hook = self._sender.hook(message.workspace_id, channel_id)
            host = parse_target(hook.url).host
            self._ways.send_hook(_letter(message), hook)
        except Gone as gone:
            return Trial(name, host, str(gone))
        except FAULTS as error:
            return Trial(name, host, _told(error))
        self._clear(message.workspace_id, channel_id)
        return Trial(name, host, None)

    def _try_mail(self, message: AlertMessage, to: str) -> Trial:
        try:
            self._ways.send_mail(_letter(message), to)
        except FAULTS as error:
            return Trial(MAIL_NAME, to, _told(error))
        self._clear(message.workspace_id, MAIL_NAME)
        return Trial(MAIL_NAME, to, None)

    def _clear(self, workspace_id: str, channel: str) -> None:
        self._database.transact(lambda conn: note_success(conn, workspace_id, channel))


def sample(workspace_id: str, now: datetime) -> AlertMessage:
    """Make up a message that looks like a real one and says what it is."""
    part = AlertPart(
        group_id=NOBODY,
        fingerprint="0" * 16,
        state=GroupState.NEW,
        automation_id=None,
        automation="A sample",
        host=None,
        code="SAMPLE",
        title="This is a test of the alerts: nothing has failed",
        message="somebody asked for it with: knockon alerts test",
        run_id=NOBODY,
        count=1,
        more=1,
        first_at=now,
        last_at=now,
        since=None,
    )
    return AlertMessage(workspace_id=workspace_id, about=part.automation, parts=(part,))


def _letter(message: AlertMessage) -> Letter:
    return Letter(new_id(), f"test.{message.workspace_id}", message)


def _told(error: Exception) -> str:
    found = classify_error(error)
    return f"{found.code}: {found.message}"
