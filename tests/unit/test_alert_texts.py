"""The words of an alert."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.errors import FatalError
from shared.model.alert_message import AlertMessage, AlertPart, AlertShare
from shared.rules.alerting import GroupState
from timers.alert_sending import wait_after
from timers.alert_texts import html_text, one_line, plain_text, subject_of
from timers.alert_ways import Letter, compose

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PART: Mapping[str, Any] = {
    "group_id": "g1",
    "fingerprint": "0123456789abcdef",
    "state": GroupState.NEW,
    "automation_id": "a1",
    "automation": "Welcome",
    "host": None,
    "code": "NET_ECONNREFUSED",
    "title": 'Automation "Welcome" dead-lettered',
    "message": "POST https://x.example/a: [Errno 111]",
    "run_id": "r1",
    "count": 37,
    "more": 37,
    "first_at": NOW,
    "last_at": NOW,
    "since": None,
}


def message(*parts: Mapping[str, Any], **given: Any) -> AlertMessage:
    made = tuple(AlertPart(**{**PART, **part}) for part in parts or ({},))
    return AlertMessage(workspace_id="w1", parts=made, **{"about": "Welcome", **given})


@pytest.mark.parametrize(
    ("told", "subject"),
    [
        (message(), "[knockon] Welcome: NET_ECONNREFUSED (37x)"),
        (message({"host": "x.example"}), "[knockon] x.example: NET_ECONNREFUSED (37x)"),
        (message({"more": 2}, {"more": 3}), "[knockon] Welcome: 2 kinds of errors (5x)"),
        (message({"more": 2}, {"more": 3}, about=None), "[knockon] 2 kinds of errors (5x)"),
        (message(unshown_groups=4, unshown_letters=9), "[knockon] Welcome: 5 kinds of errors (46x)"),
        (message({"automation": "a\r\nBcc: b\u2028c\x00"}), "[knockon] a Bcc: b c: NET_ECONNREFUSED (37x)"),
        (message({"automation": "w" * 500}), f"[knockon] {'w' * 79}…: NET_ECONNREFUSED (37x)"),
    ],
)
def test_the_subject_says_where_what_and_how_often(told: AlertMessage, subject: str) -> None:
    assert subject_of(told) == subject


def test_the_text_says_what_to_do() -> None:
    text = plain_text(message())
    for line in (
        'Automation "Welcome" dead-lettered',
        "37 dead letters so far.",
        "Error: NET_ECONNREFUSED — POST https://x.example/a: [Errno 111]",
        "First seen: 2026-03-01 12:00:00 UTC",
        "Newest run: r1",
        "  knockon runs show r1 --workspace w1",
        "  knockon dead replay --automation a1 --workspace w1",
        "  knockon alerts mute 0123456789abcdef --for 24h --workspace w1",
    ):
        assert line in text.splitlines()


def shared(automations: int) -> AlertMessage:
    shares = tuple(
        AlertShare(automation_id=f"a{at}", automation=f"Flood {at}", count=6 - at)
        for at in range(1, min(automations, 5) + 1)
    )
    return message({"automations": automations, "shares": shares, "host": "x.example"}, about=None)


@pytest.mark.parametrize(
    ("automations", "named", "replays"),
    [
        (2, "Automations: Flood 1 (5), Flood 2 (4)", 2),
        (
            7,
            "Automations: Flood 1 (5), Flood 2 (4), Flood 3 (3), Flood 4 (2), Flood 5 (1), and 2 others (22)",
            5,
        ),
    ],
)
def test_all_automations_of_a_trouble_are_told_of(automations: int, named: str, replays: int) -> None:
    told = shared(automations)
    lines = plain_text(told).splitlines()
    assert named in lines
    commands = [f"knockon dead replay --automation a{at} --workspace w1" for at in range(1, replays + 1)]
    commands += ["knockon dead replay --all --workspace w1"] if automations > replays else []
    assert [line.strip() for line in lines if "dead replay" in line] == commands
    assert [f"<code>{command}</code>" in html_text(told) for command in commands] == [True] * len(commands)


def test_what_is_not_shown_is_counted() -> None:
    text = plain_text(message(unshown_groups=4, unshown_letters=9, quiet_until=NOW))
    assert "And 9 dead letters of 4 other kinds: knockon alerts list --workspace w1" in text
    assert "Muted until 2026-03-01 12:00:00 UTC" in text
    assert "a digest follows" in html_text(message(quiet_until=NOW))


def test_every_word_of_html_is_escaped() -> None:
    texts = {name: f"<x-{name}>&" for name in ("automation", "host", "code", "title", "message", "run_id")}
    html = html_text(message(texts))
    assert [name for name in texts if f"&lt;x-{name}&gt;&amp;" not in html] == []
    assert "<x-" not in html


def test_no_credentials_go_out() -> None:
    assert one_line("at ftp://ann:pw@x.example/ now") == "at ftp://***@x.example/ now"


@pytest.mark.parametrize(
    "address", ["a@b.example, eve@evil.example", "a@b.example\r\nBcc: eve@evil.example", "ann", ""]
)
def test_what_is_no_address_gets_no_mail(address: str) -> None:
    with pytest.raises(FatalError) as caught:
        compose(Letter("s1", "g1", message()), "k@knockon.test", address, NOW)
    assert caught.value.code == "MAIL_BAD_ADDRESS"


def test_waits_double_up_to_an_hour_and_end() -> None:
    waits = [wait_after(attempts) for attempts in range(1, 9)]
    assert waits == [*(timedelta(minutes=each) for each in (1, 2, 4, 8, 16, 32, 60)), None]
