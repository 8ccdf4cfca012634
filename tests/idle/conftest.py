"""The API of a test of idle sequences, or a whole deployment, on its own database and Redis."""

from tests.api.conftest import api, backends, settings
from tests.integration.conftest import database_of_a_module
from tests.system.conftest import opened

__all__ = ["api", "backends", "database_of_a_module", "opened", "settings"]
