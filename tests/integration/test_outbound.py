"""The guarded way out against a hostile other side: time, size, addresses."""

import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
import trustme

from executors.classify import Classification, classify_error
from executors.deadline import Deadline
from executors.outbound import Answer, Network, Outbound, OutboundPolicy, OutboundRequest
from executors.send_webhook import send_webhook
from executors.targets import parse_target
from shared.model.actions import SendWebhook
from shared.time.clock import SystemClock
from tests.contexts import Trip, guarded_way_out, open_way_out
from tests.raw_server import Exchange, Mode, RawServer
from tests.receiver import Receiver, Script, Step
from tests.waiting import poll
from tests.wires import OTHER_PUBLIC, PUBLIC, FakeNames, FakeWire

HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def http() -> Iterator[Outbound]:
    outbound = open_way_out()
    yield outbound
    outbound.close()


def fetch(http: Outbound, url: str, timeout_s: float = 10.0, body: bytes = b"") -> Answer:
    request = OutboundRequest("POST", parse_target(url), {}, body)
    return http.exchange(request, Deadline.after(SystemClock(), timedelta(seconds=timeout_s)))


def verdict(act: Callable[[], object]) -> Classification:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever it is, it is judged
        act()
    return classify_error(caught.value)


def hang(exchange: Exchange) -> None:
    exchange.hang()


def drip_head(exchange: Exchange) -> None:
    exchange.drip(HEAD + b"x-slow: ")


def drip_body(exchange: Exchange) -> None:
    exchange.send(HEAD + b"content-length: 100000\r\n\r\n")
    exchange.drip(b"")


def drip_hints(exchange: Exchange) -> None:
    while not exchange.stopping.wait(0.02):
        exchange.send(b"HTTP/1.1 103 Early Hints\r\n\r\n")


@pytest.mark.parametrize("mode", [hang, drip_head, drip_body, drip_hints])
def test_no_trick_outlives_the_deadline(http: Outbound, mode: Mode) -> None:
    with RawServer({"/": mode}) as server:
        started = time.monotonic()
        found = verdict(lambda: fetch(http, server.url("/"), timeout_s=0.5))
        assert time.monotonic() - started < 2
    assert (found.code, found.retryable) == ("ACTION_TIMEOUT", False)


def test_a_receiver_that_does_not_read_does_not_hold_the_sender(http: Outbound) -> None:
    with RawServer({"/unread": hang}) as server:
        started = time.monotonic()
        found = verdict(lambda: fetch(http, server.url("/unread"), timeout_s=0.5, body=b"x" * 50_000_000))
        assert time.monotonic() - started < 2
    assert found.code == "ACTION_TIMEOUT"


def reset_in_body(exchange: Exchange) -> None:
    exchange.send(HEAD + b"content-length: 10\r\n\r\nabc")
    exchange.reset()


def reset_at_once(exchange: Exchange) -> None:
    exchange.reset()


def close_at_once(exchange: Exchange) -> None:
    """Return, which closes."""


def close_in_body(exchange: Exchange) -> None:
    exchange.send(HEAD + b"content-length: 10\r\n\r\nabc")


@pytest.mark.parametrize("mode", [reset_in_body, reset_at_once, close_at_once, close_in_body])
def test_an_answer_that_breaks_off_is_retried(http: Outbound, mode: Mode) -> None:
    with RawServer({"/": mode}) as server:
        found = verdict(lambda: fetch(http, server.url("/")))
    assert (found.code, found.retryable) == ("NET_ECONNRESET", True)


def test_a_closed_port_is_retried(http: Outbound) -> None:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        found = verdict(lambda: fetch(http, f"http://127.0.0.1:{bound.getsockname()[1]}/p?q=s3cret"))
    assert (found.code, found.retryable) == ("NET_ECONNREFUSED", True)
    assert "s3cret" not in found.message


def many_headers(exchange: Exchange) -> None:
    exchange.send(HEAD + b"".join(b"x-%d: y\r\n" % number for number in range(100_000)))


def garbage(exchange: Exchange) -> None:
    exchange.send(b"\0\xff\xfe not http\r\n\r\n")


@pytest.mark.parametrize("mode", [many_headers, garbage])
def test_what_is_not_http_is_fatal(http: Outbound, mode: Mode) -> None:
    with RawServer({"/": mode}) as server:
        found = verdict(lambda: fetch(http, server.url("/")))
    assert (found.code, found.retryable) == ("UNEXPECTED", False)


def test_tls_with_a_plain_server_is_fatal(http: Outbound) -> None:
    with Receiver(Path("/dev/null")) as receiver:
        found = verdict(lambda: fetch(http, f"https://127.0.0.1:{receiver.port}/"))
    assert (found.code, found.retryable) == ("UNEXPECTED", False)


