"""The API of a test, on its own database and Redis."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.services.backends import Backends, open_backends
from shared.settings import Settings
from tests.calling import Api, serving


@pytest.fixture
def settings(redis_url: str, database_url: str, tmp_path: Path) -> Settings:
    """Give the settings of a process that serves the API."""
    values = {"redis_url": redis_url, "database_url": database_url, "data_dir": tmp_path / "kept"}
    return Settings.model_validate(values)


@pytest.fixture
def backends(settings: Settings) -> Iterator[Backends]:
    """Give the servers of the test."""
    opened = open_backends(settings, 20)
    yield opened
    opened.close()


@pytest.fixture
def api(settings: Settings, backends: Backends) -> Iterator[Api]:
    """Give the API of the workspaces w1 and w2, served on a port."""
    with serving(settings, backends) as served:
        yield served
