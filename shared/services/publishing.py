"""Events go to the stream, all of a request or none."""

from collections.abc import Sequence

from shared.model.published import Published
from shared.services.backends import Backends


def publish_events(backends: Backends, events: Sequence[Published], maxlen: int) -> list[str]:
    """Append events in their order, in one MULTI; give their entry ids.

    Raises what Redis raises: then they may be on the stream or not, and sending them again under their ids
    starts nothing twice.
    """
    with backends.redis.pipeline(transaction=True) as pipe:
        for event in events:
            pipe.xadd(backends.keys.stream, dict(event.fields), maxlen=maxlen, approximate=True)
        return [entry_id.decode() for entry_id in pipe.execute()]
