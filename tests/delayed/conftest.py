"""Fixtures of the stories: a road whose week begins on a Monday far ahead."""

import pytest

from tests.delayed.day import MONDAY, Day
from tests.field.conftest import Open, no_debug_lines, open_here

__all__ = ["no_debug_lines", "open_here"]


@pytest.fixture
def day(open_here: Open) -> Day:
    """Open a road at the beginning of the week, once for each kind of database."""
    return Day(open_here(begins=MONDAY))
