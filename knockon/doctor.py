"""What is missing or misconfigured in a deployment, and the fix. Each check looks and changes nothing."""

import os
import platform
import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from knockon.doctor_alerts import examine_alerts
from knockon.doctor_api import examine_api
from knockon.doctor_kept import examine_kept
from knockon.doctor_parts import examine_parts
from knockon.doctor_redis import examine_redis
from knockon.doctor_server import examine_server, open_files
from knockon.doctor_work import examine_work
from knockon.findings import Finding, Level
from knockon.servers import check_database_file, database_url
from shared.db.engine import Database, open_database, sqlite_file
from shared.db.migrating import is_later, missing_migrations
from shared.db.reads import workspace_ids
from shared.db.schedules import standing_schedules
from shared.db.server_clock import SKEW_MAX, clock_skew
from shared.errors import ConfigError
from shared.masking import mask_urls
from shared.misspelt import find_misspelt
from shared.plugins import installed_plugins
from shared.settings import Settings
from shared.time.clock import SystemClock

OLDEST_PYTHON: Final = (3, 11)
LONG_WAIT: Final = timedelta(seconds=60)
NAMED: Final = 5
ROOM_NEEDED_BYTES: Final = 1024**2


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything that a deployment needs, most basic first."""
    yield _python()
    yield _settings()
    yield _data_folder(settings.data_dir)
    yield open_files()
    yield from plugin_findings()
    away = set[str]()
    for subject, check in (("redis", examine_redis), ("sql", _sql)):
        for finding in _looked(subject, check(settings)):
            yield finding
            if finding.level is Level.FAIL:
                away.add(finding.subject)
    yield from examine_parts(settings, away)
    yield from _looked("api", examine_api(settings))


def _looked(subject: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Give what a check finds, and what keeps it from looking as a finding of its own."""
    try:
        yield from findings
    except OSError as error:
        where = error.filename or "it"
        text = f"{where} cannot be looked at: {error.strerror or error}"
        yield Finding(Level.FAIL, subject, text, "see that this user can use the data folder")


def _python() -> Finding:
    found, wanted = platform.python_version(), ".".join(map(str, OLDEST_PYTHON))
    if tuple(map(int, platform.python_version_tuple()[:2])) < OLDEST_PYTHON:
        return Finding(Level.FAIL, "python", found, f"use Python {wanted} or later")
    return Finding(Level.OK, "python", found)


def plugin_findings() -> Iterator[Finding]:
    """Tell of each plug-in that was found, and of each that cannot be used."""
    plugins = installed_plugins()
    for each in plugins.found.values():
        yield Finding(Level.OK, "plug-in", f"{each.action_type}, by {each.distribution}")
    for broken in plugins.broken:
        text = f"{broken.name}, by {broken.distribution}: {broken.reason}"
        yield Finding(Level.FAIL, "plug-in", text, "mend that distribution, or uninstall it")


def _settings() -> Finding:
    found = find_misspelt()
    if not found:
        return Finding(Level.OK, "settings", "are well-formed")
    text = f"nothing reads {', '.join(found)}"
    return Finding(Level.WARN, "settings", text, f"write {', '.join(found.values())}, if that is meant")


def _data_folder(folder: Path) -> Finding:
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return Finding(
            Level.FAIL, "data folder", f"{folder} cannot be written", "set KNOCKON_DATA_DIR to one that can"
        )
    if shutil.disk_usage(nearest).free < ROOM_NEEDED_BYTES:
        return Finding(Level.FAIL, "data folder", f"the disk of {folder} is full", "make room on it")
    return Finding(Level.OK, "data folder", str(folder))


def _sql(settings: Settings) -> Iterator[Finding]:
    try:
        check_database_file(settings)
    except ConfigError as error:
        text, _, fix = str(error).partition("; make it with: ")
        yield Finding(Level.FAIL, "sql", text, fix)
        return
    url = database_url(settings)
    file = sqlite_file(url)
    if file is not None and not _can_write(file):
        text = f"{file} cannot be written"
        yield Finding(Level.FAIL, "sql", text, "let this user write to it and to its folder")
        return
    database = open_database(url, pool_size=1)
    checks: tuple[Callable[[Database], Finding], ...] = (_migrations, _clock, _workspace, _schedules)
    try:
        for check in checks:
            finding = check(database)
            yield finding
            if finding.level is Level.FAIL:
                return
        yield from examine_server(database, file)
        yield from examine_work(database, settings)
        yield from examine_kept(database, settings)
        yield from examine_alerts(database, settings)
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", error)).strip().splitlines()[0]
        fix = "start it, or correct DATABASE_URL" if file is None else "see to its disk and its folder"
        yield Finding(Level.FAIL, "sql", mask_urls(f"{file or url}: {said}"), fix)
    finally:
        database.dispose()


def _can_write(file: Path) -> bool:
    """Tell whether SQLite can write to a database: it makes other files beside it."""
    return os.access(file, os.R_OK | os.W_OK) and os.access(file.parent, os.W_OK | os.X_OK)


def _migrations(database: Database) -> Finding:
    missing = missing_migrations(database)
    if missing:
        return Finding(Level.FAIL, "sql", f"{database.dialect} lacks {', '.join(missing)}", "knockon migrate")
    if is_later(database):
        text = f"{database.dialect}, with the tables of a later version"
        return Finding(Level.WARN, "sql", text, "install that version here too")
    return Finding(Level.OK, "sql", f"{database.dialect}, with all migrations")


def _clock(database: Database) -> Finding:
    with database.read() as conn:
        skew = clock_skew(conn, SystemClock().now())
    if skew is None:
        return Finding(Level.OK, "clock", "is that of the database")
    if abs(skew) > SKEW_MAX:
        text = f"is {skew.total_seconds():+.1f} s off the database's"
        return Finding(Level.WARN, "clock", text, "let both machines take their time from NTP")
    return Finding(Level.OK, "clock", "agrees with the database's")


def _workspace(database: Database) -> Finding:
    with database.read() as conn:
        found = workspace_ids(conn, most=3)
    if not found:
        return Finding(Level.WARN, "workspace", "there is none", "knockon init")
    return Finding(Level.OK, "workspace", ", ".join(found))


def _schedules(database: Database) -> Finding:
    with database.read() as conn:
        found = standing_schedules(conn, before=SystemClock().now() - LONG_WAIT, most=NAMED + 1)
    if not found:
        return Finding(Level.OK, "schedules", "every active one has a next fire")
    shown = ", ".join(f"{each.key} ({each.workspace_id})" for each in found[:NAMED])
    more = " and more" if len(found) > NAMED else ""
    text = f"{shown}{more}: active, but without a next fire, or past it"
    return Finding(Level.WARN, "schedules", text, "see that timers run, and read their log")
