"""The servers that tests use are real and shared, and what a test is given is its own."""

import sqlite3
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from tests.lending import Lender
from tests.servers import Postgres, start_postgres


def test_a_test_has_a_redis_database_of_its_own(
    redis_client: Redis, redis_server: str, redis_url: str
) -> None:
    assert redis_client.dbsize() == 0
    assert redis_url != redis_server


def test_a_second_start_takes_the_server_that_runs(postgres_server: Postgres) -> None:
    before = postgres_server.pid_file.read_text()
    assert start_postgres(postgres_server.folder).pid_file.read_text() == before


def test_a_test_has_a_migrated_postgres_database_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as conn:
        assert conn.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)


def test_a_test_has_a_migrated_sqlite_file_of_its_own(sqlite_url: str, tmp_path: Path) -> None:
    assert str(tmp_path) in sqlite_url
    conn = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    assert conn.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)
    conn.close()


def test_a_database_comes_back_empty_and_under_another_name(postgres_lender: Lender) -> None:
    first = postgres_lender.lend()
    kept = psycopg.connect(postgres_lender.server.url(first), autocommit=True)
    kept.execute("INSERT INTO workspaces (id, name, created_at) VALUES ('w1', 'One', now())")
    postgres_lender.take_back(first)
    second = postgres_lender.lend()
    with pytest.raises(psycopg.OperationalError):
        kept.execute("SELECT 1")
    kept.close()
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(postgres_lender.server.url(first))
    with psycopg.connect(postgres_lender.server.url(second)) as conn:
        assert conn.execute("SELECT count(*) FROM workspaces").fetchone() == (0,)
    postgres_lender.take_back(second)


def test_a_database_whose_tables_were_changed_is_not_lent_again(postgres_lender: Lender) -> None:
    first = postgres_lender.lend()
    with psycopg.connect(postgres_lender.server.url(first)) as conn:
        conn.execute("ALTER TABLE workspaces RENAME TO elsewhere")
    postgres_lender.take_back(first)
    second = postgres_lender.lend()
    with psycopg.connect(postgres_lender.server.url(second)) as conn:
        assert conn.execute("SELECT count(*) FROM workspaces").fetchone() == (0,)
    postgres_lender.take_back(second)
