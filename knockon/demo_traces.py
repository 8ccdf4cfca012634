"""What the demo leaves on servers that are not its own, and how it is taken away again. Rows of runs stay."""

from contextlib import closing

from redis import Redis

from shared.services.automations import apply_changes
from shared.services.backends import Backends, Caller
from shared.services.definitions import Leftovers


def delete_automations(backends: Backends, caller: Caller) -> None:
    """Delete the automations of the demo's workspace, so that no matcher keeps them in mind."""
    apply_changes(backends, caller, [], Leftovers.DELETE)


def delete_keys(redis_url: str, prefix: str) -> None:
    """Delete every key with the demo's prefix, and its queues from the list of queues."""
    with closing(Redis.from_url(redis_url)) as client:
        for name in client.scan_iter(match=f"*{prefix}*", count=1000):
            client.delete(name)
            client.srem("rq:queues", name)
