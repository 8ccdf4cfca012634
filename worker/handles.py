"""One handle as the worker takes it from its queue. Nothing in it is imported, called or unpickled.

Whoever can write to Redis can at most wake runs that exist: a handle that is none of ours is a handle with a
fault, which the worker counts and drops, since the rows know better.
"""

from collections.abc import Mapping
from typing import Any, Final

from redis.exceptions import ResponseError
from rq.job import Job
from rq.serializers import JSONSerializer
from typing_extensions import override

from shared.model.runs import QueueKind
from shared.queue import BadHandle, Handle, decode_handle
from shared.redis_port import RedisPort

PAYLOAD: Final = b"data"


class HandleJob(Job):
    """An RQ job of which only the run ids are read. Either `handle` or `fault` is set once it was read.

    `member` is its id as it stands in the list of `found_in`, which may be no id at all.
    """

    member: bytes
    found_in: QueueKind
    handle: Handle | None
    fault: str | None

    @override
    def __init__(self, id: str | None = None, connection: Any = None, serializer: object = None) -> None:
        """Make a job whose payload is JSON, whatever serializer is asked for."""
        super().__init__(id, connection, JSONSerializer)
        self.member = (id or "").encode()
        self.found_in = QueueKind.MAIN
        self.handle = None
        self.fault = None

    @property
    def hash_key(self) -> bytes:
        """Name the hash that belongs to this member of the list."""
        return self.redis_job_namespace_prefix.encode() + self.member

    @override
    def refresh(self) -> None:
        """Read the payload, and no other field of the hash. Raises what Redis raises when it is away."""
        try:
            payload: Any = self.connection.hget(self.hash_key, PAYLOAD)
        except ResponseError as error:
            if not str(error).startswith("WRONGTYPE"):
                raise
            self.fault = "its key holds something else"
        else:
            fields: dict[bytes, bytes] = {} if payload is None else {PAYLOAD: payload}
            self.restore(fields)

    @override
    def restore(self, raw_data: Mapping[bytes, bytes]) -> None:
        """Take the run ids from a hash. What is not as we write it becomes the fault; nothing is raised."""
        try:
            self.handle = decode_handle(self.member.decode(), raw_data)
        except (BadHandle, UnicodeDecodeError) as error:
            self.fault = str(error) if raw_data else "no hash"


def read_handle(client: RedisPort, found_in: QueueKind, member: bytes) -> HandleJob:
    """Read the handle that a member of a queue names. Raises what Redis raises when it is away."""
    try:
        job = HandleJob(member.decode(), client)
    except ValueError:
        job = HandleJob(None, client)
        job.fault = "not an id"
    job.member, job.found_in = member, found_in
    if job.fault is None:
        job.refresh()
    return job
