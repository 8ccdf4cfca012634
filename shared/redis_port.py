"""Redis as the rooms see it: the commands that we use, with the types they really answer, and how it is opened."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, Self

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

CONNECT_TIMEOUT_S: Final = 2.0
SOCKET_TIMEOUT_S: Final = 5.0
REDIS_ERRORS: Final = (RedisError, OSError)

Fields = Mapping[bytes, bytes]
Entry = tuple[bytes, Fields]


class PipelinePort(Protocol):
    """Commands sent together; every command answers only in what `execute` returns."""

    def execute(self, raise_on_error: bool = ...) -> list[Any]:  # knockon: flag - redis-py's own signature
        """Send the commands and give their answers in order."""
        ...

    def __getattr__(self, command: str) -> Any:  # noqa: ANN401 - queued commands answer nothing of use
        """Queue any command of the client."""
        ...

    def __enter__(self) -> Self:
        """Reset the pipeline at the end of the block."""
        ...

    def __exit__(self, *error: object) -> None:
        """Reset the pipeline."""
        ...


class RedisPort(Protocol):
    """The client. Keys and values come back as bytes."""

    def ping(self) -> bool: ...
    def time(self) -> tuple[int, int]: ...
    def get(self, name: str) -> bytes | None: ...
    def mget(self, keys: Sequence[str]) -> list[bytes | None]: ...
    def incr(self, name: str, amount: int = ...) -> int: ...
    def delete(self, *names: str) -> int: ...
    def exists(self, *names: str) -> int: ...
    def llen(self, name: str) -> int: ...
    def lindex(self, name: str, index: int) -> bytes | None: ...
    def lrange(self, name: str, start: int, end: int) -> list[bytes]: ...
    def zcard(self, name: str) -> int: ...
    def zrangebyscore(self, name: str, min: float | str, max: float | str) -> list[bytes]: ...
    def xlen(self, name: str) -> int: ...
    def xadd(self, name: str, fields: Mapping[str, str | bytes], **options: Any) -> bytes: ...  # noqa: ANN401
    def xrange(self, name: str, min: str = ..., max: str = ..., count: int | None = ...) -> list[Entry]: ...
    def xtrim(self, name: str, **options: Any) -> int: ...  # noqa: ANN401
    def xdel(self, name: str, *ids: str) -> int: ...
    def xack(self, name: str, groupname: str, *ids: str) -> int: ...
    def xgroup_create(self, name: str, groupname: str, **options: Any) -> bool: ...  # noqa: ANN401
    def xreadgroup(
        self, groupname: str, consumername: str, streams: Mapping[str, str], **options: Any
    ) -> Any: ...  # noqa: ANN401
    def xpending_range(self, name: str, groupname: str, **options: Any) -> list[dict[str, Any]]: ...  # noqa: ANN401
    def xclaim(self, name: str, groupname: str, **options: Any) -> list[Any]: ...  # noqa: ANN401
    def xinfo_groups(self, name: str) -> list[dict[str, Any]]: ...
    def xinfo_consumers(self, name: str, groupname: str) -> list[dict[str, Any]]: ...
    def xinfo_stream(self, name: str) -> dict[str, Any]: ...
    def eval(self, script: str, numkeys: int, *keys_and_args: str | bytes | float) -> Any: ...  # noqa: ANN401
    def info(self, section: str) -> dict[str, Any]: ...
    def config_get(self, pattern: str) -> dict[str, str]: ...
    def pipeline(
        self, transaction: bool = ...
    ) -> PipelinePort: ...  # knockon: flag - redis-py's own signature
    def close(self) -> None: ...


def open_redis(url: str) -> RedisPort:
    """Open a client that sends every command once: a command whose answer was lost raises, never repeats.

    Nothing is connected yet. Blocking reads must be shorter than SOCKET_TIMEOUT_S.
    """
    client: Any = Redis.from_url(
        url,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        socket_timeout=SOCKET_TIMEOUT_S,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )
    port: RedisPort = client
    return port
