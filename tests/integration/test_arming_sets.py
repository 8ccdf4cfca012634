"""Arming costs statements by the set, survives a death at any place, and agrees among matchers."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from shared.db.pending import lock_about, lock_episodes, lock_lapsed, lock_open
from shared.db.talk_facts import TalkAsk, read_talk
from shared.faults import FaultPoint
from shared.services.backends import Backends
from shared.time.clock import SystemClock
from tests.arming import (
    HOUR,
    IS_INCOMING,
    IS_PENDING,
    Desk,
    Told,
    another,
    conversation,
    hour,
    message,
    open_desk,
    stamp_of,
)
from tests.pending_rows import fill_pending
from tests.processes import started
from tests.statements import explain, statements

TEN = hour("10:00")
MINUTE = timedelta(minutes=1)
ENDED_OF_C2 = text(
    "SELECT id FROM pending_executions"
    " WHERE automation_id = 'a0-1' AND subject_id = 'c2' AND ended_at IS NOT NULL"
)
NO_WALK = ("SCAN r", "SCAN m", "Seq Scan on")


@pytest.fixture
def desk(backends: Backends) -> Desk:
    return open_desk(backends)


@contextmanager
def counted(desk: Desk) -> Iterator[list[str]]:
    """Collect every statement that the database is given."""
    seen: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        seen.append(" ".join(statement.split()))

    engine = desk.backends.database._engine
    event.listen(engine, "before_cursor_execute", note)
    yield seen
    event.remove(engine, "before_cursor_execute", note)


def rules(desk: Desk, count: int) -> None:
    for _ in range(count):
        desk.rule(conditions=IS_PENDING)
        desk.rule("MESSAGE_CREATED", conditions=IS_INCOMING)
        desk.rule("EVENT", config={"eventType": "conversation.*"}, conditions={"not": IS_PENDING})


def batch(subjects: int, name: str = "c") -> list[Told]:
    """Tell of as many conversations, of each an opening, a message, and a change that ends and begins."""
    talks = [f"{name}{number}" for number in range(subjects)]
    return [
        *(conversation(TEN, "updated", talk, status="pending", seq=at) for at, talk in enumerate(talks)),
        *(message(TEN + MINUTE, f"m-{talk}", talk=talk, seq=at) for at, talk in enumerate(talks)),
        *(conversation(TEN + HOUR, "updated", talk, status="open", seq=at) for at, talk in enumerate(talks)),
    ]


def settle_in(desk: Desk) -> None:
    """Have the index loaded, and the backlog counted, before anything is counted."""
    desk.tell(Told(TEN - HOUR, "order.seen", {}))


def test_statements_do_not_grow_with_subjects_or_automations(backends: Backends, desk: Desk) -> None:
    del backends
    rules(desk, 1)
    settle_in(desk)
    with counted(desk) as few:
        desk.tell(*batch(1))
    rules(desk, 9)
    settle_in(desk)
    with counted(desk) as many:
        desk.tell(*batch(60, "d"))
    assert len(desk.rows()) == 3 + 60 * 30
    assert list(map(word_of, many)) == list(map(word_of, few))
    assert len(few) < 40


def test_a_touch_while_everything_waits_is_one_more_look(desk: Desk) -> None:
    rules(desk, 5)
    desk.tell(*(conversation(TEN, "updated", f"c{n}", status="pending", seq=n) for n in range(20)))
    settle_in(desk)
    touches = [conversation(TEN + HOUR, "updated", f"c{n}", assignee="a", seq=n) for n in range(20)]
    with counted(desk) as seen:
        desk.tell(*touches)
    about_it = [each for each in seen if "pending_executions" in each]
    assert len(about_it) == 1


def test_without_delayed_automations_nothing_more_is_asked_or_kept(desk: Desk) -> None:
    """The statements of a set as they were before anything could wait, and one look at idle steps."""
    desk.post.add({"type": "CONVERSATION_UPDATED"}, conditions=IS_PENDING)
    desk.rule(conditions=IS_PENDING, workspace_id="w2")
    settle_in(desk)
    told = [conversation(TEN, status="pending"), message(TEN + MINUTE, "m1"), message(TEN + HOUR, "m2")]
    with counted(desk) as seen:
        desk.tell(*told)
    assert [word_of(each) for each in seen if not each.startswith("BEGIN")] == [
        "SELECT automation_runs",
        "SELECT subjects",
        "INSERT subjects",
        "SELECT subjects",
        "INSERT subjects",
        "INSERT messages",
        "SELECT idle_steps",
        "INSERT automation_runs",
    ]
    (written,) = desk.post.rows("SELECT CAST(writes AS text) AS writes FROM subjects")
    assert "[]" not in written.writes
    assert "names" not in written.writes


def word_of(statement: str) -> str:
    tables = ("automation_runs", "subjects", "messages", "pending_executions", "idle_steps", "automations")
    return f"{statement.split(maxsplit=1)[0]} {next(table for table in tables if table in statement)}"


def test_two_matchers_at_once_make_one_row_an_episode(desk: Desk) -> None:
    rules(desk, 3)
    told = [each for each in batch(30) if each.type != "message.created"]
    halves: Sequence[list[Told]] = (told[::2], told[1::2])
    start = threading.Barrier(2)
    failures: list[BaseException] = []

    def work(half: list[Told]) -> None:
        matcher = another(desk)
        start.wait()
        try:
            for at in range(0, len(half), 4):
                desk.tell(*half[at : at + 4], by=matcher)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(half,)) for half in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    opened = desk.open()
    assert len(opened) == 30 * 3
    assert {row.episode.started_at for row in opened} == {TEN + HOUR}
    assert len({(row.automation_id, row.subject_id) for row in opened}) == 90


@pytest.mark.parametrize("point", [FaultPoint.MATCH_BEFORE_COMMIT, FaultPoint.MATCH_AFTER_COMMIT])
def test_a_kill_leaves_each_episode_one_row(
    backends: Backends, redis_url: str, database_url: str, tmp_path: Path, point: FaultPoint
) -> None:
    desk = open_desk(replace(backends, clock=SystemClock()))
    desk.rule(conditions=IS_PENDING)
    desk.rule("MESSAGE_CREATED", conditions=IS_INCOMING)
    for number in range(5):
        talk = {"id": f"c{number}", "status": "pending"}
        desk.post.publish("conversation.updated", {"conversation": talk})
        for id_ in (f"m{number}", f"n{number}"):
            told = {"id": id_, "direction": "incoming"}
            desk.post.publish("message.created", {"conversation": talk, "message": told})
    servers = {"REDIS_URL": redis_url, "DATABASE_URL": database_url}
    with started("matcher", tmp_path / "log", **servers, KNOCKON_FAULT=f"{point}:kill9") as victim:
        assert victim.wait(30) == -signal.SIGKILL
    before = {row.id: row for row in desk.rows()}
    assert len(before) in ({0, 5, 10} if point is FaultPoint.MATCH_AFTER_COMMIT else {0})
    for reading in (desk.post.stream.reclaim(200, timedelta()), desk.post.stream.read(200, block_ms=1)):
        desk.post.intake.take(reading)
    after = {row.id: row for row in desk.rows()}
    assert len(after) == 10
    assert desk.post.pending() == 0
    assert {row.status.value for row in after.values()} == {"pending"}
    if len(before) == 10:
        assert after == before


def test_what_is_asked_of_rows_goes_by_indexes(desk: Desk) -> None:
    fill_pending(desk.backends.database, 20_000)
    key = ("a0-1", "conversation", "c2")
    with desk.backends.database.begin() as conn, statements(conn) as seen:
        lock_about(conn, [("w0", "conversation", f"c{number}") for number in range(20)])
        lock_open(conn, [key])
        lock_episodes(conn, [(*key, "awaiting_agent:2")])
    with desk.backends.database.read() as conn:
        plans = [explain(conn, *each) for each in seen]
    assert len(plans) == 3
    for told in plans:
        assert not [bad for bad in NO_WALK if bad in told], told


def test_of_what_waited_for_an_agent_the_newest_row_alone_is_read(desk: Desk) -> None:
    """A conversation may have had any number of episodes; all but the newest stay unread and unlocked."""
    fill_pending(desk.backends.database, 20_000)
    key = ("a0-1", "conversation", "c2")
    with desk.backends.database.begin() as conn, statements(conn) as seen:
        found = lock_lapsed(conn, [key, ("a0-1", "conversation", "nobody")])
    with desk.backends.database.read() as conn:
        (plan,) = [explain(conn, *each) for each in seen]
        ended = conn.execute(ENDED_OF_C2).scalars().all()
    assert len(ended) > 1
    assert {each.id for each in found.values()} == {max(ended)}
    assert found.keys() == {key}
    assert not [bad for bad in NO_WALK if bad in plan], plan
    assert "ix_pending_executions_lapsed" in plan, plan


def test_talk_is_read_from_the_ends_of_conversations(desk: Desk) -> None:
    told = [
        message(TEN, f"m{number}", "outgoing" if number % 3 else "incoming", f"c{number % 40}", seq=number)
        for number in range(2_000)
    ]
    for at in range(0, 2_000, 200):
        desk.tell(*told[at : at + 200])
    with desk.backends.database.begin() as conn:
        conn.exec_driver_sql("ANALYZE messages")
    asks = [TalkAsk("w1", f"c{number}", stamp_of(TEN, 1_000), None) for number in range(20)]
    with desk.backends.database.read() as conn:
        with statements(conn) as seen:
            found = read_talk(conn, asks)
        (plan,) = [explain(conn, *each) for each in seen]
    assert not [bad for bad in NO_WALK if bad in plan], plan
    assert found.keys() == set(asks)
    talk = found[asks[0]]
    in_c0 = [each for each in told if each.payload["conversation"]["id"] == "c0"]
    replies = [each for each in in_c0 if each.payload["message"]["direction"] == "outgoing"]
    persons = [each for each in in_c0 if each not in replies]
    assert talk.cleared == replies[-1].stamp
    assert talk.newest_incoming == persons[-1].stamp
    waiting = [each for each in persons if each.stamp > replies[-1].stamp]
    assert talk.waiting_stamp == (waiting[0].stamp if waiting else None)
    before: list[Any] = [each for each in persons if each.stamp < stamp_of(TEN, 1_000)]
    assert talk.incoming_before == before[-1].payload["message"]["id"]
