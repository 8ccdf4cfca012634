"""Fixtures of the tests that need servers."""

from collections.abc import Iterator

import pytest

from shared.services.backends import Backends
from tests.people import opened_backends


@pytest.fixture
def backends(database_url: str, redis_url: str) -> Iterator[Backends]:
    """Give a deployment's servers with the workspaces w1 and w2, once for each kind of database."""
    with opened_backends(database_url, redis_url) as opened:
        yield opened
