"""Fixtures of the tests on whole deployments."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.system.deployment import Deployment, open_deployment

Opener = Callable[..., Deployment]


@pytest.fixture
def opened(redis_url: str, database_url: str, tmp_path: Path) -> Iterator[Opener]:
    """Give a function that opens this test's deployment, with a script for its receiver and settings."""
    with ExitStack() as stack:

        def open_one(**given: Any) -> Deployment:
            held: AbstractContextManager[Deployment] = open_deployment(
                redis_url, database_url, tmp_path, **given
            )
            return stack.enter_context(held)

        yield open_one
