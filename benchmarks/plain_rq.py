"""What a careful team would write in an afternoon for the same job, with RQ as it comes.

A consumer reads one event at a time from the consumer group, holds it against its automations, drops
duplicates with SET NX, inserts the run, commits, and enqueues an RQ job. The job, in an RQ worker that does
not fork, claims the run and commits, checks the condition, writes three log lines and the end, and commits.
Nothing of it is made slow: connections stay open, statements are prepared, jobs leave nothing behind.
It has no leases, retries, checkpoints, dead letters or hand-back, and it loses a run if it dies between
SET NX and INSERT, or between commit and enqueue.

`python -m benchmarks.plain_rq consumer|rq-worker` runs one of its two processes.
"""

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from uuid import uuid4

import orjson
import psycopg
from redis import Redis
from rq import Queue, SimpleWorker

from benchmarks.scenario import TWO_HUNDRED
from benchmarks.sites import Site

STREAM: Final = "factory:events"
GROUP: Final = "plain"
QUEUE: Final = "plain"
JOB: Final = "benchmarks.plain_rq.perform"

SCHEMA: Final = """
    DROP TABLE automation_runs, automation_logs CASCADE;
    CREATE TABLE automation_runs (
        id text PRIMARY KEY, workspace_id text NOT NULL, automation_id text NOT NULL, event_key text NOT NULL,
        status text NOT NULL, input jsonb NOT NULL, output jsonb, created_at timestamptz NOT NULL,
        started_at timestamptz, ended_at timestamptz, UNIQUE (automation_id, event_key));
    CREATE TABLE automation_logs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run_id text NOT NULL, level text NOT NULL,
        message text NOT NULL, at timestamptz NOT NULL);
    CREATE INDEX ix_plain_logs ON automation_logs (run_id, id);
"""
INSERT_RUN: Final = """
    INSERT INTO automation_runs (id, workspace_id, automation_id, event_key, status, input, created_at)
    VALUES (%s, %s, %s, %s, 'PENDING', %s, %s) ON CONFLICT DO NOTHING
"""
CLAIM_RUN: Final = """
    UPDATE automation_runs SET status = 'RUNNING', started_at = %s WHERE id = %s AND status = 'PENDING'
    RETURNING input
"""
INSERT_LOG: Final = """
    INSERT INTO automation_logs (run_id, level, message, at)
    VALUES (%s, 'info', %s, %s), (%s, 'info', %s, %s), (%s, 'info', %s, %s)
"""
FINISH_RUN: Final = """
    UPDATE automation_runs SET status = 'SUCCEEDED', output = %s, ended_at = %s
    WHERE id = %s AND status = 'RUNNING'
"""


def prepare(site: Site) -> None:
    """Put the program's own tables into the database, under the names that are counted."""
    with psycopg.connect(site.database_url) as conn:
        conn.execute(SCHEMA)


def consume(redis: Redis, conn: psycopg.Connection) -> None:
    """Turn events into runs, one at a time, until the process is ended."""
    queue = Queue(QUEUE, connection=redis)
    automations = [
        {"id": f"{workspace}/{kind}", "workspace": workspace, "type": kind}
        for workspace, kind in TWO_HUNDRED.places()
    ]
    redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    while True:
        answer: Any = redis.xreadgroup(GROUP, "one", {STREAM: ">"}, count=1, block=1000)
        if not answer:
            continue
        entry_id, fields = answer[0][1][0]
        event = {name.decode(): value.decode() for name, value in fields.items()}
        event["payload"] = orjson.loads(event["payload"])
        for automation in automations:
            if automation["workspace"] == event["workspaceId"] and automation["type"] == event["type"]:
                start(redis, conn, queue, (automation, event))
        redis.xack(STREAM, GROUP, entry_id)


def start(
    redis: Redis, conn: psycopg.Connection, queue: Queue, found: tuple[Mapping[str, str], Mapping[str, Any]]
) -> None:
    """Make the run of a match, unless the event started one of this automation before."""
    automation, event = found
    if not redis.set(f"seen:{automation['id']}:{event['id']}", 1, nx=True, ex=600):
        return
    run_id = str(uuid4())
    kept = orjson.dumps(event).decode()
    values = (run_id, event["workspaceId"], automation["id"], event["id"], kept, datetime.now(UTC))
    conn.execute(INSERT_RUN, values)
    conn.commit()
    queue.enqueue(JOB, run_id, result_ttl=0)


@cache
def worker_connection() -> psycopg.Connection:
    """Give the worker's one connection."""
    return psycopg.connect(os.environ["DATABASE_URL"])


def perform(run_id: str) -> None:
    """Drive one run; this is the RQ job."""
    conn = worker_connection()
    row = conn.execute(CLAIM_RUN, (datetime.now(UTC), run_id)).fetchone()
    conn.commit()
    if row is None:
        return
    order = row[0]["payload"]
    said, output = "conditions do not hold", {}
    if order["total"] > 10 and order["status"] == "paid":
        said, output = "action done", {"title": f"Order {order['orderId']}", "body": "It is paid."}
    messages = ("run started", said, "run completed")
    now = datetime.now(UTC)
    conn.execute(INSERT_LOG, [value for message in messages for value in (run_id, message, now)])
    conn.execute(FINISH_RUN, (orjson.dumps(output).decode(), now, run_id))
    conn.commit()


def main(role: str) -> None:
    """Run one of the two processes."""
    redis = Redis.from_url(os.environ["REDIS_URL"])
    if role == "consumer":
        with psycopg.connect(os.environ["DATABASE_URL"]) as conn:
            consume(redis, conn)
    else:
        SimpleWorker([Queue(QUEUE, connection=redis)], connection=redis).work(logging_level="WARNING")


if __name__ == "__main__":
    main(sys.argv[1])
