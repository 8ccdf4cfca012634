"""The migrations, from nothing to the tables that the code knows, on both databases."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg import sql as pg
from sqlalchemy import inspect, text
from sqlalchemy.exc import OperationalError

from shared.db.engine import Database, open_database
from shared.db.migrating import Migrated, is_later, migrate, missing_migrations
from shared.db.people import insert_workspace, workspace_name
from shared.db.schema import METADATA
from tests.runs import NOW
from tests.servers import Postgres

ROOT = Path(__file__).resolve().parents[2]
MIGRATE = "import sys\nfrom shared.db.migrating import migrate\nmigrate(sys.argv[1])"


@pytest.fixture
def empty_postgres(postgres_server: Postgres) -> Iterator[str]:
    """Give the address of a PostgreSQL database without a table."""
    name = pg.Identifier(f"e_{uuid4().hex}")
    with psycopg.connect(postgres_server.url(), autocommit=True) as conn:
        conn.execute(pg.SQL("CREATE DATABASE {} TEMPLATE template0").format(name))
    yield postgres_server.url(name.as_string().strip('"'))
    with psycopg.connect(postgres_server.url(), autocommit=True) as conn:
        conn.execute(pg.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the address of a database that nobody migrated, once for each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/deep/down/knockon.db"
    url: str = request.getfixturevalue("empty_postgres")
    return url


@pytest.fixture
def migrated(empty_url: str) -> Iterator[Database]:
    migrate(empty_url)
    with closing(Disposing(empty_url)) as opened:
        yield opened.database


class Disposing:
    """A database that `closing` lets go of."""

    def __init__(self, url: str) -> None:
        self.database = open_database(url)

    def close(self) -> None:
        self.database.dispose()


def test_the_tables_are_those_that_the_code_knows(migrated: Database) -> None:
    with migrated.read() as conn:
        context = MigrationContext.configure(conn, opts={"compare_type": True})
        assert compare_metadata(context, METADATA) == []


def test_nothing_is_missing_after_a_migration(migrated: Database) -> None:
    assert missing_migrations(migrated) == []


def test_a_database_without_tables_lacks_everything_in_order(postgres_url: str, empty_postgres: str) -> None:
    full, empty = Disposing(postgres_url), Disposing(empty_postgres)
    with closing(full), closing(empty):
        missing = missing_migrations(empty.database)
        assert missing == sorted(missing)
        assert len(missing) > 0
        assert missing_migrations(full.database) == []


def test_a_second_migration_changes_nothing(migrated: Database, empty_url: str) -> None:
    with migrated.begin() as conn:
        insert_workspace(conn, "w1", "Kept", now=NOW)
    migrate(empty_url)
    with migrated.read() as conn:
        assert workspace_name(conn, "w1") == "Kept"
        assert len(conn.exec_driver_sql("SELECT version_num FROM alembic_version").all()) == 1


def test_a_folder_that_is_made_for_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    migrate(f"sqlite:///{tmp_path / 'data' / 'knockon.db'}")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_the_file_that_is_made_and_those_beside_it_are_their_owners_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'knockon.db'}"
    migrate(url)
    database = open_database(url)
    with database.begin() as conn:
        insert_workspace(conn, "w1", "One", now=NOW)
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    database.dispose()
    assert modes == {f"knockon.db{end}": 0o600 for end in ("", "-wal", "-shm", "-writers")}


def test_only_a_migration_makes_the_file(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'knockon.db'}")
    with pytest.raises(OperationalError, match=r"there is no file .* knockon migrate"), database.read():
        pass
    database.dispose()
    assert list(tmp_path.iterdir()) == []


def test_a_migration_says_what_it_did(empty_url: str) -> None:
    assert [migrate(empty_url), migrate(empty_url)] == [Migrated.MADE, Migrated.LEFT]


def test_two_migrations_at_once_both_succeed(empty_url: str, tmp_path: Path) -> None:
    (tmp_path / "deep" / "down").mkdir(parents=True)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATE, empty_url], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in processes] == [
        ("", 0)
    ] * 2
    with closing(Disposing(empty_url)) as opened:
        assert missing_migrations(opened.database) == []
        with opened.database.read() as conn:
            assert set(METADATA.tables) < set(inspect(conn).get_table_names())


def test_the_tables_of_a_later_version_are_left_as_they_are(migrated: Database, empty_url: str) -> None:
    assert not is_later(migrated)
    with migrated.begin() as conn:
        conn.execute(text("UPDATE alembic_version SET version_num = '9999_later'"))
    assert is_later(migrated)
    assert missing_migrations(migrated) == []
    assert migrate(empty_url) is Migrated.LATER
    with migrated.read() as conn:
        assert workspace_name(conn, "w1") is None


@pytest.mark.parametrize(
    "file", sorted((ROOT / "migrations" / "versions").glob("0*.py")), ids=lambda file: file.name
)
def test_a_migration_takes_nothing_from_the_version_before(file: Path) -> None:
    (upgrade,) = (
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == "upgrade"
    )
    called = {node.attr for node in ast.walk(upgrade) if isinstance(node, ast.Attribute)}
    assert not {name for name in called if name.startswith(("drop_", "alter_", "rename_"))}
