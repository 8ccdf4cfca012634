"""Fixtures of the field cases: what users of comparable systems reported, each as one small scenario."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.field.road import Road, open_road

Open = Callable[..., Road]


@pytest.fixture(autouse=True)
def no_debug_lines() -> Iterator[None]:
    """Log as a process does by default: the full tracebacks of debug lines take longer than the cases."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    yield
    structlog.reset_defaults()


@pytest.fixture
def open_here(redis_url: str, database_url: str, tmp_path: Path) -> Iterator[Open]:
    """Open a road with settings, executors or a receiver's script of the test's own, and close it."""
    with ExitStack() as roads:

        def opened(**given: Any) -> Road:
            urls = (redis_url, database_url)
            return roads.enter_context(open_road(urls, tmp_path / "ledger.jsonl", **given))

        yield opened


@pytest.fixture
def road(open_here: Open) -> Road:
    """Open a road as it is by default, once for each kind of database."""
    return open_here()
