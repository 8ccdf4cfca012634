"""What is missing or misconfigured in a deployment, and the fix. Each check looks and changes nothing."""

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Final

from redis.exceptions import ResponseError
from sqlalchemy.exc import SQLAlchemyError

from knockon.doctor_alerts import examine_alerts
from knockon.doctor_kept import examine_kept
from knockon.findings import Finding, Level
from knockon.servers import check_database_file, database_url, redis_url
from shared.db.engine import Database, open_database
from shared.db.migrating import missing_migrations
from shared.db.reads import workspace_ids
from shared.db.schedules import standing_schedules
from shared.db.server_clock import SKEW_MAX, clock_skew
from shared.errors import ConfigError
from shared.keys import GROUP, Keys
from shared.masking import mask_userinfo
from shared.model.runs import QueueKind
from shared.plugins import installed_plugins
from shared.queue import HandleQueue
from shared.redis_port import REDIS_ERRORS, RedisPort, open_redis
from shared.settings import Settings
from shared.time.clock import SystemClock

OLDEST_REDIS: Final = (6, 2)
OLDEST_PYTHON: Final = (3, 11)
LONG_WAIT: Final = timedelta(seconds=60)
LONG_LAG: Final = 10_000
NAMED: Final = 5
SUSPENDED: Final = "rq:suspended"


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything that a deployment needs, most basic first."""
    yield _python()
    yield Finding(Level.OK, "settings", "are well-formed")
    yield _data_folder(settings.data_dir)
    yield from plugin_findings()
    yield from _redis(settings)
    yield from _sql(settings)


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


def _data_folder(folder: Path) -> Finding:
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        return Finding(
            Level.FAIL, "data folder", f"{folder} cannot be written", "set KNOCKON_DATA_DIR to one that can"
        )
    return Finding(Level.OK, "data folder", str(folder))


def _redis(settings: Settings) -> Iterator[Finding]:
    try:
        url = redis_url(settings)
    except ConfigError as error:
        yield Finding(
            Level.FAIL, "redis", "none runs here and REDIS_URL is not set", str(error).rpartition("; ")[2]
        )
        return
    keys = Keys(settings.prefix, settings.events_stream)
    with closing(open_redis(url)) as client:
        try:
            yield _redis_version(client)
            yield from _redis_memory(client)
            yield _suspension(client)
            yield _stream(client, keys)
            yield from (_queue(HandleQueue(client, keys), kind) for kind in QueueKind)
        except REDIS_ERRORS as error:
            yield Finding(
                Level.FAIL, "redis", mask_userinfo(f"{url}: {error}"), "start it, or correct REDIS_URL"
            )


def _redis_version(client: RedisPort) -> Finding:
    version = str(client.info("server")["redis_version"])
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_REDIS:
        wanted = ".".join(map(str, OLDEST_REDIS))
        return Finding(Level.FAIL, "redis", f"version {version}", f"use Redis {wanted} or later")
    return Finding(Level.OK, "redis", f"version {version}")


def _redis_memory(client: RedisPort) -> Iterator[Finding]:
    try:
        policy = client.config_get("maxmemory-policy").get("maxmemory-policy", "")
        saves = client.config_get("save").get("save", "")
        appends = client.config_get("appendonly").get("appendonly", "")
    except ResponseError:
        yield Finding(
            Level.WARN,
            "redis memory",
            "its configuration cannot be read",
            "see that its maxmemory-policy is noeviction",
        )
        return
    if policy != "noeviction":
        yield Finding(
            Level.FAIL,
            "redis memory",
            f"maxmemory-policy is {policy}: it may drop events",
            "set maxmemory-policy noeviction",
        )
    else:
        yield Finding(Level.OK, "redis memory", "maxmemory-policy is noeviction")
    if appends != "yes" and not saves:
        yield Finding(
            Level.WARN,
            "redis disk",
            "nothing is kept on disk: a restart loses events not yet read",
            "set appendonly yes",
        )
    else:
        yield Finding(
            Level.OK, "redis disk", "append-only file" if appends == "yes" else f"snapshots {saves}"
        )


def _suspension(client: RedisPort) -> Finding:
    if client.exists(SUSPENDED):
        return Finding(Level.FAIL, "queue", "is suspended: workers take nothing", "rq resume --url REDIS_URL")
    return Finding(Level.OK, "queue", "is not suspended")


def _stream(client: RedisPort, keys: Keys) -> Finding:
    if not client.exists(keys.stream):
        return Finding(Level.OK, "stream", f"{keys.stream} holds nothing yet")
    groups = {group["name"]: group for group in client.xinfo_groups(keys.stream)}
    group = groups.get(GROUP) or groups.get(GROUP.encode())
    length = client.xlen(keys.stream)
    if group is None:
        return Finding(
            Level.WARN, "stream", f"{length} entries, and no matcher has ever read", "knockon run matcher"
        )
    lag, pending = group.get("lag"), group["pending"]
    is_read = group["last-delivered-id"] == client.xinfo_stream(keys.stream)["last-generated-id"]
    unread = "all read" if is_read else f"{'some' if lag is None else lag} not read yet"
    text = f"{length} entries, {pending} being worked on, {unread}"
    if (lag or 0) > LONG_LAG:
        return Finding(Level.WARN, "stream", text, "see that a matcher runs, or start one more")
    return Finding(Level.OK, "stream", text)


def _queue(queue: HandleQueue, kind: QueueKind) -> Finding:
    depth, head = queue.depth(kind), queue.head_pushed_at(kind)
    name = f"queue {kind}"
    if head is not None and (wait := SystemClock().now() - head) > LONG_WAIT:
        text = f"{depth} handles, the first waits for {wait.total_seconds():.0f} s"
        return Finding(Level.WARN, name, text, "see that a worker runs, or start one more")
    return Finding(Level.OK, name, f"{depth} handles wait")


def _sql(settings: Settings) -> Iterator[Finding]:
    try:
        check_database_file(settings)
    except ConfigError:
        yield Finding(
            Level.FAIL,
            "sql",
            f"there is no database in {settings.data_dir}",
            "knockon up, or knockon migrate",
        )
        return
    url = database_url(settings)
    database = open_database(url, pool_size=1)
    checks: tuple[Callable[[Database], Finding], ...] = (_migrations, _clock, _workspace, _schedules)
    try:
        for check in checks:
            finding = check(database)
            yield finding
            if finding.level is Level.FAIL:
                return
        yield from examine_kept(database, settings)
        yield from examine_alerts(database, settings)
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", error)).strip().splitlines()[0]
        yield Finding(Level.FAIL, "sql", mask_userinfo(f"{url}: {said}"), "start it, or correct DATABASE_URL")
    finally:
        database.dispose()


def _migrations(database: Database) -> Finding:
    missing = missing_migrations(database)
    if missing:
        return Finding(Level.FAIL, "sql", f"{database.dialect} lacks {', '.join(missing)}", "knockon migrate")
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
