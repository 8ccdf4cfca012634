"""The commands about alerts, run inside this process, on both databases."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from knockon.cli.app import make_app
from tests.alerts import Desk, opened_desk
from tests.people import audit_actions
from tests.receiver import Receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
Knockon = Callable[..., Result]


@pytest.fixture
def desk(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Desk]:
    with opened_desk(database_url, redis_url, data_dir=tmp_path) as opened:
        yield opened


@pytest.fixture
def knockon(desk: Desk, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Knockon:
    """Run a command against this test's servers; it must end with `code`."""
    monkeypatch.chdir(tmp_path)
    env = {
        "DATABASE_URL": database_url,
        "KNOCKON_DATA_DIR": str(tmp_path),
        "KNOCKON_WORKSPACE": "w1",
        "SMTP_HOST": "127.0.0.1",
        "SMTP_PORT": str(desk.settings.smtp_port),
        "SMTP_FROM": "robot@knockon.test",
        "SMTP_TLS": "none",
    }

    def run(*arguments: str, code: int = 0, stdin: str | None = None, allow_private: str = "true") -> Result:
        given = {**env, "WEBHOOK_ALLOW_PRIVATE": allow_private}
        result = CliRunner().invoke(make_app(["alerts"]), ["alerts", *arguments], env=given, input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


def document(result: Result) -> Any:
    return orjson.loads(result.stdout)


def test_troubles_are_listed_with_how_they_stand(knockon: Knockon, desk: Desk) -> None:
    assert document(knockon("list", "-o", "json")) == []
    desk.die(3)
    desk.wait(0)
    desk.die(2, message="is broken", automation="late")
    desk.post.is_cut = True
    desk.wait(1)
    first, second = document(knockon("list", "-o", "json"))
    assert (first["state"], first["count"], first["target"]) == ("ongoing", 2, desk.automations["late"])
    assert (second["count"], second["told"], second["messages"]) == (3, 3, 1)
    lines = knockon("list", "--limit", "1").stdout.splitlines()
    assert lines[0].split()[:5] == ["ID", "STATE", "COUNT", "LEFT", "TOLD"]
    assert lines[1].split()[:5] == [first["fingerprint"], "ongoing", "2", "0", "2"]
    assert " late " in lines[1]
    assert len(lines) == 2


def test_a_trouble_is_muted_by_its_fingerprint(knockon: Knockon, desk: Desk) -> None:
    desk.die(1)
    desk.wait(0)
    (listed,) = document(knockon("list", "-o", "json"))
    said = knockon("mute", listed["fingerprint"], "--for", "2h").stdout
    assert said.startswith("WEBHOOK_HTTP_RETRIABLE, dead.example: muted until ")
    assert document(knockon("list", "-o", "json"))[0]["state"] == "muted"
    assert knockon("mute", listed["id"], "--for", "0s").stdout.endswith("not muted\n")
    assert document(knockon("list", "-o", "json"))[0]["state"] == "ongoing"
    assert "there is no alert 'x'" in knockon("mute", "x", code=1).stderr
    assert "at most 366 days" in knockon("mute", listed["id"], "--for", "400d", code=1).stderr
    assert audit_actions(desk.backends)[-2:] == ["alert_group.muted"] * 2


def test_channels_are_added_tried_listed_and_removed(knockon: Knockon, desk: Desk, tmp_path: Path) -> None:
    with Receiver(tmp_path / "ledger", {"/bad": [500]}) as receiver:
        assert "there is nothing to test" in knockon("test", code=1).stderr
        knockon("channels", "add", "ops", receiver.url("/in?t=t0psecret"), "--secret", stdin=f"{SECRET}\n")
        assert "ok" in knockon("test", "--to", "ann@example.test").stdout
        knockon("channels", "add", "bad", receiver.url("/bad"))
        found = document(knockon("test", "-o", "json", code=1))
        assert {each["channel"]: (each["error"] or "")[:22] for each in found} == {
            "bad": "WEBHOOK_HTTP_RETRIABLE",
            "ops": "",
        }
        assert receiver.deliveries()[0].headers["webhook-signature"].startswith("v1,")
    assert desk.office.readers == ["ann@example.test"]
    shown = knockon("channels", "list").stdout
    assert "127.0.0.1" in shown
    assert "t0psecret" not in shown
    listed = document(knockon("channels", "list", "-o", "json"))
    assert [(each["name"], each["state"], each["signed"]) for each in listed] == [
        ("bad", "ok", False),
        ("ops", "ok", True),
    ]
    assert knockon("channels", "remove", "ops").stdout == "removed\n"
    assert "there is no channel 'ops'" in knockon("channels", "remove", "ops", code=1).stderr
    added, removed = ["alert_channel.added"] * 2, ["alert_channel.removed"]
    assert audit_actions(desk.backends) == [*added, *removed]


@pytest.mark.parametrize("url", ["ftp://files.example/x", "not a url", "https://a@b@chat.example/"])
def test_what_is_no_url_is_no_channel(knockon: Knockon, url: str) -> None:
    assert "URL" in knockon("channels", "add", "ops", url, code=1).stderr


def test_a_lost_key_hides_the_host_and_nothing_else(knockon: Knockon, desk: Desk, tmp_path: Path) -> None:
    knockon("channels", "add", "ops", "https://chat.example/in")
    (tmp_path / "secrets.key").unlink()
    (listed,) = document(knockon("channels", "list", "-o", "json"))
    assert (listed["name"], listed["state"], listed["host"]) == ("ops", "unreadable", None)


def test_a_channel_is_not_added_under_a_second_key(knockon: Knockon, tmp_path: Path) -> None:
    knockon("channels", "add", "ops", "https://chat.example/in")
    (tmp_path / "secrets.key").unlink()
    said = knockon("channels", "add", "two", "https://chat.example/in", code=1).stderr
    assert "channels ops (w1)" in said
    assert not (tmp_path / "secrets.key").exists()
    knockon("channels", "remove", "ops")
    knockon("channels", "add", "two", "https://chat.example/in")
    (listed,) = document(knockon("channels", "list", "-o", "json"))
    assert (listed["name"], listed["state"], listed["host"]) == ("two", "ok", "chat.example")


@pytest.mark.parametrize("to", ["junk", "a@b.example, c@d.example", ""])
def test_what_is_no_address_is_told_of_at_its_option(knockon: Knockon, to: str) -> None:
    told = knockon("test", "--to", to, code=2).output
    assert ("--to" in told, "address" in told) == (True, True)


@pytest.mark.parametrize("url", ["http://127.0.0.1/in", "http://localhost:9/in", "https://169.254.169.254/x"])
def test_a_channel_that_no_webhook_may_reach_is_refused_when_it_is_added(knockon: Knockon, url: str) -> None:
    said = knockon("channels", "add", "ops", url, code=1, allow_private="false").stderr
    assert "no webhook may reach this host" in said
    assert "ops" not in knockon("channels", "list").stdout
