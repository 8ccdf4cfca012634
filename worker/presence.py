"""A worker's standing in RQ's registries, so that `rq info` shows it, and nothing else of RQ's own doings.

RQ ends a worker's loop at any Redis error and obeys unauthenticated commands on a channel. Here no Redis
error gets out, the worker listens to nobody, and only the process's own flag ends it. Its standing is written
anew with each heartbeat: a flushed Redis knows it again within seconds.
"""

import logging
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from rq import worker_registration
from rq.defaults import DEFAULT_LOGGING_DATE_FORMAT, DEFAULT_LOGGING_FORMAT
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker, WorkerStatus
from typing_extensions import override

from shared.keys import Keys
from shared.logs import get_logger
from shared.model.runs import QueueKind
from shared.presence import STANDING_TTL_S
from shared.process import StopFlag
from shared.redis_port import REDIS_ERRORS, RedisPort
from shared.time.clock import Clock
from worker.handles import HandleJob
from worker.pace import Every

HEARTBEAT_S: Final = 10.0

log: Final = get_logger("worker")


@dataclass(frozen=True, slots=True)
class Link:
    """What a worker reads from. `redis` is its own client, with no automatic retry; `name` is unique."""

    redis: RedisPort
    keys: Keys
    clock: Clock
    name: str


class PresentWorker(BaseWorker):
    """An RQ worker that registers, beats and leaves; what it does with handles is its subclass's."""

    @override
    def __init__(self, link: Link, stop: StopFlag) -> None:
        """Register nothing yet."""
        self.link = link
        self.stop = stop
        self._beat = Every(link.clock, HEARTBEAT_S)
        connection: Any = link.redis
        super().__init__(
            [link.keys.queue(kind) for kind in QueueKind],
            name=link.name,
            connection=connection,
            job_class=HandleJob,
            serializer=JSONSerializer,
        )

    @property
    @override
    def connection_timeout(self) -> int:
        """Ask for no longer socket timeout than the client has, whatever that is."""
        return 0

    @override
    def _set_ip_address(self, connection: Any) -> None:
        try:
            super()._set_ip_address(connection)
        except (*REDIS_ERRORS, ValueError):  # the client cannot read a socket's path with a space in it
            self.ip_address = "unknown"

    @override
    def bootstrap(
        self,
        logging_level: str | None = None,
        date_format: str = DEFAULT_LOGGING_DATE_FORMAT,
        log_format: str = DEFAULT_LOGGING_FORMAT,
    ) -> None:
        """Register; what RQ logs beneath a warning is not for us."""
        self.log.setLevel(logging.WARNING)
        self.register_birth()
        self.subscribe()
        self.set_state(WorkerStatus.STARTED)

    @override
    def register_birth(self) -> None:
        """Begin to beat."""
        self.birth_date = self.link.clock.now()
        self._beat.expedite()
        self.heartbeat()

    @override
    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """Write the whole standing every 10 s; in between, do nothing."""
        if not self._beat.is_due():
            return
        self.last_heartbeat = self.link.clock.now()
        try:
            with self.link.redis.pipeline(transaction=True) as pipe:
                beat: Any = pipe
                beat.hset(self.key, mapping={**self.serialize(), "state": self._state})
                beat.expire(self.key, STANDING_TTL_S)
                worker_registration.register(self, beat)
                beat.execute()
        except REDIS_ERRORS as error:
            log.debug("heartbeat_failed", error=type(error).__name__)

    @override
    def set_state(self, state: str, pipeline: Any = None) -> None:
        """Tell a change of state; an outage leaves it to the next heartbeat."""
        if state == self._state:
            return
        self._state = state
        self._beat.expedite()
        self.heartbeat()

    @override
    def subscribe(self) -> None:
        """Listen to nobody: the channel of commands is unauthenticated."""

    @override
    def _install_signal_handlers(self) -> None:
        """Install none: the process's flag listens already."""

    @override
    def request_stop(self, signum: int | None, frame: FrameType | None) -> None:
        """Raise the flag, and nothing more: a signal comes in the middle of anything."""
        self.stop.raise_()

    @override
    def teardown(self) -> None:
        """Leave the registries; where Redis is away, they forget us by themselves."""
        try:
            super().register_death()  # type: ignore[no-untyped-call] # RQ's own
        except REDIS_ERRORS as error:
            log.debug("death_not_registered", error=type(error).__name__)
