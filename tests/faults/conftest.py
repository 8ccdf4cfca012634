"""Fixtures of the tests that inject one fault each."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from knockon.embedded import RedisProcess, start_redis
from tests.faults.lossy import LossyRedis, open_lossy
from tests.integration.conftest import engines, open_here
from tests.system.conftest import opened

__all__ = ["engines", "lossy", "open_here", "opened", "own_redis"]


@pytest.fixture
def own_redis() -> Iterator[RedisProcess]:
    """Give a Redis that a test may freeze, kill and fill; its folder is short enough for a socket."""
    folder = Path(mkdtemp(prefix="kf-"))
    server = start_redis(folder)
    yield server
    start_redis(folder).stop()
    shutil.rmtree(folder)


@pytest.fixture
def lossy(redis_url: str) -> Iterator[LossyRedis]:
    """Give a way to this test's Redis on which answers get lost."""
    with open_lossy(redis_url) as opened_way:
        yield opened_way
