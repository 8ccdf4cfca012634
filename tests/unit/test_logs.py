"""Log lines: where they go, how they look, and what they must not show."""

import io
import json
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from shared.log_choices import LogFormat, LogLevel
from shared.logs import configure_logs, get_logger
from shared.settings import Settings
from tests.listening import capture_logs


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Leave the set-up of both log systems as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_where_nobody_watches() -> None:
    stream = io.StringIO()
    configure_logs(Settings(), stream)
    get_logger("matcher").info("events_matched", count=3)
    (line,) = lines(stream)
    assert line.pop("at").endswith("Z")
    assert line == {"event": "events_matched", "level": "info", "part": "matcher", "count": 3}


@pytest.mark.parametrize(
    ("wanted", "stream"), [(LogFormat.AUTO, Terminal()), (LogFormat.CONSOLE, io.StringIO())]
)
def test_a_line_is_for_people_on_a_terminal_or_when_asked(wanted: LogFormat, stream: io.StringIO) -> None:
    configure_logs(Settings(log_format=wanted), stream)
    get_logger("matcher").info("events_matched", api_key="opensesame")
    assert not stream.getvalue().startswith("{")
    assert "events_matched" in stream.getvalue()
    assert "opensesame" not in stream.getvalue()


def test_less_severe_lines_are_left_out() -> None:
    stream = io.StringIO()
    configure_logs(Settings(log_level=LogLevel.WARNING), stream)
    get_logger("worker").info("run_moved")
    get_logger("worker").warning("claim_lost")
    assert [line["event"] for line in lines(stream)] == ["claim_lost"]


def test_what_a_unit_of_work_has_bound_stands_in_its_lines() -> None:
    stream = io.StringIO()
    configure_logs(Settings(), stream)
    with structlog.contextvars.bound_contextvars(run_id="r1"):
        get_logger("worker").info("run_moved")
    get_logger("worker").info("handle_read")
    assert [line.get("run_id") for line in lines(stream)] == ["r1", None]


def test_secrets_are_masked_at_any_depth() -> None:
    stream = io.StringIO()
    configure_logs(Settings(), stream)
    get_logger("webhook").info(
        "request_sent",
        headers={"Authorization": "opensesame", "trail": [{"X-Auth-Token": "opensesame"}]},
        url="https://ann:opensesame@example.test/h",
        error=ValueError("at redis://:opensesame@host"),
        tokens=4,
    )
    assert "opensesame" not in stream.getvalue()
    assert lines(stream)[0]["tokens"] == 4


def test_a_traceback_shows_no_password_of_a_url() -> None:
    stream = io.StringIO()
    configure_logs(Settings(), stream)
    url = "redis://:opensesame@host"
    try:
        raise ConnectionError(f"cannot reach {url}")
    except ConnectionError:
        get_logger("worker").exception("redis_away")
    assert "cannot reach redis://***@host" in lines(stream)[0]["exception"]


@pytest.mark.parametrize("value", [2**70, "\ud800", {1, 2}, {("a", 1): 2}, object()])
def test_no_value_makes_a_log_call_fail(value: object) -> None:
    stream = io.StringIO()
    configure_logs(Settings(), stream)
    get_logger("worker").info("odd_value", value=value)
    assert lines(stream)[0]["event"] == "odd_value"


def test_a_library_warns_in_the_same_form() -> None:
    stream = io.StringIO()
    configure_logs(Settings(), stream)
    logging.getLogger("a.library").info("not this")
    logging.getLogger("a.library").warning("lost %s", "redis://:opensesame@host")
    (line,) = lines(stream)
    assert (line["logger"], line["event"], line["level"]) == ("a.library", "lost redis://***@host", "warning")


@pytest.mark.parametrize("wanted", [LogFormat.CONSOLE, LogFormat.JSON])
def test_an_exception_warns_of_nothing_in_the_set_up(wanted: LogFormat) -> None:
    configure_logs(Settings(log_format=wanted), io.StringIO())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            raise ValueError("odd")
        except ValueError:
            get_logger("worker").exception("run_failed")


def test_what_a_command_made_of_the_logs_is_over_with_it() -> None:
    log = get_logger("matcher")
    configure_logs(Settings(log_level=LogLevel.ERROR), io.StringIO())
    log.info("nobody_hears")
    structlog.reset_defaults()
    with capture_logs() as heard:
        log.info("events_matched")
    assert [line["event"] for line in heard] == ["events_matched"]
