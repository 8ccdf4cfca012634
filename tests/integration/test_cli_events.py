"""The commands that publish events and put dead ones back, on both databases."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import typer

from knockon.cli.output import Form
from knockon.cli.publish import publish
from shared.services.backends import Backends
from tests.commanding import Knockon, document


def test_publish_sends_one_event_from_arguments(knockon: Knockon, backends: Backends) -> None:
    sent = document(
        knockon("publish", "order.placed", "--payload", '{"orderId": 7}', "--id", "o7", "-o", "json")
    )
    ((entry_id, fields),) = backends.redis.xrange("factory:events")
    assert sent == {"entry_id": entry_id.decode(), "id": "o7"}
    assert fields[b"workspaceId"] == b"w1"
    assert orjson.loads(fields[b"payload"]) == {"orderId": 7}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["order.placed", "--payload", "{"], 1, "--payload: is not JSON"),
        (["order.placed", "--payload", "[1]"], 1, "--payload: is not a JSON object"),
        (["Order"], 1, "type: must be noun.verb"),
        ([], 2, "give a TYPE, or --file"),
        (["--file", "nowhere.jsonl"], 1, "nowhere.jsonl"),
        (["order.placed", "--payload", '{"a": 1, "a": 2}'], 1, "--payload: has a duplicate key: 'a'"),
        (["order.placed", "--payload", '{"a": NaN}'], 1, "--payload: holds NaN"),
        (["automation.executed"], 1, "type: is the engine's own"),
    ],
)
def test_publish_refuses_with_one_line(knockon: Knockon, arguments: list[str], code: int, said: str) -> None:
    assert said in knockon("publish", *arguments, code=code).stderr


def test_publish_sends_the_lines_before_a_bad_one_and_names_it(knockon: Knockon, backends: Backends) -> None:
    lines = '{"type": "order.placed", "workspaceId": "w2"}\n\n{"type": "order.placed"}\n{"type": 5}\n'
    said = knockon("publish", "-f", "-", stdin=lines, code=1).stderr
    assert said == "2 are published; go on from line 4\nerror: line 4: type: must be text\n"
    entries = backends.redis.xrange("factory:events")
    assert [fields[b"workspaceId"] for _, fields in entries] == [b"w2", b"w1"]
    assert "2 published" in knockon("publish", "-f", "-", stdin=lines.rsplit("\n", 2)[0]).stdout


def test_dead_events_are_listed_and_put_back(knockon: Knockon, backends: Backends) -> None:
    fields = {"type": "order.placed", "payload": "{}", "reason": "workspaceId: is missing", "entry": "1-1"}
    dead_id = backends.redis.xadd("factory:events:dead", fields).decode()
    assert "workspaceId: is missing" in knockon("events", "dead").stdout
    assert document(knockon("events", "dead", "-o", "json"))[0]["id"] == dead_id
    assert "1 of 1 is on the stream again" in knockon("events", "requeue", dead_id).stdout
    again = knockon("events", "requeue", dead_id, code=1)
    assert (again.stdout, again.stderr) == (
        "0 of 1 are on the stream again\n",
        f"error: {dead_id} is not there\n",
    )
    knockon("events", "requeue", code=2)
    assert backends.redis.xlen("factory:events") == 1


def test_one_dead_event_that_cannot_be_put_back_does_not_hold_up_the_others(
    knockon: Knockon, backends: Backends
) -> None:
    wide = {"type": "order.placed", **{f"f{number}": "" for number in range(20_000)}}
    ids = [
        backends.redis.xadd("factory:events:dead", fields).decode()
        for fields in ({"type": "order.placed"}, wide, {"type": "order.placed"})
    ]
    done = knockon("events", "requeue", "--all", "-o", "json", code=1)
    assert document(done)["requeued"] == 2
    assert list(document(done)["left"]) == [ids[1]]
    assert f"error: {ids[1]} has 20,001 fields" in done.stderr
    assert "0 of 1 are" in knockon("events", "requeue", "--all", code=1).stdout


@pytest.mark.parametrize("given", ["nope", "-", "+", "5", "(5-1", "1-1 "])
def test_what_is_no_id_of_an_entry_is_refused_before_redis_is_asked(knockon: Knockon, given: str) -> None:
    said = knockon("events", "requeue", "--", given, code=2, REDIS_URL="redis://127.0.0.1:1/0")
    assert "is no id of an entry" in said.stderr


def test_a_line_that_is_no_text_is_a_bad_one(knockon: Knockon, backends: Backends, tmp_path: Path) -> None:
    lines = b'{"type": "order.placed"}\n{"type": "order.placed", "id": "\xff"}\n'
    (tmp_path / "events.jsonl").write_bytes(lines)
    for given in ("-", "events.jsonl"):
        said = knockon("publish", "-f", given, stdin=lines, code=1).stderr
        assert said == "1 is published; go on from line 2\nerror: line 2: event: is not UTF-8\n"
    assert backends.redis.xlen("factory:events") == 2


def test_a_line_of_an_unknown_workspace_is_a_bad_one(knockon: Knockon, backends: Backends) -> None:
    lines = '{"type": "order.placed", "workspaceId": "w2"}\n{"type": "order.placed", "workspaceId": "w3"}\n'
    said = knockon("publish", "-f", "-", stdin=lines, code=1).stderr
    assert "line 2: workspaceId: there is no workspace 'w3'" in said
    assert backends.redis.xlen("factory:events") == 1


def test_events_are_published_unchecked_while_the_database_is_away(
    knockon: Knockon, backends: Backends
) -> None:
    lines = '{"type": "order.placed"}\n{"type": "order.placed", "workspaceId": "w3"}\n'
    away = "postgresql://127.0.0.1:1/x"
    said = knockon("publish", "-f", "-", stdin=lines, DATABASE_URL=away)
    assert said.stdout == "2 published\n"
    assert said.stderr.count("the database does not answer") == 1
    knockon("publish", "order.placed", DATABASE_URL="")
    assert backends.redis.xlen("factory:events") == 3


def test_a_refusal_of_redis_says_how_far_it_came(knockon: Knockon, backends: Backends) -> None:
    backends.redis.eval("redis.call('SET', KEYS[1], 'no stream')", 1, "factory:events")
    said = knockon("publish", "-f", "-", stdin='{"type": "order.placed"}\n', code=1).stderr
    assert "0 are published for certain; go on from line 1" in said
    assert "error: 1 event is not confirmed" in said


class Interrupted:
    """A standard input whose reader is interrupted behind its last line."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[str]:
        yield from self._lines
        raise KeyboardInterrupt

    def seekable(self) -> bool:
        return False


def test_an_interrupted_file_says_how_far_it_came(
    backends: Backends, redis_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    monkeypatch.setattr("sys.stdin", Interrupted("\n", *['{"type": "order.placed"}\n'] * 600))
    with pytest.raises(typer.Exit) as ended:
        publish(type=None, payload=None, id=None, file="-", workspace="w1", output=Form.TABLE)
    assert ended.value.exit_code == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert "interrupted; 500 are published for certain; go on from line 502" in said.err
    assert backends.redis.xlen("factory:events") == 500
