"""What counts as an outage of SQL: the caller waits and tries again, and nothing is decided."""

from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from shared.db.engine import is_outage, open_database


def test_a_side_file_that_cannot_be_opened_is_an_outage(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'k.db'}")
    (tmp_path / "k.db-writers").mkdir()
    with pytest.raises(OperationalError) as caught, database.begin():
        pass
    database.dispose()
    assert is_outage(caught.value)
