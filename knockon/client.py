"""The publishing client: how another Python service puts its events on the stream.

    from knockon import Publisher

    with Publisher("redis://localhost:6379/0", source="shop") as publisher:
        publisher.publish("order.placed", "ws_1", {"orderId": 17, "total": 42})

It imports nothing else of the project. Every event goes out with an id, so that one which was sent twice, by
a retry in here or by the caller, starts each automation once. A Redis that refuses or does not answer makes a
call fail within 3 seconds: each wait ends after one second, and there is one retry.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from dataclasses import fields as fields_of
from datetime import UTC, datetime
from enum import Enum
from itertools import islice
from typing import Any, Final, Self, TypeVar

import orjson
import uuid_utils
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as TimedOut
from redis.retry import Retry

DEFAULT_STREAM: Final = "factory:events"
DEFAULT_MAXLEN: Final = 1_000_000
PIPELINE_SIZE: Final = 500
WAIT_S: Final = 1.0

MAX_ENTRY_BYTES: Final = 262_144
MAX_DEPTH: Final = 32
MAX_NODES: Final = 10_000
MAX_INT: Final = 2**63 - 1

RESERVED_TYPE: Final = "automation.executed"
RESERVED_REASON: Final = "is the engine's own; name what happened in your service"

_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)

T = TypeVar("T")


def _client(redis_url: str) -> Redis:
    try:
        return Redis.from_url(
            redis_url,
            decode_responses=True,
            socket_connect_timeout=WAIT_S,
            socket_timeout=WAIT_S,
            retry=Retry(NoBackoff(), 0),
        )
    except (TypeError, ValueError):  # whose text may quote the password
        raise ValueError("redis_url: is no redis://, rediss:// or unix:// URL") from None


def _new_id() -> str:
    return str(uuid_utils.uuid7())


@dataclass(frozen=True, slots=True)
class EventDraft:
    """One event to publish. Its id is made at once, so that publishing the same draft again is harmless.

    `type` is noun.verb; `payload` a JSON object; `occurred_at` an aware instant, the time of arrival if None.
    """

    type: str
    workspace_id: str
    payload: Mapping[str, Any]
    id: str = field(default_factory=_new_id)
    occurred_at: datetime | None = None
    source: str | None = None


class PublishError(Exception):
    """Redis did not confirm; `drafts` may not be on the stream. Publishing them again is safe."""

    def __init__(self, reason: str, drafts: Sequence[EventDraft]) -> None:
        """Keep the drafts; the message counts them."""
        self.drafts = tuple(drafts)
        events = "1 event is" if len(self.drafts) == 1 else f"{len(self.drafts)} events are"
        super().__init__(f"{events} not confirmed: {reason}")


class Publisher:
    """Publishes events; threads may share one. Use it as a context manager, or close it.

    `stream`, `maxlen` and `prefix` must be what the engine has in EVENTS_STREAM, EVENTS_MAXLEN and
    KNOCKON_PREFIX. `source` names the publishing service on events that do not name one themselves.
    """

    def __init__(
        self,
        redis_url: str,
        *,
        stream: str = DEFAULT_STREAM,
        maxlen: int = DEFAULT_MAXLEN,
        prefix: str = "",
        source: str | None = None,
    ) -> None:
        """Connect to nothing yet. Raises ValueError for a URL that names no Redis."""
        self._key = f"{prefix}{stream}"
        self._maxlen = maxlen
        self._source = source
        self._redis = _client(redis_url)

    def publish(
        self,
        type: str,  # noqa: A002 - the field's own name
        workspace_id: str,
        payload: Mapping[str, Any],
        *,
        id: str | None = None,  # noqa: A002 - the field's own name
        occurred_at: datetime | None = None,
    ) -> str:
        """Publish one event and give its entry id.

        Give the id of your own record of the event, if there is one: then publishing it again, even after a
        restart, starts nothing twice. Raises ValueError naming the field that is out of bounds, PublishError
        if Redis did not confirm.
        """
        draft = EventDraft(type, workspace_id, payload, id or _new_id(), occurred_at)
        return self._publish_set([draft])[0]

    def publish_many(self, events: Iterable[EventDraft]) -> list[str]:
        """Publish events in their order, 500 at a time, and give their entry ids.

        Raises ValueError or PublishError as `publish` does. Sets before the one at fault are on the stream;
        publishing all of the same drafts again is safe.
        """
        drafts = iter(events)
        entry_ids: list[str] = []
        while batch := list(islice(drafts, PIPELINE_SIZE)):
            entry_ids += self._publish_set(batch)
        return entry_ids

    def close(self) -> None:
        """Give the connections back."""
        self._redis.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _publish_set(self, drafts: Sequence[EventDraft]) -> list[str]:
        entries = [_fields(draft, self._source) for draft in drafts]
        try:
            answers = _twice(lambda: self._send(entries))
        except (RedisError, OSError) as error:
            raise PublishError(str(error), drafts) from error
        failed = [number for number, answer in enumerate(answers) if isinstance(answer, Exception)]
        if failed:
            raise PublishError(str(answers[failed[0]]), [drafts[number] for number in failed])
        return [str(answer) for answer in answers]

    def _send(self, entries: Iterable[Mapping[str, str]]) -> list[Any]:
        with self._redis.pipeline(transaction=False) as pipe:
            for entry in entries:
                fields: dict[Any, Any] = {**entry}
                pipe.xadd(self._key, fields, maxlen=self._maxlen, approximate=True)
            return pipe.execute(raise_on_error=False)


def _twice(send: Callable[[], T]) -> T:
    """Send again once if the connection failed; every entry has an id, so a double changes nothing."""
    try:
        return send()
    except (ConnectionLost, TimedOut):
        return send()


def _fields(draft: EventDraft, source: str | None) -> dict[str, str]:
    for name, reason in _faults(draft, source):
        raise ValueError(f"{name}: {reason}")
    fields = {
        "type": draft.type,
        "workspaceId": draft.workspace_id,
        "payload": _payload_text(draft.payload),
        "id": draft.id,
        "occurredAt": draft.occurred_at.isoformat() if draft.occurred_at else "",
        "source": draft.source or source or "",
    }
    given = {name: value for name, value in fields.items() if value}
    if len("".join([*given, *given.values()]).encode(errors="replace")) > MAX_ENTRY_BYTES:
        raise ValueError(f"payload: makes the event larger than {MAX_ENTRY_BYTES // 1024} KiB")
    return given


def _faults(draft: EventDraft, source: str | None) -> Iterator[tuple[str, str]]:
    if not _is_text(draft.type, 100) or not _TYPE.fullmatch(draft.type):
        yield "type", "must be noun.verb in lower case, at most 100 characters"
    if draft.type == RESERVED_TYPE:
        yield "type", RESERVED_REASON
    if not _is_text(draft.workspace_id, 100) or not draft.workspace_id.isprintable():
        yield "workspace_id", "must be 1 to 100 printable characters"
    if not _is_text(draft.id, 200):
        yield "id", "must be 1 to 200 characters"
    if (named := draft.source or source) and not _is_text(named, 100):
        yield "source", "must be at most 100 characters"
    if draft.occurred_at is not None and draft.occurred_at.tzinfo is None:
        yield "occurred_at", "must know its time zone"
    elif draft.occurred_at is not None and not _EARLIEST <= draft.occurred_at <= _LATEST:
        yield "occurred_at", "must lie between the years 1970 and 2200"
    yield from _payload_faults(draft.payload)


def _payload_faults(payload: object) -> Iterator[tuple[str, str]]:
    if not isinstance(payload, Mapping):
        yield "payload", "must be a JSON object"
        return
    level: list[Any] = [payload]
    nodes = 1
    for _ in range(MAX_DEPTH):
        values = [_written(value) for container in level for value in _values(container)]
        nodes += len(values)
        if nodes > MAX_NODES:
            yield "payload", f"must hold at most {MAX_NODES} values"
        if not all(map(_is_in_bounds, values)):
            yield "payload", "must hold finite numbers and integers of 64 bits"
        level = [value for value in values if isinstance(value, Mapping | list | tuple)]
    if level:
        yield "payload", f"must be nested at most {MAX_DEPTH} levels deep"


def _payload_text(payload: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(payload, default=_as_dict).decode()
    except TypeError as error:
        raise ValueError(f"payload: is not JSON: {error}") from error


def _as_dict(value: object) -> dict[Any, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be written")


def _values(container: Mapping[str, Any] | Sequence[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, Mapping) else container


def _written(value: object) -> object:
    """Give what is written for a value: an enumeration's member as its value, a dataclass as its fields."""
    while isinstance(value, Enum):
        value = value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name, None) for each in fields_of(value)}
    return value


def _is_text(value: object, longest: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= longest and not _SURROGATE.search(value)


def _is_in_bounds(value: object) -> bool:
    match value:
        case bool():
            return True
        case int():
            return -MAX_INT - 1 <= value <= MAX_INT
        case float():
            return math.isfinite(value)
        case _:
            return True
