"""The outbox reaches the stream, and the stream keeps its bounds without losing what nobody has read."""

from collections.abc import Iterator

import pytest

from shared.db.outbox import OutboxEntry, insert_outbox
from shared.ids import new_id
from shared.keys import GROUP
from shared.model.events import EventDraft, decode_entry, encode_fields
from shared.settings import Settings
from tests.watchdog_stage import WORKSPACE, Stage, close_stage, open_stage
from watchdog.relay import forget_sent, relay_outbox
from watchdog.trim import trim_stream

STREAM = "t:factory:events"


@pytest.fixture
def stage(database_url: str, redis_url: str) -> Iterator[Stage]:
    opened = open_stage(database_url, redis_url, Settings(_env_file=None, events_maxlen=1000))
    yield opened
    close_stage(opened)


def emit(stage: Stage, count: int = 1) -> list[str]:
    """Write events to the outbox, as a process does that dies right after."""
    ids = [new_id() for _ in range(count)]
    entries = [OutboxEntry(event_id, WORKSPACE, None, fields_of(event_id)) for event_id in ids]
    with stage.database.begin() as conn:
        insert_outbox(conn, entries, now=stage.clock.now())
    return ids


def fields_of(event_id: str) -> dict[str, str]:
    return encode_fields(EventDraft("order.placed", WORKSPACE, {"text": "čaj"}, id=event_id))


def sent(stage: Stage) -> list[str | None]:
    entries = stage.client.xrange(STREAM)
    return [decode_entry(entry_id.decode(), fields).id for entry_id, fields in entries]


def test_what_was_left_behind_is_sent_once(stage: Stage) -> None:
    ids = emit(stage, 3)
    stage.advance(11)
    relay_outbox(stage.parts)
    relay_outbox(stage.parts)
    assert sorted(filter(None, sent(stage))) == sorted(ids)
    assert stage.rows("SELECT id FROM outbox WHERE sent_at IS NULL") == []


def test_what_its_own_process_may_still_send_is_left_to_it(stage: Stage) -> None:
    emit(stage)
    stage.advance(9)
    relay_outbox(stage.parts)
    assert sent(stage) == []


def test_what_redis_refuses_stays_for_the_next_time(stage: Stage) -> None:
    stage.client.set(STREAM, "not a stream")
    ids = emit(stage)
    stage.advance(11)
    relay_outbox(stage.parts)
    stage.client.delete(STREAM)
    relay_outbox(stage.parts)
    assert sent(stage) == ids


def test_more_than_a_batch_is_sent_in_one_pass(stage: Stage) -> None:
    emit(stage, 600)
    stage.advance(11)
    relay_outbox(stage.parts)
    assert len(sent(stage)) == 600


def test_sent_events_are_forgotten_after_a_day_and_others_never(stage: Stage) -> None:
    emit(stage, 2)
    stage.advance(11)
    relay_outbox(stage.parts)
    stage.advance(86_000)
    (unsent,) = emit(stage)
    forget_sent(stage.parts)
    assert len(stage.rows("SELECT id FROM outbox")) == 3
    stage.advance(86_400)
    forget_sent(stage.parts)
    assert [row.id for row in stage.rows("SELECT id FROM outbox")] == [unsent]


def fill(stage: Stage, count: int) -> None:
    with stage.client.pipeline(transaction=False) as pipe:
        for number in range(count):
            pipe.xadd(STREAM, {"n": str(number)})
        pipe.execute()


def read_all(stage: Stage) -> list[bytes]:
    answer = stage.client.xreadgroup(GROUP, "c1", {STREAM: ">"}, count=100_000)
    return [entry_id for entry_id, _ in answer[0][1]]


def test_a_stream_within_its_limit_is_left_alone(stage: Stage) -> None:
    stage.client.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    fill(stage, 1000)
    stage.client.xack(STREAM, GROUP, *read_all(stage))
    trim_stream(stage.parts)
    assert stage.client.xlen(STREAM) == 1000


def test_past_the_limit_the_oldest_go_and_the_allowed_history_stays(stage: Stage) -> None:
    stage.client.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    fill(stage, 3000)
    stage.client.xack(STREAM, GROUP, *read_all(stage))
    trim_stream(stage.parts)
    assert 1000 <= stage.client.xlen(STREAM) <= 1100


def test_an_entry_that_was_read_but_not_acknowledged_stays(stage: Stage) -> None:
    stage.client.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
    fill(stage, 3000)
    entries = read_all(stage)
    stage.client.xack(STREAM, GROUP, *entries[:500], *entries[501:])
    trim_stream(stage.parts)
    assert stage.client.xrange(STREAM, entries[500], entries[500])
    assert 2500 <= stage.client.xlen(STREAM) <= 2600


def test_entries_that_nobody_has_read_stay(stage: Stage) -> None:
    fill(stage, 3000)
    trim_stream(stage.parts)
    assert stage.client.xlen(STREAM) == 3000
    stage.client.xgroup_create(STREAM, GROUP, id="0")
    trim_stream(stage.parts)
    assert stage.client.xlen(STREAM) == 3000


def test_without_a_stream_there_is_nothing_to_do(stage: Stage) -> None:
    trim_stream(stage.parts)
    assert stage.client.exists(STREAM) == 0
