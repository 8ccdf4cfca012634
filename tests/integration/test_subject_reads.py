"""Templates that ask for the subject: a set of runs reads its subjects at once, as they are by then."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine as SqlEngine
from sqlalchemy import event as sql_event

from pipeline.engine import Engine
from shared.db.subjects import project_changes
from shared.model.subjects import SubjectWrite
from tests.rooms import Room, start, tree

RUNS = 20
TITLE = {"type": "CREATE_NOTIFICATION", "config": {"title": "{{ subject.name }} {{ subject.stage }}"}}
MARK = {"type": "UPDATE_RECORD", "config": {"properties": {"stage": "{{ subject.stage }}-2"}}}


@contextmanager
def reads_of_subjects() -> Iterator[list[str]]:
    """Collect the statements that read subjects and lock none."""
    seen: list[str] = []

    def note(_: object, __: object, statement: str, *___: Any) -> None:
        if "subjects" in statement and "SELECT" in statement and "FOR UPDATE" not in statement:
            seen.append(statement)

    sql_event.listen(SqlEngine, "before_cursor_execute", note)
    yield seen
    sql_event.remove(SqlEngine, "before_cursor_execute", note)


def know(room: Room, record_id: str, **fields: Any) -> None:
    write = SubjectWrite("w1", "record", record_id, (1_000, 0), f"e-{record_id}", fields)
    with room.database.begin() as conn:
        project_changes(conn, [write], now=datetime.now(UTC))


@pytest.fixture
def engine(room: Room, engines: list[Engine]) -> Engine:
    room.owner()
    return start(room, engines)


def test_a_set_of_runs_reads_its_subjects_with_one_statement(room: Room, engine: Engine) -> None:
    for number in range(RUNS):
        know(room, f"r{number}", name=f"n{number}", stage="a")
    payloads = [{"recordId": f"r{number}", "databaseId": "d1", "properties": {}} for number in range(RUNS)]
    ids = room.runs(room.automation(TITLE), payloads, type="record.updated")
    with reads_of_subjects() as seen:
        engine.take(ids)
        assert engine.wait_idle(20)
    titles = [row.title for row in room.all("SELECT title FROM notifications")]
    assert sorted(titles) == sorted(f"n{number} a" for number in range(RUNS))
    assert len(seen) <= 3


def test_each_action_sees_what_the_one_before_it_wrote(room: Room, engine: Engine) -> None:
    know(room, "r1", name="n", stage="a")
    told = {"recordId": "r1", "databaseId": "d1", "properties": {}}
    run_id = room.run(room.automation(MARK, TITLE), told, type="record.updated")
    engine.take([run_id])
    assert engine.wait_idle(20)
    assert room.one("SELECT title FROM notifications").title == "n a-2"
    assert tree(room.one("SELECT data FROM subjects").data)["stage"] == "a-2"
