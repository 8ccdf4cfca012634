"""Whoever tells people of dead letters outside the inbox (docs/operations.md, "Alerts").

A loop of its own, on a thread of the timers process: alerts are folded into groups, what channels are told is
decided, what is due is sent. Any number of them may run: rows that one has locked are passed over by the
others. It makes no runs and no dead letters.
"""

from functools import partial
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from shared.db.alert_groups import due_workspaces
from shared.db.alert_sends import ChannelKind
from shared.db.alerts import fold_alerts, waiting
from shared.duties import Outages
from shared.logs import get_logger
from shared.process import StopFlag
from shared.services.backends import Backends
from shared.settings import Settings
from timers.alert_choices import choose
from timers.alert_sending import Sender
from timers.alert_ways import Ways, open_ways

TICK_S: Final = 1.0
FOLDED_AT_ONCE: Final = 5_000
FOLDS_A_PASS: Final = 20
WORKSPACES_A_PASS: Final = 100
SENDING_S: Final = 10.0

log: Final = get_logger("alerts")


class Teller:
    """Folds, decides and sends."""

    def __init__(self, settings: Settings, backends: Backends, ways: Ways | None = None) -> None:
        """Connect nothing yet; `ways` stand for the ways out that the settings name."""
        self._database = backends.database
        self._clock = backends.clock
        self._ways = ways or open_ways(settings, backends.clock)
        self._kinds = frozenset(
            kind for kind in ChannelKind if kind is not ChannelKind.MAIL or self._ways.mail is not None
        )
        self._sender = Sender(settings, backends.database, self._ways)
        self._outages = Outages("alerts")

    def run(self, stop: StopFlag) -> None:
        """Go on until the flag is raised; an outage or a bug costs a pass, never the loop."""
        while not stop.is_raised():
            try:
                self.tick()
            except SQLAlchemyError as error:
                self._outages.note(error)
            except Exception:
                log.exception("alert_pass_failed")
            else:
                self._outages.end()
            stop.wait(TICK_S)

    def tick(self) -> None:
        """Do all that is due now; where nothing is, one statement says so."""
        with self._database.read() as conn:
            found = waiting(conn)
        now = self._clock.now()
        if found.unfolded is not None:
            self._fold()
        if found.unfolded is not None or (found.undecided is not None and found.undecided <= now):
            self._decide()
        self._send()

    def _fold(self) -> None:
        now = self._clock.now()

        def fold() -> int:
            return self._database.transact(lambda conn: fold_alerts(conn, now=now, most=FOLDED_AT_ONCE))

        for _ in range(FOLDS_A_PASS):
            folded = fold()
            log.debug("alerts_folded", count=folded)
            if folded < FOLDED_AT_ONCE:
                break

    def _decide(self) -> None:
        now = self._clock.now()
        with self._database.read() as conn:
            workspaces = due_workspaces(conn, now=now, most=WORKSPACES_A_PASS)
        for workspace_id in workspaces:
            work = partial(choose, workspace_id=workspace_id, kinds=self._kinds, now=now)
            messages = self._database.transact(work)
            if messages:
                log.info("alerts_written", workspace_id=workspace_id, messages=messages)

    def _send(self) -> None:
        """Send what is due, for a while: a server that hangs must not keep alerts from being folded."""
        with self._database.read() as conn:
            unsent = waiting(conn).unsent
        if unsent is not None and unsent <= self._clock.now():
            self._sender.send_due(self._clock.monotonic() + SENDING_S)
