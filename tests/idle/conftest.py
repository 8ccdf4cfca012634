"""The API of a test of idle sequences, on its own database and Redis."""

from tests.api.conftest import api, backends, settings

__all__ = ["api", "backends", "settings"]
