"""Entries that could not be taken: kept as they were, listed, put back once."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from shared.dead_stream import GONE, MAX_MOVED_FIELDS, Burial, bury, list_dead, requeue
from shared.keys import Keys
from shared.redis_port import open_redis

KEYS = Keys("t:", "events")


@pytest.fixture
def client(redis_url: str) -> Iterator[Any]:
    with closing(open_redis(redis_url)) as opened:
        yield opened


def buried(client: Any, *fields: dict[bytes, bytes]) -> list[str]:
    with client.pipeline(transaction=True) as pipe:
        bury(pipe, KEYS, [Burial("5-0", each, "type: is missing", "BadEvent") for each in fields])
        pipe.execute()
    return [entry_id.decode() for entry_id, _ in client.xrange(KEYS.dead_stream)]


def left(client: Any, ids: list[str]) -> list[str | None]:
    """Put entries back; give why each is left."""
    found = dict(requeue(client, KEYS, ids))
    assert list(found) == ids
    return list(found.values())


ORIGINALS: list[dict[bytes, bytes]] = [
    {b"type": b"order.placed", b"payload": b'{"a": 1}'},
    {b"type": b"order.placed", b"payload": b"\x00\xff\xfe"},
    {b"\xff": b"x", b"payload": b"{}"},
    {b"reason": b"mine", b"error": b"", b"entry": b"e", b"raw": b"[]", b"cut": b"1"},
]


@pytest.mark.parametrize("original", ORIGINALS)
def test_an_entry_is_put_back_as_it_was(client: Any, original: dict[bytes, bytes]) -> None:
    ids = buried(client, original)
    assert left(client, ids) == [None]
    assert [fields for _, fields in client.xrange(KEYS.stream)] == [original]
    assert client.xlen(KEYS.dead_stream) == 0


def test_the_second_of_two_puts_nothing_back(client: Any) -> None:
    ids = buried(client, ORIGINALS[0])
    assert [left(client, ids), left(client, ids)] == [[None], [GONE]]
    assert client.xlen(KEYS.stream) == 1


def test_what_is_buried_is_listed_with_its_reason_newest_first(client: Any) -> None:
    buried(client, ORIGINALS[0], ORIGINALS[1])
    newest, oldest = list_dead(client, KEYS, 10)
    assert (oldest.reason, oldest.error, oldest.entry_id) == ("type: is missing", "BadEvent", "5-0")
    assert oldest.fields == {"type": "order.placed", "payload": '{"a": 1}'}
    assert newest.fields["payload"] == "\x00\ufffd\ufffd"
    assert [each.id for each in list_dead(client, KEYS, 1)] == [newest.id]


def test_any_client_that_decodes_can_read_the_stream(client: Any, redis_url: str) -> None:
    buried(client, *ORIGINALS)
    for _, fields in client.xrange(KEYS.dead_stream):
        for part in (*fields, *fields.values()):
            part.decode()


def test_an_entry_beyond_the_largest_is_cut_and_stays(client: Any) -> None:
    ids = buried(client, {b"payload": b"x" * 3_000_000})
    (dead,) = list_dead(client, KEYS, 10)
    assert dead.is_cut
    assert len(dead.fields["payload"]) == 4096
    assert left(client, ids) == ["was too large to be kept whole"]
    assert client.xlen(KEYS.dead_stream) == 1


def test_what_cannot_be_put_back_stays_and_holds_up_nothing(client: Any) -> None:
    many = {b"f%d" % number: b"" for number in range(20_000)}
    most = {b"f%d" % number: b"" for number in range(MAX_MOVED_FIELDS)}
    ids = buried(client, ORIGINALS[0], many, most)
    ids.append(client.xadd(KEYS.dead_stream, {"raw": "no list"}).decode())
    ids.append(client.xadd(KEYS.dead_stream, {"raw": '[["!", "?"]]'}).decode())
    ids.append(client.xadd(KEYS.dead_stream, {"raw": "[7]"}).decode())
    reasons = left(client, ids)
    assert reasons[0] is None
    assert "20,000 fields" in str(reasons[1])
    assert reasons[2] is None
    assert reasons[3:] == ["holds a field raw that cannot be read"] * 3
    assert client.xlen(KEYS.stream) == 2
    assert [each.id for each in list_dead(client, KEYS, 10)] == [*ids[:2:-1], ids[1]]


def test_what_redis_refuses_is_told_for_each(client: Any) -> None:
    ids = buried(client, ORIGINALS[0], ORIGINALS[1])
    client.set(KEYS.stream, "no stream")
    assert [str(reason).startswith("was refused by Redis: ") for reason in left(client, ids)] == [True, True]
