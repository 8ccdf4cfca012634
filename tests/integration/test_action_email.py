"""SEND_EMAIL against a mail server on loopback: what arrives, and what each of its answers means."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
import trustme

from executors.classify import classify_error
from executors.deadline import Deadline
from executors.letters import Letter, compose
from executors.outbound import Outbound
from executors.send_email import send_email
from executors.smtp import Mailer, MailNetwork, open_mailer
from executors.smtp_session import MailServer
from pipeline.engine import Engine
from shared.errors import ActionError, FatalError, RetryableError
from shared.model.actions import SendEmail
from shared.settings import Settings, SmtpTls
from shared.time.clock import SystemClock
from tests.acting import Stage, action
from tests.contexts import OCCURRED_AT, Trip, open_way_out
from tests.mail_server import opened_office
from tests.rooms import OpenRoom, start, tree

SENDER = "Knockon <robot@knockon.test>"
PLAIN = {"to": "ada@example.test", "subject": "Hello", "body": "Dear Ada"}


@pytest.fixture
def http() -> Iterator[Outbound]:
    outbound = open_way_out()
    yield outbound
    outbound.close()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def mailer(
    port: int, tls: SmtpTls = SmtpTls.NONE, trust: ssl.SSLContext | None = None, **keys: Any
) -> Mailer:
    """Make a mailer to loopback, by the name that certificates have here."""
    server = MailServer("mail.example.test", port, tls, SENDER, **keys)
    return Mailer(server, MailNetwork(lambda host, port: ["127.0.0.1"], trust))


def serving(authority: trustme.CA, name: str = "mail.example.test") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def refused(mail: Mailer, http: Outbound, timeout_s: float = 10, **config: Any) -> ActionError:
    with pytest.raises(ActionError) as caught:
        send_email(SendEmail(**{**PLAIN, **config}), Trip(http, mail=mail, timeout_s=timeout_s).context())
    return caught.value


def test_a_mail_arrives_with_all_that_it_needs(http: Outbound) -> None:
    with opened_office() as (office, port):
        config = SendEmail(
            to=["Zoë, the one <ada@example.test>", "bob@bücher.example"],
            cc="cora@example.test",
            bcc=["dan@example.test", "ada@example.test"],
            reply_to="desk@example.test",
            subject="Grüße",
            body="Dear Ada,\n.\nFrom here 😀\n",
            html="<p>Dear Ada</p>",
        )
        result = send_email(config, Trip(http, mail=mailer(port), position=2).context())
    [mail] = office.mails
    assert office.envelopes == [
        (
            "robot@knockon.test",
            ["ada@example.test", "bob@xn--bcher-kva.example", "cora@example.test", "dan@example.test"],
        )
    ]
    assert mail["From"] == SENDER
    assert [each.addr_spec for each in mail["To"].addresses] == [
        "ada@example.test",
        "bob@xn--bcher-kva.example",
    ]
    assert mail["To"].addresses[0].display_name == "Zoë, the one"
    assert (mail["Cc"], mail["Reply-To"], mail["Bcc"]) == ("cora@example.test", "desk@example.test", None)
    assert (mail["Subject"], mail["Message-ID"]) == ("Grüße", "<0190-run.2@knockon.test>")
    assert (mail["Auto-Submitted"], mail["X-Auto-Response-Suppress"]) == ("auto-generated", "All")
    assert parsedate_to_datetime(mail["Date"]).utcoffset() == timedelta(0)
    plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert plain.get_content().replace("\r\n", "\n") == "Dear Ada,\n.\nFrom here 😀\n"
    assert html.get_content().strip() == "<p>Dear Ada</p>"
    assert office.contents[0].isascii()
    assert result.output == {"messageId": "<0190-run.2@knockon.test>", "recipients": 4}


@pytest.mark.parametrize("text", ["x\r\nBcc: all@example.test", "x\nX-Evil: 1", "x\x00y", "x\u2028y"])
def test_no_line_is_smuggled_into_the_headers(text: str) -> None:
    for key in ("subject", "to", "cc", "reply_to"):
        with pytest.raises(ValueError, match=key):
            SendEmail(**{**PLAIN, key: f"Ada {text} <a@example.test>" if key != "subject" else text})


@pytest.mark.parametrize("text", ["x\nBcc: b", "x\r\n\r\nbody", "x\u2028y"])
def test_what_breaks_a_header_is_refused_when_it_is_written(text: str) -> None:
    with pytest.raises(FatalError, match="CONFIG_INVALID"):
        compose(Letter(SENDER, ("a@example.test",), text, "b", OCCURRED_AT, "<1@x>"))


def test_some_recipients_may_be_refused(http: Outbound) -> None:
    replies = {"bob@example.test": "550 5.1.1 no such user", "eve@example.test": "451 later"}
    with opened_office(replies) as (office, port):
        config = SendEmail(**{**PLAIN, "to": ["ada@example.test", *replies]})
        result = send_email(config, Trip(http, mail=mailer(port)).context())
    assert office.envelopes == [("robot@knockon.test", ["ada@example.test"])]
    assert (result.output["recipients"], result.output["refused"]) == (1, replies)


@pytest.mark.parametrize(
    ("replies", "code", "said"),
    [
        ({"ada@example.test": "550 no such user"}, "MAIL_REFUSED", "550 no such user"),
        ({"ada@example.test": "450 greylisted"}, "MAIL_TEMPORARY", "450 greylisted"),
        ({"ada@example.test": "421 closing"}, "MAIL_TEMPORARY", "421 closing"),
        ({"DATA": "554 5.7.1 spam"}, "MAIL_REFUSED", "554 5.7.1 spam"),
        ({"DATA": "452 full"}, "MAIL_TEMPORARY", "452 full"),
    ],
)
def test_the_answer_decides(http: Outbound, replies: dict[str, str], code: str, said: str) -> None:
    with opened_office(replies) as (office, port):
        error = refused(mailer(port), http)
    assert (error.code, said in error.message, office.mails) == (code, True, [])
    assert isinstance(error, RetryableError) is (code == "MAIL_TEMPORARY")


def test_recipients_of_whom_one_is_refused_for_good_are_not_tried_again(http: Outbound) -> None:
    with opened_office({"a@x.test": "450 later", "b@x.test": "550 never"}) as (_, port):
        assert refused(mailer(port), http, to=["a@x.test", "b@x.test"]).code == "MAIL_REFUSED"


@pytest.mark.parametrize("tls", [SmtpTls.STARTTLS, SmtpTls.TLS])
def test_mail_goes_under_tls_to_whom_the_certificate_names(
    http: Outbound, authority: trustme.CA, tls: SmtpTls
) -> None:
    offered: dict[str, Any] = (
        {"tls": serving(authority)} if tls is SmtpTls.STARTTLS else {"ssl_context": serving(authority)}
    )
    with opened_office(**offered) as (office, port):
        send_email(SendEmail(**PLAIN), Trip(http, mail=mailer(port, tls, trusting(authority))).context())
        stranger = refused(mailer(port, tls), http)
    assert len(office.mails) == 1
    assert office.was_tls == [True] or tls is SmtpTls.TLS
    assert (stranger.code, isinstance(stranger, FatalError)) == ("MAIL_TLS", True)


def test_a_certificate_of_another_name_is_refused(http: Outbound, authority: trustme.CA) -> None:
    with opened_office(tls=serving(authority, "other.example.test")) as (office, port):
        error = refused(mailer(port, SmtpTls.STARTTLS, trusting(authority)), http)
    assert (error.code, office.mails) == ("MAIL_TLS", [])


def test_a_server_without_starttls_gets_no_mail(http: Outbound) -> None:
    with opened_office() as (office, port):
        assert refused(mailer(port, SmtpTls.STARTTLS), http).code == "MAIL_TLS"
        assert refused(mailer(port, SmtpTls.NONE, user="u", password="right"), http).code == "MAIL_AUTH"
    assert office.mails == []


def test_who_logs_in_is_checked_and_never_shown(http: Outbound) -> None:
    with opened_office(asks_login=True) as (office, port):
        send_email(
            SendEmail(**PLAIN), Trip(http, mail=mailer(port, user="robot", password="right")).context()
        )
        error = refused(mailer(port, user="robot", password="wr0ng"), http)
    assert (len(office.mails), office.logins[0]) == (1, ("robot", "right"))
    assert (error.code, isinstance(error, FatalError)) == ("MAIL_AUTH", True)
    assert "wr0ng" not in error.message
    assert "wr0ng" not in repr(MailServer("h", 1, SmtpTls.NONE, SENDER, "u", "wr0ng"))


def test_a_server_that_is_not_there_is_tried_again(http: Outbound) -> None:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        error = refused(mailer(bound.getsockname()[1]), http)
    assert (error.code, isinstance(error, RetryableError)) == ("NET_ECONNREFUSED", True)
    nowhere = Mailer(MailServer("gone.test", 25, SmtpTls.NONE, SENDER), MailNetwork(lambda host, port: []))
    assert classify_error(refused(nowhere, http)).code == "MAIL_TEMPORARY"


@contextmanager
def speaking(*lines: bytes, every_s: float = 0) -> Iterator[int]:
    """Serve one connection at a time: greet with these lines, then wait until the other side hangs up."""
    ending = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with closing(connection):
                for line in lines:
                    connection.sendall(line)
                    if ending.wait(every_s):
                        return
                if every_s:
                    ending.wait(10)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ending.set()
            thread.join(10)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ((b"554 go away\r\n",), "MAIL_REFUSED"),
        ((b"421 busy\r\n",), "MAIL_TEMPORARY"),
        ((b"220 hello\r\n",), "MAIL_TEMPORARY"),
        ((b"SSH-2.0-x\r\n",), "MAIL_REFUSED"),
        ((), "MAIL_TEMPORARY"),
    ],
)
def test_a_greeting_that_is_none(http: Outbound, lines: tuple[bytes, ...], code: str) -> None:
    with speaking(*lines) as port:
        found = classify_error(refused(mailer(port), http))
    assert (found.code, found.retryable) in {(code, code == "MAIL_TEMPORARY"), ("NET_ECONNRESET", True)}


@pytest.mark.parametrize("lines", [(b"2",) * 40, (b"220-more\r\n",) * 40])
def test_the_deadline_is_a_total_however_slowly_the_server_drips(
    http: Outbound, lines: tuple[bytes, ...]
) -> None:
    clock = SystemClock()
    begun = clock.monotonic()
    with speaking(*lines, every_s=0.1) as port:
        error = refused(mailer(port), http, timeout_s=0.6)
    assert (error.code, isinstance(error, FatalError)) == ("ACTION_TIMEOUT", True)
    assert clock.monotonic() - begun < 3


def test_a_sender_that_is_no_address_is_named(http: Outbound) -> None:
    mail = Mailer(MailServer("mail.example.test", 25, SmtpTls.NONE, "Zoë <zoë@knockon.test>"))
    error = refused(mail, http)
    assert (error.code, "SMTP_FROM" in error.message) == ("CONFIG_INVALID", True)


def test_without_a_server_nothing_is_sent(http: Outbound) -> None:
    assert refused(open_mailer(Settings()), http).code == "MAIL_NOT_CONFIGURED"


def test_the_mailer_is_made_from_the_settings() -> None:
    with opened_office(asks_login=True) as (office, port):
        mail = open_mailer(
            Settings.model_validate(
                {
                    "smtp_host": "127.0.0.1",
                    "smtp_port": port,
                    "smtp_tls": "none",
                    "smtp_from": SENDER,
                    "smtp_user": "u",
                    "smtp_password": "right",
                }
            )
        )
        message = compose(Letter(mail.sender, ("a@x.test",), "s", "b", OCCURRED_AT, "<1@x>"))
        mail.send(message, Deadline.after(SystemClock(), timedelta(seconds=5)))
    assert (len(office.mails), office.logins) == (1, [("u", "right")])


def test_a_run_sends_its_mail_and_tries_again_what_passes(open_here: OpenRoom, engines: list[Engine]) -> None:
    written = action(
        "SEND_EMAIL", to="{{ emails }}", subject="For {{ name }}", body="{{ name }}", html="<b>{{ name }}</b>"
    )
    on = {"emails": ["ada@example.test", "bob@example.test"], "name": "A & <i>B</i>"}
    with opened_office({"late@example.test": "450 later"}) as (office, port):
        room = open_here(smtp_host="127.0.0.1", smtp_port=port, smtp_tls="none", smtp_from=SENDER)
        stage = Stage(room, start(room, engines))
        row = stage.acts(written, on=on)
        late = stage.acts({**written, "retries": 1}, on={**on, "emails": "late@example.test"})
        bad = stage.acts(written, on={**on, "emails": ["no address"]})
    [mail] = office.mails
    assert (row.status, stage.outputs(row)["1"]["recipients"]) == ("SUCCEEDED", 2)
    assert mail["Message-ID"] == f"<{row.id}.1@knockon.test>"
    html, plain = mail.get_body(("html",)), mail.get_body(("plain",))
    assert html is not None
    assert plain is not None
    assert html.get_content().strip() == "<b>A &amp; &lt;i&gt;B&lt;/i&gt;</b>"
    assert plain.get_content().strip() == "A & <i>B</i>"
    assert (late.status, late.retry_count, tree(late.error)["code"]) == ("PENDING", 1, "MAIL_TEMPORARY")
    assert stage.failure(bad) == "CONFIG_INVALID"


def test_recipients_that_were_not_taken_are_warned_of(open_here: OpenRoom, engines: list[Engine]) -> None:
    replies = {"late@example.test": "451 later", "none@example.test": "550 no such user"}
    with opened_office(replies) as (office, port):
        room = open_here(smtp_host="127.0.0.1", smtp_port=port, smtp_tls="none", smtp_from=SENDER)
        stage = Stage(room, start(room, engines))
        row = stage.acts(action("SEND_EMAIL", to=["ada@example.test", *replies], subject="s", body="b"))
    assert (row.status, len(office.mails)) == ("SUCCEEDED", 1)
    lines = room.all("SELECT message, data FROM automation_logs WHERE level = 'warning' ORDER BY id")
    assert [(line.message, tree(line.data)) for line in lines] == [
        (
            f"action 1/1 SEND_EMAIL the mail server {did} a recipient; it is not tried again",
            {"recipient": address, "said": replies[address]},
        )
        for did, address in (("put off", "late@example.test"), ("refused", "none@example.test"))
    ]
