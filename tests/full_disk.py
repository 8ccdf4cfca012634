"""A Redis that cannot keep its data, as on a full disk: it refuses every write, and PING with them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from redis import Redis

from knockon.embedded import RedisProcess
from tests.waiting import poll


@contextmanager
def refusing_writes(server: RedisProcess) -> Iterator[None]:
    """Keep a server from taking writes until the block ends."""
    (server.home / "dump.rdb").mkdir()
    with closing(Redis.from_url(server.url)) as client:
        client.config_set("save", "3600 1000000")
        client.bgsave()
        poll(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")
        try:
            yield
        finally:
            client.config_set("save", "")  # else it would not end either
