"""What `knockon doctor` says about alerts: the mail server, broken channels, and what waits for too long."""

import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from knockon.findings import Finding, Level
from shared.db.alert_channels import broken_channels
from shared.db.alerts import waiting
from shared.db.engine import Database
from shared.errors import ConfigError
from shared.secrets import find_seal, key_file
from shared.services.sealed import name_some, sealed_channels, unopened
from shared.settings import Settings
from shared.time.clock import SystemClock

CONNECT_S: Final = 3.0
LONG_WAIT: Final = timedelta(minutes=5)
NAMED: Final = 5
ADD_ANEW: Final = "knockon alerts channels remove NAME, and add it anew"


def examine_alerts(database: Database, settings: Settings) -> Iterator[Finding]:
    """Look at the ways on which people are told of dead letters."""
    yield _mail(settings)
    yield _channels(database, settings)
    yield _waiting(database)


def _mail(settings: Settings) -> Finding:
    if not settings.smtp_host:
        return Finding(Level.OK, "mail", "SMTP_HOST is not set: dead letters are told of without mail")
    where = f"{settings.smtp_host}:{settings.smtp_port}"
    try:
        socket.create_connection((settings.smtp_host, settings.smtp_port), CONNECT_S).close()
    except OSError as error:
        text = f"{where} cannot be reached: {error}"
        return Finding(Level.WARN, "mail", text, "start it, or correct SMTP_HOST and SMTP_PORT")
    return Finding(Level.OK, "mail", f"{where} can be reached")


def _channels(database: Database, settings: Settings) -> Finding:
    with database.read() as conn:
        broken, sealed = broken_channels(conn), sealed_channels(conn)
    try:
        found = find_seal(settings)
    except ConfigError:
        found = None
    closed = unopened(found.seal if found else None, sealed)
    if closed:
        by = f"the key of {found.source}" if found else f"SECRETS_KEY or {key_file(settings)}"
        text = f"{name_some(closed)} cannot be decrypted with {by}, and tell nobody"
        return Finding(Level.FAIL, "alert channels", text, f"bring the key back, or {ADD_ANEW}")
    if not broken:
        return Finding(Level.OK, "alert channels", "none is broken")
    shown = ", ".join(f"{channel.name} ({channel.workspace_id})" for channel in broken[:NAMED])
    more = " and more" if len(broken) > NAMED else ""
    return Finding(Level.WARN, "alert channels", f"broken: {shown}{more}", "knockon alerts test")


def _waiting(database: Database) -> Finding:
    with database.read() as conn:
        found = waiting(conn)
    since = min(filter(None, (found.unfolded, found.undecided, found.unsent)), default=None)
    wait = SystemClock().now() - since if since else timedelta(0)
    if wait > LONG_WAIT:
        text = f"the first waits for {wait.total_seconds() / 60:,.0f} minutes"
        return Finding(Level.WARN, "alerts", text, "see that timers run, and read their log")
    return Finding(Level.OK, "alerts", "none waits for long")
