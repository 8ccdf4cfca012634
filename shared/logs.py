"""Log lines: one set-up for every process, to stderr, for people on a terminal and as JSON elsewhere.

A process calls `configure_logs` once at its start. Secrets are masked on the way out, whoever logs them.
"""

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

import orjson
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from shared.log_choices import LogChoices, LogFormat
from shared.masking import MASK, is_secret_name, mask_text

Log = FilteringBoundLogger

MAX_DEPTH: Final = 8


def configure_logs(settings: LogChoices, stream: TextIO | None = None) -> None:
    """Send the log of this process, and the warnings of the libraries it uses, to `stream` or else stderr."""
    target = stream or sys.stderr
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    before = _before_rendering()
    rendering = _rendering(settings.log_format, target)
    structlog.configure(
        processors=[*before, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=target),
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *before],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
    )
    handler = logging.StreamHandler(target)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)


def get_logger(name: str) -> Log:
    """Give the logger of one part; `name` stands in each of its lines. The set-up may follow later."""
    log: Log = structlog.get_logger(part=name)
    return log


def mask_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace what stands under a telling key, and the userinfo of URLs, at any depth of the line."""
    return {key: MASK if is_secret_name(key) else _masked(value, MAX_DEPTH) for key, value in event.items()}


def _masked(value: Any, depth: int) -> Any:
    match value:
        case str():
            return mask_text(value)
        case Mapping() if depth:
            return {
                key: MASK if is_secret_name(str(key)) else _masked(item, depth - 1)
                for key, item in value.items()
            }
        case list() | tuple() if depth:
            return [_masked(item, depth - 1) for item in value]
        case BaseException():
            return mask_text(repr(value))
        case _:
            return value


def _before_rendering() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]


def _rendering(wanted: LogFormat, target: TextIO) -> list[Processor]:
    is_terminal = target.isatty()
    if wanted is LogFormat.CONSOLE or (wanted is LogFormat.AUTO and is_terminal):
        plain = structlog.dev.plain_traceback
        console = structlog.dev.ConsoleRenderer(
            colors=is_terminal, exception_formatter=plain, timestamp_key="at", pad_event_to=24
        )
        return [structlog.processors.format_exc_info, mask_secrets, console]
    return [
        structlog.processors.format_exc_info,
        mask_secrets,
        structlog.processors.JSONRenderer(serializer=_to_json),
    ]


def _to_json(event: EventDict, **_: object) -> str:
    """Write a line as JSON, whatever it holds: a log call must not fail the work that it tells about."""
    try:
        return orjson.dumps(event, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        return json.dumps(event, default=repr, skipkeys=True)
