"""The servers that tests use are real and shared, and what a test is given is its own."""

import sqlite3
from pathlib import Path

import psycopg
from redis import Redis

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
