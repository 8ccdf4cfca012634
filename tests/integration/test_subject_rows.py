"""Subjects as rows, on both databases: locked in one order, written as sets, never lost to another write."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from shared.db.engine import Database, open_database
from shared.db.subjects import find_subject, lock_places, lock_subjects, project_changes, save_subjects
from shared.db.types import must_instant, read_json
from shared.model.subjects import SubjectDelete, SubjectWrite, data, merge

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = ("w1", "record", "r1")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    yield opened
    opened.dispose()


def write(ms: int, id_: str = "r1", **fields: Any) -> SubjectWrite:
    return SubjectWrite("w1", "record", id_, (ms, 0), f"id:{id_}-{ms}", fields)


def project(database: Database, *changes: SubjectWrite | SubjectDelete) -> int:
    return database.transact(lambda conn: project_changes(conn, changes, now=NOW))


def rows(database: Database) -> dict[str, Any]:
    with database.read() as conn:
        return {row.id: row for row in conn.execute(text("SELECT * FROM subjects"))}


def test_the_later_write_of_each_field_wins_in_any_order(database: Database) -> None:
    assert project(database, write(2, a=2, b=2), write(1, a=1, c=1), write(1, "r2", a=9)) == 2
    assert project(database, write(0, a=0, d="Zoë 😀")) == 1
    found = rows(database)
    assert read_json(found["r1"].data) == {"a": 2, "b": 2, "c": 1, "d": "Zoë 😀"}
    assert read_json(found["r2"].data) == {"a": 9}


def test_a_repeat_changes_no_row(database: Database) -> None:
    project(database, write(1, a=1))
    assert project(database, write(1, a=1)) == 0


def test_a_deleted_subject_keeps_its_values_and_comes_back(database: Database) -> None:
    project(database, write(1000, a=1), SubjectDelete("w1", "record", "r1", (2000, 0), "id:d"))
    row = rows(database)["r1"]
    assert must_instant(row.deleted_at).timestamp() == 2
    assert read_json(row.data) == {"a": 1}
    project(database, write(3000, a=3))
    assert rows(database)["r1"].deleted_at is None


def test_what_is_written_is_read_back(database: Database) -> None:
    project(database, write(1, a=[1, {"b": None}], n=2**53 + 1, x=1.5))
    with database.read() as conn:
        found = find_subject(conn, *KEY)
    assert found is not None
    assert data(found) == {"a": [1, {"b": None}], "n": 2**53 + 1, "x": 1.5}
    assert found == merge(None, write(1, a=[1, {"b": None}], n=2**53 + 1, x=1.5))


def test_an_empty_place_is_no_subject(database: Database) -> None:
    with database.begin() as conn:
        assert lock_places(conn, [KEY], now=NOW) == {}
    with database.begin() as conn:
        assert find_subject(conn, *KEY) is None
        assert lock_subjects(conn, [KEY]) == {}
        save_subjects(conn, [merge(None, write(1, a=1))], now=NOW)
        assert list(lock_subjects(conn, [KEY])) == [KEY]


def test_another_workspaces_subject_is_not_found(database: Database) -> None:
    project(database, write(1, a=1))
    with database.read() as conn:
        assert find_subject(conn, "w2", "record", "r1") is None


def test_no_write_is_lost_when_many_make_the_same_subjects(database: Database) -> None:
    writers = 6
    start = threading.Barrier(writers)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        start.wait()
        try:
            for turn in range(10):
                ids = ["r1", "r2", f"s{turn}"]
                changes = [write(turn * writers + number, each, **{f"f{number}": turn}) for each in ids]
                project(database, *(changes if number % 2 else reversed(changes)))
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    found = {id_: read_json(row.data) for id_, row in rows(database).items()}
    assert found["r1"] == found["r2"] == {f"f{number}": 9 for number in range(writers)}
    assert found["s3"] == {f"f{number}": 3 for number in range(writers)}
