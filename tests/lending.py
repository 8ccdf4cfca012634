"""PostgreSQL databases that go from one test to the next: to empty one is far less work than to make one.

A test still has a database of its own: whoever is connected when it ends is cut off, and the name that was
known to it leads nowhere afterwards.
"""

from dataclasses import dataclass, field
from uuid import uuid4

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Identifier

from tests.servers import Postgres

CREATE = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
SHUT = SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false")
CUT_OFF = "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = %s"
RENAME = SQL("ALTER DATABASE {} RENAME TO {}")
OPEN = SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true")
WRITTEN = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
      AND relname <> 'alembic_version' AND pg_relation_size(oid) > 0
"""
EMPTY = SQL("TRUNCATE {} RESTART IDENTITY CASCADE")
SHAPE = """
    SELECT 'relation', relname::text, '' FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'column', relname, attname FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
        WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT 'constraint', conrelid::regclass::text, conname FROM pg_constraint
    UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal
"""

Shape = set[tuple[str, str, str]]


@dataclass
class Lender:
    """Lends databases that are copies of a template; those that came back are lent first."""

    server: Postgres
    template: str
    _spare: list[str] = field(default_factory=list)
    _shape: Shape = field(default_factory=set)

    def lend(self) -> str:
        """Give the name of an empty database that nobody has known before."""
        name = f"t_{uuid4().hex}"
        with psycopg.connect(self.server.url(), autocommit=True) as conn:
            if self._spare:
                conn.execute(RENAME.format(Identifier(self._spare.pop()), Identifier(name)))
                return name
            conn.execute(CREATE.format(Identifier(name), Identifier(self.template)))
        with psycopg.connect(self.server.url(name)) as conn:
            self._shape = read_shape(conn)
        return name

    def take_back(self, name: str) -> None:
        """Empty a database for the next test; one whose tables were changed is not lent again."""
        spare = f"spare_{uuid4().hex}"
        with psycopg.connect(self.server.url(), autocommit=True) as conn:
            conn.execute(SHUT.format(Identifier(name)))
            conn.execute(CUT_OFF, [name])
            conn.execute(RENAME.format(Identifier(name), Identifier(spare)))
            conn.execute(OPEN.format(Identifier(spare)))
        with psycopg.connect(self.server.url(spare)) as conn:
            if read_shape(conn) != self._shape:
                return
            if written := [Identifier(table) for (table,) in conn.execute(WRITTEN)]:
                conn.execute(EMPTY.format(SQL(", ").join(written)))
        self._spare.append(spare)


def read_shape(conn: Connection) -> Shape:
    """Name everything that makes up the tables."""
    return set(conn.execute(SHAPE))