def test_a_huge_body_is_cut_and_the_connection_dropped(http: Outbound) -> None:
    sent = threading.Event()

    def flood(exchange: Exchange) -> None:
        exchange.send(HEAD + b"content-length: 1000000000\r\n\r\n")
        try:
            for _ in range(1000):
                exchange.send(b"x" * 1_000_000)
        except OSError:
            sent.set()

    with RawServer({"/": flood}) as server:
        answer = fetch(http, server.url("/"))
        poll(sent.is_set)
    assert (answer.status, len(answer.body), answer.is_cut) == (200, 65536, True)


def test_a_gzip_bomb_stays_packed(http: Outbound) -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = packer.compress(bytes(50_000_000)) + packer.flush()

    def send_bomb(exchange: Exchange) -> None:
        exchange.send(HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb) + bomb)

    with RawServer({"/": send_bomb}) as server:
        result = send_webhook(SendWebhook(url=server.url("/")), Trip(http).context())
        assert "accept-encoding: identity" in server.exchanges[0].head.lower()
    assert result.output["response"] == "(gzip body)"


def test_bytes_that_are_no_text_stay_storable(http: Outbound) -> None:
    def send_bytes(exchange: Exchange) -> None:
        exchange.send(HEAD + b"content-length: 3\r\n\r\n\x00\xff\xfe")

    with RawServer({"/": send_bytes}) as server:
        result = send_webhook(SendWebhook(url=server.url("/")), Trip(http).context())
    assert result.output["response"] == "\ufffd\ufffd\ufffd"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "0",
        "2130706433",
        "0x7f.1",
        "017700000001",
        "127.0.0.1.",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[fe81::1]",
        "[fd00::1]",
        "169.254.169.254",
        "public.example@127.0.0.1",
        "localhost",
        "localhost.",
    ],
)
def test_no_spelling_reaches_a_private_address(tmp_path: Path, host: str) -> None:
    wire = FakeWire(1)
    http = guarded_way_out(Network(wire=wire))
    with Receiver(tmp_path / "ledger") as receiver:
        port = f":{receiver.port}"
        found = verdict(lambda: send_webhook(SendWebhook(url=f"http://{host}{port}/"), Trip(http).context()))
        assert receiver.connections == 0
    http.close()
    assert (found.code, found.retryable) == ("WEBHOOK_BLOCKED", False)
    assert wire.dialled == []


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], [PUBLIC, "10.0.0.1"], [PUBLIC, "::1"], ["fe80::1%eth0"], ["169.254.169.254", PUBLIC]],
)
def test_one_private_answer_refuses_the_name(addresses: list[str]) -> None:
    wire = FakeWire(1)
    http = guarded_way_out(Network(FakeNames([addresses]), wire))
    found = verdict(lambda: fetch(http, "http://redis:6379/"))
    http.close()
    assert found.code == "WEBHOOK_BLOCKED"
    assert wire.dialled == []


def test_the_checked_address_is_dialled_and_each_attempt_is_checked_anew(tmp_path: Path) -> None:
    names = FakeNames([[PUBLIC], ["127.0.0.1"]])
    with Receiver(tmp_path / "ledger") as receiver:
        wire = FakeWire(receiver.port)
        http = guarded_way_out(Network(names, wire))
        config = SendWebhook(url="http://Shop.Example/h")
        send_webhook(config, Trip(http).context())
        found = verdict(lambda: send_webhook(config, Trip(http).context()))
        (arrived,) = receiver.deliveries()
    http.close()
    assert found.code == "WEBHOOK_BLOCKED"
    assert names.asked == ["shop.example"] * 2
    assert wire.dialled == [(PUBLIC, 80)]
    assert arrived.headers["host"] == "shop.example"


def test_a_redirect_to_a_private_address_is_refused(tmp_path: Path) -> None:
    with Receiver(tmp_path / "private") as private:
        script: Script = {"/a": [Step(307, headers={"location": private.url("/b")}, body="s3cret")]}
        with Receiver(tmp_path / "ledger", script) as receiver:
            http = guarded_way_out(Network(FakeNames([[PUBLIC]]), FakeWire(receiver.port)))
            config = SendWebhook(url="http://shop.example/a")
            found = verdict(lambda: send_webhook(config, Trip(http).context()))
            http.close()
        assert private.connections == 0
    assert (found.code, found.retryable) == ("WEBHOOK_BLOCKED", False)
    assert "127.0.0.1" in found.message
    assert "s3cret" not in found.message


