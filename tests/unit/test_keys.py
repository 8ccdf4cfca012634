"""The names of Redis keys: the contract's spelling, the prefix in front of each."""

import inspect

import pytest

from shared.keys import Keys
from shared.model.runs import QueueKind

PLAIN = Keys("", "factory:events")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (PLAIN.stream, "factory:events"),
        (PLAIN.dead_stream, "factory:events:dead"),
        (PLAIN.queue(QueueKind.MAIN), "automations"),
        (PLAIN.queue(QueueKind.BULK), "automations-bulk"),
        (PLAIN.dedupe("a1", "id:e1"), "automations:dedupe:a1:id:e1"),
        (PLAIN.matched("EVENT"), "automations:matched:EVENT"),
        (PLAIN.skipped("deduped"), "automations:skipped:deduped"),
        (PLAIN.action("SEND_WEBHOOK", "failed"), "automations:actions:SEND_WEBHOOK:failed"),
        (PLAIN.dead_letter("w1"), "automations:dead_letter:w1"),
    ],
)
def test_names_are_those_that_others_rely_on(name: str, expected: str) -> None:
    assert name == expected


def every_name(keys: Keys) -> list[str]:
    """Name every key that the class knows, by calling all of it."""
    names = []
    for attribute in (name for name in dir(Keys) if not name.startswith("_")):
        value = getattr(keys, attribute)
        if attribute in ("prefix", "stream_name"):
            continue
        if callable(value):
            count = len(inspect.signature(value).parameters)
            value = value(QueueKind.MAIN) if attribute == "queue" else value(*["x"] * count)
        names.append(value)
    return names


def test_every_key_takes_the_prefix() -> None:
    plain, prefixed = every_name(PLAIN), every_name(Keys("shop1:", "factory:events"))
    assert prefixed == [f"shop1:{name}" for name in plain]


def test_no_two_keys_are_one() -> None:
    assert len(set(every_name(PLAIN))) == len(every_name(PLAIN))
