"""The log in pages, up and down: each line that fits once, and none behind a place that was read."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from shared.db.engine import Database, open_database
from shared.db.history import RunLog, insert_logs
from shared.db.log_reads import (
    SCANNED,
    START,
    LogCursor,
    LogPage,
    LogQuery,
    log_end,
    log_start,
    logs_after,
    logs_before,
    newest_logs,
    read_cursor,
)
from shared.model.runs import LogLine
from shared.services.backends import Backends
from tests.people import NOW
from tests.statements import explain, statements
from tests.volume import fill_log, made_at

COUNT = 50_000

QUERIES: list[dict[str, Any]] = [
    {},
    {"level": "warning"},
    {"automation_id": "a1-10"},
    {"automation_id": "a1-10", "level": "warning"},
    {"run_id": "run-77"},
    {"run_id": "run-78", "level": "info"},
    {"since": made_at(49_000)},
    {"since": made_at(400), "until": made_at(500)},
    {"until": made_at(100), "level": "warning"},
]


@pytest.fixture(scope="module")
def filled(database_of_a_module: str) -> Iterator[Database]:
    """Give a database with fifty thousand lines, for all tests of this module."""
    database = open_database(database_of_a_module)
    fill_log(database, COUNT)
    yield database
    database.dispose()


def fits(number: int, query: dict[str, Any]) -> bool:
    """Say by arithmetic whether the line of this number is one that is asked for, in w1."""
    checks: dict[str, Callable[[Any], bool]] = {
        "automation_id": lambda wanted: f"a1-{number // 2 % 20}" == wanted,
        "run_id": lambda wanted: f"run-{number // 8}" == wanted,
        "level": lambda wanted: wanted == "info" or number % 100 < 2,
        "since": lambda wanted: made_at(number) >= wanted,
        "until": lambda wanted: made_at(number) < wanted,
    }
    return number % 2 == 1 and all(checks[name](wanted) for name, wanted in query.items())


def read_all(database: Database, query: dict[str, Any], ask: Callable[..., LogPage]) -> list[LogPage]:
    """Read pages up to the last one."""
    found: list[LogPage] = []
    with database.read() as conn:
        while not found or not found[-1].is_end:
            cursor = found[-1].edge if found else None
            found.append(ask(conn, LogQuery("w1", **query), cursor, most=400))
    return found


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_the_pages_together_hold_each_line_that_fits_once_in_either_order(
    filled: Database, query: dict[str, Any]
) -> None:
    wanted = [f"line {number}" for number in range(COUNT) if fits(number, query)]
    assert wanted
    up = [row for page in read_all(filled, query, logs_after) for row in page.rows]
    down = [row for page in read_all(filled, query, logs_before) for row in page.rows]
    assert [row.message for row in up] == wanted
    assert [row.message for row in reversed(down)] == wanted
    with filled.read() as conn:
        assert [row.message for row in newest_logs(conn, LogQuery("w1", **query), most=7)] == wanted[-7:]


def test_a_page_of_what_is_rare_looks_only_so_far(filled: Database) -> None:
    query = {"since": made_at(20), "until": made_at(30)}
    first, *_, last = read_all(filled, query, logs_before)
    assert (first.rows, first.is_end, len(last.rows)) == ([], False, 5)
    with filled.read() as conn:
        page = logs_after(conn, LogQuery("w1", until=made_at(3)), None, most=400)
    assert ([row.message for row in page.rows], page.is_end) == (["line 1"], False)


def test_a_list_ends_where_all_lines_are_older_by_more_than_a_line_can_be_late(filled: Database) -> None:
    (page,) = read_all(filled, {"since": made_at(COUNT) + timedelta(hours=2)}, logs_before)
    assert (page.rows, page.is_end) == ([], True)


def test_the_start_for_an_instant_lies_before_the_first_line_that_is_so_young(filled: Database) -> None:
    with filled.read() as conn:
        late, early = log_start(conn, "w1", made_at(COUNT)), log_start(conn, "w1", made_at(1))
        page = logs_after(
            conn, LogQuery("w1", since=made_at(49_990)), log_start(conn, "w1", made_at(49_990)), most=9
        )
        assert log_start(conn, "nobody", made_at(1)) == START
    assert early == START < late
    assert [row.message for row in page.rows] == [f"line {number}" for number in range(49_991, COUNT, 2)]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_every_page_walks_along_one_index(filled: Database, query: dict[str, Any]) -> None:
    with filled.read() as conn:
        with statements(conn) as seen:
            logs_after(conn, LogQuery("w1", **query), LogCursor(0, 5_000), most=50)
            logs_before(conn, LogQuery("w1", **query), None, most=50)
            log_end(conn, "w1")
        plans = [explain(conn, *each) for each in seen if "automation_logs" in each[0]]
    for told in plans:
        assert "Seq Scan on automation_logs" not in told
        assert "SCAN r" not in told
        assert (
            "ix_logs_run" in told if "run_id" in query and "ix_logs_stream" not in told else "ix_logs" in told
        )


def test_what_is_written_behind_an_open_transaction_waits_for_it(backends: Backends) -> None:
    def write(conn: Any, message: str) -> None:
        insert_logs(conn, [RunLog("w1", None, None, LogLine("info", message, NOW))])

    def read(cursor: LogCursor | None) -> LogPage:
        with backends.database.read() as conn:
            return logs_after(conn, LogQuery("w1"), cursor, most=10)

    with backends.database.begin() as conn:
        write(conn, "one")
    first = read(None)
    assert [row.message for row in first.rows] == ["one"]
    if backends.database.dialect == "sqlite":
        return
    with backends.database.begin() as slow:
        write(slow, "slow")
        with backends.database.begin() as quick:
            write(quick, "quick")
        waiting = read(first.edge)
        assert (waiting.rows, waiting.edge, waiting.is_end) == ([], first.edge, True)
    assert [row.message for row in read(waiting.edge).rows] == ["slow", "quick"]


@pytest.mark.parametrize("text", ["0-0", "7041-3", "9223372036854775807-9223372036854775807"])
def test_a_place_is_read_as_it_is_written(text: str) -> None:
    assert str(read_cursor(text)) == text


@pytest.mark.parametrize(
    "text", ["", "1", "-1-2", "1-", "01-2", "1-2 ", "1-9223372036854775808", "a-b", "\u0661-1"]
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no place"):
        read_cursor(text)


def test_pages_look_at_fewer_lines_than_the_tests_have(filled: Database) -> None:
    assert COUNT / 2 > SCANNED
