"""Webhooks that are told of dead letters: signed, encrypted where they are stored, and marked when broken."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from shared.errors import ConfigError, Conflict, NotFound
from shared.secrets import make_seal
from shared.services.alerts import NewChannel, add_channel, remove_channel
from tests.alerts import Desk, opened_desk
from tests.people import CALLER, audit_actions
from tests.receiver import Receiver
from timers.alert_trials import Trials

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def desk(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Desk]:
    with opened_desk(database_url, redis_url, data_dir=tmp_path) as opened:
        with opened.backends.database.begin() as conn:
            conn.exec_driver_sql("DELETE FROM members WHERE role = 'admin'")
        yield opened


def add(desk: Desk, url: str, name: str = "ops", secret: str | None = SECRET) -> str:
    seal = make_seal(desk.settings)
    wanted = NewChannel(name, url, secret)
    return add_channel(desk.backends.database, desk.clock, seal, CALLER, wanted).id


def test_a_webhook_is_told_what_mail_is_told_and_can_verify_it(desk: Desk, tmp_path: Path) -> None:
    with Receiver(tmp_path / "ledger") as receiver:
        add(desk, receiver.url("/in?token=t0psecret"))
        desk.clock.advance(datetime.now(UTC) - desk.clock.now())
        desk.die(3)
        desk.wait(0)
        (delivery,) = receiver.deliveries()
    Webhook(SECRET).verify(delivery.body, dict(delivery.headers))
    told = json.loads(delivery.body)
    assert (told["type"], told["data"]["workspace_id"]) == ("alert.dead_letters", "w1")
    (part,) = told["data"]["parts"]
    assert (part["count"], part["more"], part["host"], part["state"]) == (3, 3, "dead.example", "new")
    assert told["text"].startswith("[knockon] dead.example: WEBHOOK_HTTP_RETRIABLE (3x)\n")
    assert delivery.webhook_id in {row.id for row in desk.rows("SELECT id FROM alert_sends")}
    assert len(desk.office.mails) == 1


def test_url_and_secret_are_stored_encrypted(desk: Desk) -> None:
    add(desk, "https://chat.example/T0/t0psecret")
    (row,) = desk.rows("SELECT * FROM alert_channels")
    assert "t0psecret" not in str(tuple(row))
    assert SECRET not in str(tuple(row))
    assert str(desk.rows("SELECT detail FROM audit")[0].detail).count("t0psecret") == 0


def test_a_webhook_that_fails_is_tried_again_then_broken_and_mended_by_a_success(
    desk: Desk, tmp_path: Path
) -> None:
    with Receiver(tmp_path / "ledger", {"/in": [500] * 10 + [200]}) as receiver:
        add(desk, receiver.url("/in"))
        desk.die(1)
        for minutes in (0, 1, 2, 4, 8, 16, 32, 60, 60):
            desk.wait(minutes)
        assert len(receiver.deliveries("/in")) == 8
        assert len({delivery.webhook_id for delivery in receiver.deliveries("/in")}) == 1
        desk.die(1)
        desk.wait(0)
        desk.wait(1)
        assert len(receiver.deliveries("/in")) == 10
        (channel,) = desk.rows("SELECT failures, broken_at FROM alert_channels")
        assert channel.failures == 10
        assert channel.broken_at is not None
        titles = [row.title for row in desk.rows("SELECT title FROM notifications ORDER BY id")]
        assert titles.count('Alert channel "ops" is broken') == 1
        assert audit_actions(desk.backends).count("alert_channel.broken") == 1
        desk.wait(2)
        assert len(receiver.deliveries("/in")) == 11
    (channel,) = desk.rows("SELECT failures, broken_at FROM alert_channels")
    assert tuple(channel) == (0, None)


def test_each_channel_is_told_as_if_there_were_no_other(desk: Desk, tmp_path: Path) -> None:
    with Receiver(tmp_path / "ledger") as receiver:
        desk.die(2)
        desk.wait(0)
        add(desk, receiver.url("/late"))
        desk.die(3)
        desk.wait(1)
        assert len(desk.office.mails) == 1
        (delivery,) = receiver.deliveries("/late")
        assert json.loads(delivery.body)["data"]["parts"][0]["more"] == 5
        desk.wait(9)
        assert len(desk.office.mails) == 2
        assert len(receiver.deliveries("/late")) == 1


def test_a_removed_channel_is_told_no_more(desk: Desk, tmp_path: Path) -> None:
    with Receiver(tmp_path / "ledger", {"/in": [500]}) as receiver:
        add(desk, receiver.url("/in"))
        desk.die(1)
        desk.wait(0)
        remove_channel(desk.backends.database, desk.clock, CALLER, "ops")
        desk.wait(1)
        assert len(receiver.deliveries("/in")) == 1
    rows = desk.rows("SELECT status FROM alert_sends WHERE channel = 'webhook'")
    assert [row.status for row in rows] == ["failed"]
    assert audit_actions(desk.backends)[-2:] == ["automation.dead_lettered", "alert_channel.removed"]


def test_a_channel_is_added_once_under_a_name_and_only_where_it_can_be(desk: Desk) -> None:
    add(desk, "https://chat.example/")
    with pytest.raises(Conflict):
        add(desk, "https://chat.example/")
    for name, secret in (("mail", None), ("", None), ("a b", None), ("x", "not base64!")):
        with pytest.raises(ConfigError):
            add(desk, "https://chat.example/", name, secret)
    with pytest.raises(NotFound):
        remove_channel(desk.backends.database, desk.clock, replace(CALLER, workspace_id="w2"), "ops")


def test_a_private_address_is_refused_unless_the_operator_allows_it(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    with opened_desk(database_url, redis_url, data_dir=tmp_path, webhook_allow_private=False) as desk:
        add(desk, "http://127.0.0.1:1/in")
        desk.die(1)
        desk.wait(0)
        (row,) = desk.rows("SELECT error FROM alert_sends WHERE channel = 'webhook'")
    assert row.error.startswith("WEBHOOK_BLOCKED")


def test_without_the_key_a_channel_fails_with_its_name_and_mail_goes_out(desk: Desk, tmp_path: Path) -> None:
    add(desk, "https://chat.example/t0psecret")
    (tmp_path / "secrets.key").unlink()
    desk.die(1)
    desk.wait(0)
    (row,) = desk.rows("SELECT error FROM alert_sends WHERE channel = 'webhook'")
    assert row.error.startswith("SECRET_UNREADABLE")
    assert len(desk.office.mails) == 1


def test_trials_send_a_sample_through_everything_and_tell_what_came_of_it(desk: Desk, tmp_path: Path) -> None:
    with Receiver(tmp_path / "ledger", {"/bad": [404]}) as receiver:
        add(desk, receiver.url("/in"), "good")
        add(desk, receiver.url("/bad"), "bad")
        with desk.backends.database.begin() as conn:
            conn.exec_driver_sql("UPDATE alert_channels SET failures = 12, broken_at = created_at")
        trials = Trials(desk.settings, desk.backends.database, desk.ways)
        found = {trial.channel: trial.error for trial in trials.run("w1", "ann@example.test")}
        assert len(receiver.deliveries()) == 2
    assert found["good"] is None
    assert found["mail"] is None
    assert (found["bad"] or "").startswith("WEBHOOK_HTTP_ERROR: POST http://127.0.0.1")
    assert desk.office.readers == ["ann@example.test"]
    assert "This is a test" in desk.office.mails[0].as_string()
    channels = desk.rows("SELECT name, failures FROM alert_channels ORDER BY name")
    assert [tuple(row) for row in channels] == [("bad", 12), ("good", 0)]
    assert [trial.error for trial in trials.run("w2", "no address")] == [
        "MAIL_BAD_ADDRESS: the member's address is no mail address"
    ]