def test_each_exchange_dials_the_address_of_its_own_lookup(tmp_path: Path) -> None:
    names = FakeNames([[PUBLIC], [PUBLIC], [OTHER_PUBLIC], [OTHER_PUBLIC]])
    with Receiver(tmp_path / "ledger") as receiver:
        wire = FakeWire(receiver.port)
        http = guarded_way_out(Network(names, wire))
        for host in ("a.example", "a.example", "a.example", "b.example"):
            assert fetch(http, f"http://{host}/").status == 200
        http.close()
    assert wire.dialled == [(PUBLIC, 80), (PUBLIC, 80), (OTHER_PUBLIC, 80), (OTHER_PUBLIC, 80)]


def test_the_next_address_is_tried_when_one_does_not_answer(tmp_path: Path) -> None:
    with Receiver(tmp_path / "ledger") as receiver:
        wire = FakeWire(receiver.port, dead=frozenset({PUBLIC}))
        http = guarded_way_out(Network(FakeNames([[PUBLIC, OTHER_PUBLIC]]), wire))
        assert fetch(http, "http://a.example/", body=b"once").status == 200
        http.close()
        assert [one.body for one in receiver.deliveries()] == [b"once"]


def test_a_name_without_address_is_fatal_and_a_resolver_that_is_busy_is_retried() -> None:
    unknown = socket.gaierror(socket.EAI_NONAME, "unknown")
    busy = socket.gaierror(socket.EAI_AGAIN, "later")
    http = guarded_way_out(Network(FakeNames([unknown, [], busy]), FakeWire(1)))
    found = [verdict(lambda: fetch(http, "http://a.example/")) for _ in range(3)]
    http.close()
    assert [one.code for one in found] == ["WEBHOOK_UNRESOLVABLE", "WEBHOOK_UNRESOLVABLE", "NET_EAI_AGAIN"]
    assert [one.retryable for one in found] == [False, False, True]


def test_a_lookup_that_hangs_ends_with_the_deadline() -> None:
    release = threading.Event()

    def hanging(host: str, port: int) -> Sequence[str]:
        release.wait(10)
        return [PUBLIC]

    http = guarded_way_out(Network(hanging, FakeWire(1)))
    found = [verdict(lambda: fetch(http, "http://a.example/", timeout_s=0.05)) for _ in range(20)]
    release.set()
    http.close()
    assert {one.code for one in found} == {"ACTION_TIMEOUT"}


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_proxies_of_the_environment_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with Receiver(tmp_path / "proxy") as proxy, Receiver(tmp_path / "ledger") as receiver:
        monkeypatch.setenv(name, proxy.url())
        http = open_way_out()
        assert fetch(http, receiver.url("/h")).status == 200
        http.close()
        assert proxy.connections == 0


def test_tls_verifies_the_name_of_the_url_at_the_checked_address() -> None:
    authority = trustme.CA()
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("shop.example").configure_cert(server_side)
    asked: list[str | None] = []
    server_side.sni_callback = lambda _sock, name, _context: asked.append(name)

    def over_tls(exchange: Exchange) -> None:
        exchange.send(HEAD + b"content-length: 2\r\n\r\nok")

    with RawServer({"/": over_tls}) as server:
        server.wrap_with(server_side)
        trusting = ssl.create_default_context()
        authority.configure_trust(trusting)
        wire = FakeWire(server.port)
        http = Outbound(OutboundPolicy(), SystemClock(), Network(FakeNames([[PUBLIC]]), wire, trusting))
        answer = fetch(http, "https://shop.example/")
        wrong = verdict(lambda: fetch(http, "https://other.example/"))
        untrusting = guarded_way_out(Network(FakeNames([[PUBLIC]]), wire))
        unknown = verdict(lambda: fetch(untrusting, "https://shop.example/"))
        http.close()
        untrusting.close()
        assert "host: shop.example" in server.exchanges[0].head.lower()
    assert (answer.status, answer.body) == (200, b"ok")
    assert asked[:2] == ["shop.example", "other.example"]
    assert (wrong.code, unknown.code) == ("UNEXPECTED", "UNEXPECTED")
    assert "CERTIFICATE_VERIFY_FAILED" in wrong.message
    assert wire.dialled[0] == (PUBLIC, 443)


def test_bytes_behind_an_answer_are_not_the_next_answer(http: Outbound) -> None:
    def surplus(exchange: Exchange) -> None:
        fake = HEAD + b"content-length: 4\r\n\r\nfake"
        exchange.send(HEAD + b"content-length: 2\r\n\r\nok" + fake)
        exchange.hang()

    def failing(exchange: Exchange) -> None:
        exchange.send(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")

    with RawServer({"/surplus": surplus, "/failing": failing}) as server:
        assert fetch(http, server.url("/surplus")).body == b"ok"
        assert fetch(http, server.url("/failing")).status == 500
