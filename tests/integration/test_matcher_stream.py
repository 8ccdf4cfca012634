"""The consumer group on a real Redis: what is left behind is found, what is lost is told."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from matcher.stream import Arrival, Reading, Stream
from shared.keys import GROUP, Keys
from shared.redis_port import RedisPort, open_redis
from tests.waiting import poll

KEYS = Keys("t:", "events")
NOW = timedelta(0)


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with closing(open_redis(redis_url)) as opened:
        yield opened


@pytest.fixture
def stream(client: RedisPort) -> Stream:
    stream = Stream(client, KEYS, "c1")
    stream.join()
    return stream


def publish(client: RedisPort, count: int = 1) -> list[str]:
    return [client.xadd(KEYS.stream, {"n": str(number)}).decode() for number in range(count)]


def ids(reading: Reading) -> list[str]:
    return [each.entry_id for each in reading.deliveries]


def pending(client: RedisPort) -> int:
    return client.xinfo_groups(KEYS.stream)[0]["pending"]


def ack(client: RedisPort, *entry_ids: str) -> None:
    client.xack(KEYS.stream, GROUP, *entry_ids)


def test_a_late_group_sees_the_whole_history(client: RedisPort) -> None:
    entries = publish(client, 3)
    stream = Stream(client, KEYS, "c1")
    stream.join()
    stream.join()
    assert ids(stream.read(10, block_ms=1)) == entries
    assert ids(stream.read(10, block_ms=1)) == []


def test_a_reading_tells_the_version_of_the_index(client: RedisPort, stream: Stream) -> None:
    assert stream.read(10, block_ms=1).version == 0
    client.incr(KEYS.index_version)
    assert stream.read(10, block_ms=1).version == 1
    assert stream.read_own(10).version == 1
    assert stream.reclaim(10, NOW).version == 1


def test_a_flush_makes_the_group_anew_from_the_beginning(client: Any, stream: Stream) -> None:
    publish(client, 2)
    stream.read(10, block_ms=1)
    client.flushdb()
    entries = publish(client, 2)
    assert stream.read(10, block_ms=1) == Reading((), 0)
    assert ids(stream.read(10, block_ms=1)) == entries


def test_a_flush_under_a_waiting_reader_loses_nothing_that_follows(
    client: Any, stream: Stream, redis_url: str
) -> None:
    seen: list[Reading] = []
    reader = threading.Thread(target=lambda: seen.append(stream.read(10, block_ms=4000)))
    reader.start()
    with closing(open_redis(redis_url)) as opened:
        other: Any = opened
        poll(lambda: any("xreadgroup" in each["cmd"] for each in other.client_list()))
        other.flushdb()
        entries = publish(other)
    reader.join(10)
    assert ids(seen[0]) in ([], entries)
    assert ids(seen[0]) + ids(stream.read(10, block_ms=1)) == entries


@pytest.mark.parametrize("look", ["read_own", "reclaim", "forget", "leave", "keep"])
def test_nothing_of_it_fails_without_a_group(client: Any, stream: Stream, look: str) -> None:
    client.flushdb()
    match look:
        case "read_own":
            assert ids(stream.read_own(10)) == []
        case "reclaim":
            assert ids(stream.reclaim(10, NOW)) == []
        case "forget":
            assert stream.forget_consumers(NOW) == 0
        case "leave":
            stream.leave()
        case _:
            stream.keep([])


def test_what_was_read_and_not_acknowledged_is_read_again(client: RedisPort, stream: Stream) -> None:
    entries = publish(client, 3)
    stream.read(10, block_ms=1)
    ack(client, entries[1])
    again = stream.read_own(10)
    assert ids(again) == [entries[0], entries[2]]
    assert {(each.arrival, each.times, each.fields and each.fields[b"n"]) for each in again.deliveries} == {
        (Arrival.AGAIN, 1, b"0"),
        (Arrival.AGAIN, 1, b"2"),
    }
    assert ids(stream.read_own(10)) == ids(again)


def test_a_dead_consumers_entries_are_taken_over(client: RedisPort, stream: Stream) -> None:
    entries = publish(client, 3)
    dead = Stream(client, KEYS, "dead")
    dead.read(2, block_ms=1)
    assert ids(stream.reclaim(10, timedelta(hours=1))) == []
    taken = stream.reclaim(10, NOW)
    assert ids(taken) == entries[:2]
    assert [each.times for each in taken.deliveries] == [2, 2]
    assert ids(dead.read_own(10)) == []
    assert ids(stream.read(10, block_ms=1)) == entries[2:]


def test_each_taking_over_counts_a_delivery(client: RedisPort, stream: Stream) -> None:
    publish(client)
    stream.read(10, block_ms=1)
    others = [Stream(client, KEYS, f"o{number}") for number in range(6)]
    times = [each.times for other in others for each in other.reclaim(10, NOW).deliveries]
    assert times == [2, 3, 4, 5, 6, 7]


def test_what_is_kept_is_not_taken_over(client: RedisPort, stream: Stream) -> None:
    publish(client)
    held = ids(stream.read(10, block_ms=1))
    poll(lambda: client.xpending_range(KEYS.stream, GROUP, min="-", max="+", count=1, idle=500))
    stream.keep(held)
    other = Stream(client, KEYS, "other")
    assert ids(other.reclaim(10, timedelta(seconds=0.5))) == []
    assert [each.times for each in stream.read_own(10).deliveries] == [1]


def test_pending_entries_that_were_trimmed_come_back_without_fields(client: Any, stream: Stream) -> None:
    entries = publish(client, 5)
    stream.read(2, block_ms=1)
    client.xtrim(KEYS.stream, maxlen=1, approximate=False)
    own = stream.read_own(10)
    assert [(each.entry_id, each.fields) for each in own.deliveries] == [
        (entries[0], None),
        (entries[1], None),
    ]
    taken = Stream(client, KEYS, "other").reclaim(10, NOW)
    assert [(each.entry_id, each.fields) for each in taken.deliveries] == [
        (entries[0], None),
        (entries[1], None),
    ]
    ack(client, *entries[:2])
    assert pending(client) == 0


def test_a_cut_before_the_reading_is_told_once(client: Any, stream: Stream) -> None:
    entries = publish(client, 2)
    stream.read(10, block_ms=1)
    publish(client, 3)
    client.xtrim(KEYS.stream, maxlen=1, approximate=False)
    assert len(ids(stream.read(1, block_ms=1))) == 1
    publish(client)
    stream.read(10, block_ms=1)
    assert client.get(KEYS.count("stream_gaps")) == b"1"
    assert entries


def test_a_cut_of_everything_is_told_once(client: Any, stream: Stream) -> None:
    publish(client, 2)
    stream.read(10, block_ms=1)
    publish(client, 3)
    client.xtrim(KEYS.stream, maxlen=0, approximate=False)
    for _ in range(3):
        assert ids(stream.read(10, block_ms=1)) == []
    assert client.get(KEYS.count("stream_gaps")) == b"1"


def test_trimming_what_was_read_is_no_gap(client: Any, stream: Stream) -> None:
    for _ in range(5):
        publish(client, 4)
        stream.read(10, block_ms=1)
        client.xtrim(KEYS.stream, maxlen=2, approximate=False)
    assert client.get(KEYS.count("stream_gaps")) is None


def test_an_entry_from_beyond_the_calendar_stops_nobody(client: Any, stream: Stream) -> None:
    publish(client)
    stream.read(10, block_ms=1)
    client.xadd(KEYS.stream, {"n": "1"}, id="18446744073709551615-1")
    assert ids(stream.read(10, block_ms=1)) == ["18446744073709551615-1"]
    assert ids(stream.read(10, block_ms=1)) == []


def test_a_silent_consumer_is_deleted_unless_something_is_pending(client: Any, stream: Stream) -> None:
    publish(client)
    stream.read(10, block_ms=1)
    holder, idler = Stream(client, KEYS, "holder"), Stream(client, KEYS, "idler")
    publish(client)
    holder.read(1, block_ms=1)
    idler.read(1, block_ms=1)
    assert stream.forget_consumers(timedelta(days=1)) == 0
    stream.forget_consumers(NOW)
    assert {each["name"] for each in client.xinfo_consumers(KEYS.stream, GROUP)} == {b"c1", b"holder"}
    assert pending(client) == 2
    stream.leave()
    holder.leave()
    assert len(client.xinfo_consumers(KEYS.stream, GROUP)) == 2
    ack(client, *ids(holder.read_own(10)))
    holder.leave()
    assert {each["name"] for each in client.xinfo_consumers(KEYS.stream, GROUP)} == {b"c1"}
