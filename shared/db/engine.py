"""The connection to SQL: PostgreSQL or SQLite behind one `Database`."""

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import orjson
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from shared.errors import ConfigError

T = TypeVar("T")

REPEATS: Final = 20
OVERFLOW: Final = 10
BUSY_TIMEOUT_MS: Final = 10_000
# A process that is frozen inside a transaction must not keep its rows locked from everybody else.
POSTGRES_OPTIONS: Final = "-c timezone=UTC -c idle_in_transaction_session_timeout=10s"
# A connection whose other end is gone without a word is given up after 15 to 20 s, not after minutes.
POSTGRES_LINK: Final[Mapping[str, int]] = MappingProxyType(
    {
        "connect_timeout": 5,
        "keepalives": 1,
        "keepalives_idle": 10,
        "keepalives_interval": 3,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
    }
)
_REPEATABLE: Final = frozenset({"40P01", "40001"})
_AWAY: Final = frozenset({"57P01", "57P02", "57P03", "25006", "25P03"})
_IMPATIENT: Final = frozenset({"57014", "55P03"})  # query_canceled, lock_not_available
_AWAY_CLASSES: Final = ("08", "53")  # connection exception, insufficient resources


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited for a connection of the pool, and on PostgreSQL for a lock and a statement's end.

    None is as long as it takes.
    """

    connection_s: float = 30.0
    lock_s: float | None = None
    statement_s: float | None = None

    @property
    def options(self) -> str:
        """Give what a session of PostgreSQL is told of it."""
        told = {"lock_timeout": self.lock_s, "statement_timeout": self.statement_s}
        return "".join(f" -c {name}={round(s * 1000)}" for name, s in told.items() if s is not None)


PATIENT: Final = Patience()


class Database:
    """One pool of connections. Safe to share between threads."""

    def __init__(self, engine: Engine, last: Callable[[Connection], None] | None = None) -> None:
        """Wrap an engine made by `open_database`; `last` ends each transaction that may write."""
        self._engine = engine
        self._last = last

    @property
    def dialect(self) -> str:
        """Give `postgresql` or `sqlite`."""
        return self._engine.dialect.name

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """Open a transaction that may write; it commits at the end of the block, rolls back on an error."""
        with self._engine.begin() as conn:
            yield conn
            if self._last is not None:
                self._last(conn)

    def ending_with(self, last: Callable[[Connection], None]) -> "Database":
        """Give the same database, each of whose writing transactions ends with `last`, or with its error."""
        return Database(self._engine, last)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads; on SQLite it takes no write lock."""
        with self._engine.connect().execution_options(read_only=True) as conn, conn.begin():
            yield conn

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a transaction and give its answer; repeat the whole of it after a lost race.

        `work` must therefore be safe to run again: its only effects are the rows it writes.
        """
        for _ in range(REPEATS):
            try:
                with self.begin() as conn:
                    return work(conn)
            except DBAPIError as error:
                if not is_repeatable(error):
                    raise
        with self.begin() as conn:
            return work(conn)

    def dispose(self) -> None:
        """Close every connection of the pool."""
        self._engine.dispose()


def open_database(url: str, *, pool_size: int = 10, patience: Patience = PATIENT) -> Database:
    """Open the database at `url`; nothing is connected yet.

    Raises ConfigError for a scheme that is neither `postgresql` nor `sqlite`.
    """
    parsed = make_url(url)
    match parsed.get_backend_name():
        case "sqlite":
            engine = create_engine(
                parsed,
                pool_size=pool_size,
                max_overflow=OVERFLOW,
                pool_timeout=patience.connection_s,
                connect_args={"check_same_thread": False, "timeout": 0},
            )
            file = Path(parsed.database or "")
            event.listen(engine, "do_connect", partial(_refuse_missing, file))
            _Flock(file).attach(engine)
        case "postgresql":
            engine = create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                pool_size=pool_size,
                max_overflow=OVERFLOW,
                pool_timeout=patience.connection_s,
                pool_pre_ping=False,
                json_deserializer=orjson.loads,
                connect_args=_postgres_arguments(parsed, patience),
            )
        case other:
            raise ConfigError(f"DATABASE_URL: {other!r} is neither postgresql nor sqlite")
    return Database(engine)


def _postgres_arguments(url: URL, patience: Patience) -> dict[str, Any]:
    """Give what every connection is opened with; what the URL says of the link goes before ours."""
    link = {name: value for name, value in POSTGRES_LINK.items() if name not in url.query}
    theirs = url.query.get("options", "")
    options = f"{theirs} {POSTGRES_OPTIONS}{patience.options}".strip()
    return {**link, "options": options, "prepare_threshold": 2}


def sqlite_file(url: str) -> Path | None:
    """Give the file of a SQLite database; None for another one."""
    parsed = make_url(url)
    return Path(parsed.database or "") if parsed.get_backend_name() == "sqlite" else None


def is_repeatable(error: DBAPIError) -> bool:
    """Tell whether the transaction was only unlucky: a deadlock, a serialization failure, a busy SQLite."""
    return sqlstate(error) in _REPEATABLE or "database is locked" in str(error.orig)


def is_outage(error: DBAPIError) -> bool:
    """Tell whether SQL is away rather than displeased with what it was given."""
    state = sqlstate(error)
    if error.connection_invalidated or state in _AWAY or (state or "").startswith(_AWAY_CLASSES):
        return True
    return state is None and isinstance(error, OperationalError)


def is_cut_short(error: DBAPIError) -> bool:
    """Tell whether a statement was ended because it, or its wait for a lock, took longer than `Patience`."""
    return sqlstate(error) in _IMPATIENT


def sqlstate(error: DBAPIError) -> str | None:
    """Give PostgreSQL's five characters for an error; None on SQLite and for a lost connection."""
    return getattr(error.orig, "sqlstate", None)


def _refuse_missing(file: Path, *_: object) -> None:
    """Keep SQLite from making an empty database of a mistyped name; `migrate` makes the file."""
    if not file.exists():
        raise sqlite3.OperationalError(f"there is no file {file}; make it with: knockon migrate")


class _Flock:
    """SQLite's write lock, taken in turn through a side file: waiting writers sleep in the kernel."""

    def __init__(self, path: Path) -> None:
        self._side = Path(f"{path}-writers")

    def attach(self, engine: Engine) -> None:
        event.listen(engine, "connect", self._connected)
        event.listen(engine, "begin", self._began)
        event.listen(engine, "checkin", self._returned)
        event.listen(engine, "close", self._returned)

    def _connected(self, raw: Any, record: Any) -> None:
        raw.isolation_level = None
        raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("PRAGMA synchronous = NORMAL")
        raw.execute("PRAGMA foreign_keys = ON")

    def _began(self, conn: Connection) -> None:
        if conn.get_execution_options().get("read_only"):
            conn.exec_driver_sql("BEGIN")
            return
        if "writers" not in conn.info:
            conn.info["writers"] = self._queue_up()
        conn.exec_driver_sql("BEGIN IMMEDIATE")

    def _queue_up(self) -> int:
        """Wait for the turn to write. A side file that cannot be opened is an outage like SQLite's own."""
        try:
            handle = os.open(self._side, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise OperationalError("BEGIN IMMEDIATE", None, error) from error
        fcntl.flock(handle, fcntl.LOCK_EX)
        return handle

    def _returned(self, raw: Any, record: Any) -> None:
        handle = record.info.pop("writers", None)
        if handle is not None:
            os.close(handle)
