"""Dead letters from before there were groups of them come into theirs with the migration; on both."""

import json

from alembic import command
from alembic.config import Config
from sqlalchemy import text

from shared.db.engine import open_database
from shared.db.migrating import MIGRATIONS, migrate
from shared.rules.troubles import trouble_of

ERROR = json.dumps({"code": "NET_ECONNREFUSED", "message": "GET http://h.test:81/7 failed", "position": 1})
OLD = """
INSERT INTO automation_runs (id, workspace_id, automation_id, source, source_id, trigger_type, status, error,
    input, depth, root_run_id, retry_count, failures, crash_count, lease, queue, enqueued_at, created_at)
VALUES (:id, 'w1', 'a1', 'event', :source, 'EVENT', :status, :error,
    '{}', 0, 'root', 8, 9, 0, 9, 'main', :now, :now)
"""


def migrate_to(url: str, revision: str) -> None:
    """Bring a database to an earlier shape."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    database = open_database(url)
    with database.begin() as conn:
        config.attributes["connection"] = conn
        command.downgrade(config, revision)
    database.dispose()


def test_dead_letters_that_are_there_get_their_fingerprints(database_url: str) -> None:
    migrate_to(database_url, "0002")
    database = open_database(database_url)
    now = "2026-03-01T12:00:00+00:00"
    rows = {"d1": ("DEAD_LETTER", ERROR), "d2": ("DEAD_LETTER", None), "f1": ("FAILED", ERROR)}
    with database.begin() as conn:
        values = [
            {"id": each, "source": each, "status": row[0], "error": row[1], "now": now}
            for each, row in rows.items()
        ]
        conn.execute(text(OLD), values)
    migrate(database_url)
    with database.read() as conn:
        found = conn.execute(text("SELECT id, fingerprint FROM automation_runs"))
        marks = {row.id: row.fingerprint for row in found}
    database.dispose()
    trouble = trouble_of("NET_ECONNREFUSED", "GET http://h.test:81/9 failed", "a1")
    assert marks == {"d1": trouble.fingerprint, "d2": None, "f1": None}
