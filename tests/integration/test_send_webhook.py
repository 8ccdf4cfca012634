"""SEND_WEBHOOK against a receiver on loopback: what arrives, who may see it, and what each answer means."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from executors.classify import classify_error
from executors.outbound import Outbound
from executors.send_webhook import send_webhook
from shared.errors import ActionError, FatalError, RetryableError
from shared.model.actions import SendWebhook
from tests.contexts import Trip, open_way_out
from tests.receiver import Delivery, Receiver, Script, Step, read_ledger

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
PRIVATE_NAMES = ("authorization", "x-api-key", "cookie", "webhook-signature")


@pytest.fixture
def http() -> Iterator[Outbound]:
    outbound = open_way_out()
    yield outbound
    outbound.close()


def ledger(tmp_path: Path, name: str = "ledger.jsonl") -> Path:
    return tmp_path / name


def refused(config: SendWebhook, trip: Trip) -> ActionError:
    with pytest.raises(ActionError) as caught:
        send_webhook(config, trip.context())
    return caught.value


def secretive(port: int) -> str:
    return f"http://user:pa55@127.0.0.1:{port}/h?token=t0ken"


def verify(secret: str, delivery: Delivery) -> None:
    Webhook(secret).verify(delivery.body, dict(delivery.headers), json_parse=False)


def test_the_trigger_event_is_sent_by_default(tmp_path: Path, http: Outbound) -> None:
    with Receiver(ledger(tmp_path), {"/h": [Step(201, body='{"ok":true}')]}) as receiver:
        event = {"type": "contact.updated", "payload": {"name": "Zoë 😀"}, "name": "Zoë 😀"}
        result = send_webhook(SendWebhook(url=receiver.url("/h?x=1")), Trip(http, event=event).context())
        (arrived,) = receiver.deliveries()
    assert result.output == {"status": 201, "host": "127.0.0.1", "path": "/h", "response": '{"ok":true}'}
    assert not result.effects
    assert (arrived.method, arrived.run_id, arrived.position) == ("POST", "0190-run", 1)
    assert json.loads(arrived.body) == event
    assert bytes.fromhex("5a6fc3ab20f09f9880") in arrived.body
    assert arrived.headers["content-type"] == "application/json"
    assert arrived.headers["x-knockon-entry-id"] == "1700000000000-3"
    assert arrived.headers["x-knockon-occurred-at"] == "2026-03-01T12:30:00.250+00:00"
    assert arrived.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert "webhook-signature" not in arrived.headers


@pytest.mark.parametrize(
    ("method", "body", "sent"),
    [
        ("POST", {"a": 1, "ü": None}, '{"a":1,"ü":null}'.encode()),
        ("PUT", [1, 2], b"[1,2]"),
        ("PATCH", "plain ü", "plain ü".encode()),
        ("POST", "", b""),
        ("POST", "\ud83d", b"?"),
        ("GET", None, b""),
        ("DELETE", None, b""),
        ("DELETE", {"id": 1}, b'{"id":1}'),
    ],
)
def test_a_configured_body_is_sent_as_it_is(
    tmp_path: Path, http: Outbound, method: str, body: Any, sent: bytes
) -> None:
    with Receiver(ledger(tmp_path)) as receiver:
        given = {"method": method, "body": body, "headers": {"X-A": "é"}, "content_type": "text/x"}
        config = SendWebhook(url=receiver.url("/h")).model_copy(update=given)
        send_webhook(config, Trip(http).context())
        (arrived,) = receiver.deliveries()
    assert (arrived.method, arrived.body) == (method, sent)
    assert arrived.headers["x-a"].encode("latin-1") == "é".encode()
    assert arrived.headers.get("content-type") == ("text/x" if sent else None)


def test_every_attempt_has_the_same_id_and_its_own_valid_signature(tmp_path: Path) -> None:
    http = open_way_out(SECRET)
    with Receiver(ledger(tmp_path), {"/h": [503, 429, 200]}) as receiver:
        config = SendWebhook(url=receiver.url("/h"), headers={"Webhook-Id": "forged"})
        assert isinstance(refused(config, Trip(http, attempt=1)), RetryableError)
        assert isinstance(refused(config, Trip(http, attempt=2)), RetryableError)
        assert send_webhook(config, Trip(http, attempt=3).context()).output["status"] == 200
        arrived = receiver.deliveries()
    http.close()
    assert {one.headers["webhook-id"] for one in arrived} == {"0190-run:1"}
    assert {one.headers["idempotency-key"] for one in arrived} == {"0190-run:1"}
    for one in arrived:
        verify(SECRET, one)
        assert abs(int(one.headers["webhook-timestamp"]) - one.at) < 5


def test_a_secret_of_the_action_goes_before_that_of_the_settings(tmp_path: Path) -> None:
    http = open_way_out(SECRET)
    with Receiver(ledger(tmp_path)) as receiver:
        send_webhook(SendWebhook(url=receiver.url("/h"), secret=OTHER_SECRET), Trip(http).context())
        both = SendWebhook.model_construct(
            url=receiver.url("/h"),
            method="POST",
            body="ü",
            headers={},
            content_type="text/plain",
            secret=f"{SECRET} {OTHER_SECRET}",
        )
        send_webhook(both, Trip(http).context())
        one, two = receiver.deliveries()
    http.close()
    verify(OTHER_SECRET, one)
    verify(SECRET, two)
    verify(OTHER_SECRET, two)


@pytest.mark.parametrize("secret", ["", "whsec_", "a", " "])
def test_a_secret_that_cannot_sign_is_fatal(tmp_path: Path, http: Outbound, secret: str) -> None:
    with Receiver(ledger(tmp_path)) as receiver:
        config = SendWebhook(url=receiver.url("/h")).model_copy(update={"secret": secret})
        error = refused(config, Trip(http))
        assert receiver.deliveries() == []
    assert isinstance(error, FatalError)
    assert error.code == "CONFIG_INVALID"


@pytest.mark.parametrize("status", [301, 302, 303])
@pytest.mark.parametrize("target", ["/login", "/a", "http://127.0.0.1/"])
def test_a_redirect_that_would_drop_the_body_is_fatal(
    tmp_path: Path, http: Outbound, status: int, target: str
) -> None:
    script: Script = {"/a": [Step(status, headers={"location": target})], "/login": [200]}
    with Receiver(ledger(tmp_path), script) as receiver:
        error = refused(SendWebhook(url=receiver.url("/a"), body=["x" * 200]), Trip(http))
        paths = [one.path for one in receiver.deliveries()]
    assert isinstance(error, FatalError)
    assert error.code == "WEBHOOK_HTTP_ERROR"
    assert str(status) in error.message
    assert paths == ["/a"]


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_that_keeps_the_body_is_followed(tmp_path: Path, status: int) -> None:
    http = open_way_out(SECRET)
    script: Script = {"/a": [Step(status, headers={"location": "/b"})]}
    with Receiver(ledger(tmp_path), script) as receiver:
        given = {"body": "x" * 200, "content_type": "text/plain"}
        config = SendWebhook(url=receiver.url("/a"), method="PUT", headers={"X-Api-Key": "k3y"}, **given)
        result = send_webhook(config, Trip(http).context())
        first, second = receiver.deliveries()
    http.close()
    assert (result.output["status"], result.output["path"]) == (200, "/b")
    assert (second.method, second.body, second.path) == ("PUT", b"x" * 200, "/b")
    assert second.webhook_id == first.webhook_id
    assert second.headers["x-api-key"] == "k3y"
    verify(SECRET, second)


def test_a_fourth_redirect_is_fatal(tmp_path: Path, http: Outbound) -> None:
    script: Script = {f"/{n}": [Step(307, headers={"location": f"/{n + 1}"})] for n in range(5)}
    with Receiver(ledger(tmp_path), script) as receiver:
        error = refused(SendWebhook(url=receiver.url("/0")), Trip(http))
        paths = [one.path for one in receiver.deliveries()]
        assert send_webhook(SendWebhook(url=receiver.url("/2")), Trip(http).context()).output["path"] == "/5"
    assert (error.code, "307" in error.message) == ("WEBHOOK_HTTP_ERROR", True)
    assert paths == ["/0", "/1", "/2", "/3"]


def test_a_redirect_loop_is_fatal(tmp_path: Path, http: Outbound) -> None:
    script: Script = {
        "/a": [Step(307, headers={"location": "/b"})],
        "/b": [Step(308, headers={"location": "/a"})],
    }
    with Receiver(ledger(tmp_path), script) as receiver:
        error = refused(SendWebhook(url=receiver.url("/a")), Trip(http))
        assert len(receiver.deliveries()) == 2
    assert isinstance(error, FatalError)
    assert (error.code, "308" in error.message) == ("WEBHOOK_HTTP_ERROR", True)


@pytest.mark.parametrize("location", ["ftp://h/", "http://[x]/", "http://a@b@c/", None])
def test_a_redirect_to_nowhere_is_fatal(tmp_path: Path, http: Outbound, location: str | None) -> None:
    step = Step(307, headers={"location": location} if location else {})
    with Receiver(ledger(tmp_path), {"/a": [step]}) as receiver:
        assert isinstance(refused(SendWebhook(url=receiver.url("/a")), Trip(http)), FatalError)


def test_another_host_sees_neither_secrets_nor_signature(tmp_path: Path) -> None:
    http = open_way_out(SECRET)
    with Receiver(ledger(tmp_path, "there")) as there:
        script: Script = {"/a": [Step(307, headers={"location": there.url("/b")})]}
        with Receiver(ledger(tmp_path, "here"), script) as here:
            url = here.url("/a").replace("http://", "http://user:pa55@")
            config = SendWebhook(url=url, headers={"X-Api-Key": "k3y", "Cookie": "s=1"}, body={"a": 1})
            send_webhook(config, Trip(http).context())
            (first,) = here.deliveries()
        (second,) = there.deliveries()
    http.close()
    assert first.headers["authorization"].startswith("Basic ")
    assert set(PRIVATE_NAMES) <= set(first.headers)
    assert not set(PRIVATE_NAMES) & set(second.headers)
    assert second.body == b'{"a":1}'
    assert second.webhook_id == first.webhook_id


@pytest.mark.parametrize(
    ("status", "retry_after", "code", "wait_s"),
    [
        (500, None, "WEBHOOK_HTTP_RETRIABLE", None),
        (503, "7", "WEBHOOK_HTTP_RETRIABLE", 7),
        (429, "999999999", "WEBHOOK_HTTP_RETRIABLE", 600),
        (429, "-1", "WEBHOOK_HTTP_RETRIABLE", 0),
        (429, "Fri, 31 Dec 2100 23:59:59 GMT", "WEBHOOK_HTTP_RETRIABLE", 600),
        (429, "nonsense", "WEBHOOK_HTTP_RETRIABLE", None),
        (408, None, "WEBHOOK_HTTP_RETRIABLE", None),
        (425, None, "WEBHOOK_HTTP_RETRIABLE", None),
        (400, "7", "WEBHOOK_HTTP_ERROR", None),
        (404, None, "WEBHOOK_HTTP_ERROR", None),
        (410, None, "WEBHOOK_HTTP_ERROR", None),
    ],
)
def test_a_status_decides(
    tmp_path: Path, http: Outbound, status: int, retry_after: str | None, code: str, wait_s: int | None
) -> None:
    step = Step(status, headers={"retry-after": retry_after} if retry_after else {}, body="b0dy")
    with Receiver(ledger(tmp_path), {"/h": [step]}) as receiver:
        error = refused(SendWebhook(url=receiver.url("/h")), Trip(http))
    verdict = classify_error(error)
    assert (verdict.code, verdict.retryable) == (code, code == "WEBHOOK_HTTP_RETRIABLE")
    assert (
        verdict.retry_after.total_seconds() if verdict.retry_after else verdict.retry_after
    ) == wait_s or (wait_s == 0 and verdict.retry_after is not None)
    assert str(status) in verdict.message
    assert "b0dy" not in verdict.message


def test_errors_show_neither_credentials_nor_query(tmp_path: Path, http: Outbound) -> None:
    with Receiver(ledger(tmp_path), {"/h": [404]}) as receiver:
        messages = [refused(SendWebhook(url=secretive(receiver.port)), Trip(http)).message]
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionError) as caught:
            send_webhook(SendWebhook(url=secretive(bound.getsockname()[1])), Trip(http).context())
    messages.append(classify_error(caught.value).message)
    for message in messages:
        assert "http://127.0.0.1:" in message
        assert "/h" in message
        assert "pa55" not in message
        assert "t0ken" not in message


def test_many_threads_share_one_way_out(tmp_path: Path, http: Outbound) -> None:
    with Receiver(ledger(tmp_path)) as receiver:
        config = SendWebhook(url=receiver.url("/h"), body={})
        trips = [Trip(http, run_id=f"r{number}") for number in range(24)]
        threads = [threading.Thread(target=send_webhook, args=(config, trip.context())) for trip in trips]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert sorted(one.run_id for one in receiver.deliveries()) == sorted(trip.run_id for trip in trips)


def test_the_ledger_leaves_out_a_line_that_is_not_whole(tmp_path: Path, http: Outbound) -> None:
    with Receiver(ledger(tmp_path)) as receiver:
        send_webhook(
            SendWebhook(url=receiver.url("/h"), body="\x7f", content_type="text/plain"), Trip(http).context()
        )
    with receiver.ledger.open("a") as file:
        file.write('{"run_id": "torn')
    assert [one.body for one in read_ledger(receiver.ledger)] == [b"\x7f"]
