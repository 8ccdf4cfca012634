"""What the doctor finds in Redis: the server itself, the stream and the queues."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from typing import Any, Final

from redis.exceptions import ResponseError

from knockon.findings import Finding, Level
from knockon.servers import redis_url
from matcher.gaps import find_gap
from shared.errors import ConfigError
from shared.keys import GROUP, Keys
from shared.masking import mask_urls
from shared.metrics.redis_reading import stream_state
from shared.model.runs import QueueKind
from shared.presence import SUSPENDED
from shared.queue import HandleQueue
from shared.redis_port import REDIS_ERRORS, RedisPort, open_redis
from shared.settings import Settings
from shared.time.clock import SystemClock

OLDEST_REDIS: Final = (6, 2)
LONG_WAIT: Final = timedelta(seconds=60)
LONG_LAG: Final = 10_000
NO_WRITES: Final = "MISCONF"


def examine_redis(settings: Settings) -> Iterator[Finding]:
    """Look at Redis. A failure of the subject `redis` means that nothing can be asked of it."""
    try:
        url = redis_url(settings)
    except ConfigError as error:
        text, _, fix = str(error).partition("; ")
        yield Finding(Level.FAIL, "redis", text, fix or "see redis/redis.log in the data folder")
        return
    keys = Keys(settings.prefix, settings.events_stream)
    with closing(open_redis(url)) as client:
        try:
            yield _redis_version(client)
            yield _writes(client)
            yield from _redis_memory(client)
            yield _suspension(client)
            yield _stream(client, keys)
            yield from (_queue(HandleQueue(client, keys), kind) for kind in QueueKind)
        except REDIS_ERRORS as error:
            yield Finding(Level.FAIL, "redis", mask_urls(f"{url}: {error}"), "start it, or correct REDIS_URL")


def _writes(client: RedisPort) -> Finding:
    """Ask for what a server refuses together with all writes when it cannot keep its data."""
    try:
        client.ping()
    except ResponseError as error:
        if NO_WRITES not in str(error):
            raise
        text = f"are refused: {str(error).removeprefix(NO_WRITES).strip()}"
        return Finding(Level.FAIL, "redis writes", text, "make room on its disk, or see its log")
    return Finding(Level.OK, "redis writes", "are taken")


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
    about = client.xinfo_stream(keys.stream)
    group = next((each for each in client.xinfo_groups(keys.stream) if each["name"] == GROUP.encode()), None)
    state = stream_state(client, keys)
    if group is None:
        text = f"{state.entries} entries, and no matcher has ever read"
        return Finding(Level.WARN, "stream", text, "knockon run matcher")
    unread = {0: "all read", None: "some not read yet"}.get(state.lag, f"{state.lag} not read yet")
    text = f"{state.entries} entries, {state.pending} being worked on, {unread}"
    if _is_cut(about, group["last-delivered-id"]):
        text = f"{text}; entries that nobody had read were trimmed"
        return Finding(Level.WARN, "stream", text, "raise EVENTS_MAXLEN, here and in the publishers")
    waits_s = 0.0 if state.oldest_ms is None else client.time()[0] - state.oldest_ms / 1000
    if waits_s > LONG_WAIT.total_seconds() or (state.lag or 0) > LONG_LAG:
        text = f"{text}, the oldest for {waits_s:,.0f} s"
        return Finding(Level.WARN, "stream", text, "see that a matcher runs, or start one more")
    return Finding(Level.OK, "stream", text)


def _is_cut(about: Mapping[str, Any], delivered: bytes) -> bool:
    """Tell whether entries beyond the last one that a matcher was given are gone."""
    first = about["first-entry"]
    return find_gap(about, delivered, first[0].decode() if first else None) is not None


def _queue(queue: HandleQueue, kind: QueueKind) -> Finding:
    depth, head = queue.depth(kind), queue.head_pushed_at(kind)
    name = f"queue {kind}"
    if head is not None and (wait := SystemClock().now() - head) > LONG_WAIT:
        text = f"{depth} handles, the first waits for {wait.total_seconds():.0f} s"
        return Finding(Level.WARN, name, text, "see that a worker runs, or start one more")
    return Finding(Level.OK, name, f"{depth} handles wait")
