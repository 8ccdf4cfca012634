"""Which dead letters are one trouble, and which are not."""

import pytest

from shared.rules.fingerprints import fingerprint, normalised, target_of


@pytest.mark.parametrize(
    ("code", "message", "target"),
    [
        ("WEBHOOK_HTTP_RETRIABLE", "POST https://shop.example/a/1?x=2 answered 503", "shop.example"),
        ("WEBHOOK_HTTP_RETRIABLE", "GET http://Shop.Example:8080 answered 503", "shop.example:8080"),
        (
            "NET_ECONNREFUSED",
            "ConnectionError: POST https://[2001:db8::1]:444/x: [Errno 111]",
            "[2001:db8::1]:444",
        ),
        ("NET_ECONNREFUSED", "ConnectionError: no route to redis://u:p@db.example:6379", "db.example:6379"),
        ("UNEXPECTED", "TimeoutError: PUT https://slow.example: no connection within 10 s", "slow.example"),
        ("NET_ECONNREFUSED", "mx.example:587: [Errno 111] Connection refused", "mx.example:587"),
        ("MAIL_TEMPORARY", "mx.example:587 answered 451 see https://help.example/451", "mx.example:587"),
        ("MAIL_TEMPORARY", "mx.example has no address", "mail server"),
        ("MAIL_REFUSED", "550 no such user", "a1"),
        ("WORKER_CRASHED", "its worker died or fell silent, crash 3", "a1"),
        ("OWN_CODE", "the document at https://docs.example/1 is empty", "a1"),
        ("NET_EAI_AGAIN", "gaierror: [Errno -3]", "a1"),
    ],
)
def test_a_host_is_the_target_where_the_error_is_one_of_a_host(code: str, message: str, target: str) -> None:
    assert target_of(code, message, "a1") == target


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("POST https://x.example/a/1?q=1 answered 503", "POST https://x.example/b answered 502"),
        ("record 'r1' is gone", "record 'another one' is gone"),
        ('value "a" is bad', 'value "b c" is bad'),
        ("run 01a22df4-0863-7793-a5ba-df1bea2caaa7", "run 01b22df4-0863-7793-a5ba-df1bea2caaaf"),
        ("order rec_9fK2x was late", "order rec_1234 was late"),
        ("at 2026-03-01T12:00:00.123Z", "at 2026-12-31 01:02:03+01:00"),
        ("no mailbox for ann@x.example", "no mailbox for bob.b@y.example"),
        ("waited 1.5 s", "waited 12 s"),
        ("Too  many", "too many"),
    ],
)
def test_what_differs_from_run_to_run_makes_no_difference(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)
    assert fingerprint("C", one, "t") == fingerprint("C", other, "t")


@pytest.mark.parametrize(
    "other",
    [("D", "it is broken", "t"), ("C", "it is gone", "t"), ("C", "it is broken", "u")],
)
def test_code_words_and_target_make_a_difference(other: tuple[str, str, str]) -> None:
    assert fingerprint(*other) != fingerprint("C", "it is broken", "t")


def test_words_with_apostrophes_are_not_taken_for_quotes() -> None:
    assert normalised("can't open: it doesn't exist") == "can't open: it doesn't exist"


def test_a_hostile_message_is_cheap_and_any_text_has_a_fingerprint() -> None:
    assert len(fingerprint("C", "'\"`@:/#-" * 100_000 + "\ud800", "\ud800")) == 16
    assert target_of("NET_EPIPE", "a" * 1_000_000, "a1") == "a1"
