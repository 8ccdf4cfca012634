"""What the doctor says about alerts."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from knockon.doctor_alerts import examine_alerts
from knockon.findings import Level
from shared.seal_keys import write_seal_key
from shared.sealing import Seal
from shared.services.alerts import NewChannel, add_channel
from tests.alerts import NOBODYS_PORT, Desk, opened_desk
from tests.people import CALLER


@pytest.fixture
def desk(database_url: str, redis_url: str) -> Iterator[Desk]:
    with opened_desk(database_url, redis_url) as opened:
        opened.clock.advance(datetime.now(UTC) - opened.clock.now())
        yield opened


def found(desk: Desk, **changed: object) -> dict[str, tuple[Level, str]]:
    settings = desk.settings.model_copy(update=changed)
    findings = examine_alerts(desk.backends.database, settings)
    return {finding.subject: (finding.level, finding.text) for finding in findings}


def test_all_is_well_where_mail_is_reached_and_nothing_waits(desk: Desk) -> None:
    desk.die(1)
    assert {level for level, _ in found(desk).values()} == {Level.OK}
    assert found(desk, smtp_host=None)["mail"][0] is Level.OK


def test_a_mail_server_that_does_not_answer_is_told(desk: Desk) -> None:
    level, text = found(desk, smtp_port=NOBODYS_PORT)["mail"]
    assert level is Level.WARN
    assert text.startswith("127.0.0.1:1 cannot be reached")


def test_alerts_that_nobody_takes_care_of_are_told_at_each_stage(desk: Desk) -> None:
    desk.clock.advance(-timedelta(minutes=6))
    desk.die(1)
    assert found(desk)["alerts"] == (Level.WARN, "the first waits for 6 minutes")
    desk.post.is_cut = True
    desk.teller().tick()
    assert found(desk)["alerts"][0] is Level.WARN
    desk.post.is_cut = False
    desk.wait(2)
    assert found(desk)["alerts"][0] is Level.OK


def test_channels_that_no_key_opens_are_named(desk: Desk) -> None:
    lost = Seal([b"o" * 32])
    wanted = NewChannel("ops", "https://chat.example/in", None)
    add_channel(desk.backends.database, desk.clock, lost, CALLER, wanted)
    level, text = found(desk)["alert channels"]
    assert level is Level.FAIL
    assert text.startswith("ops (w1) cannot be decrypted with SECRETS_KEY or ")
    other = SecretStr(write_seal_key(b"n" * 32))
    level, text = found(desk, secrets_key=other)["alert channels"]
    assert (level, "the key of SECRETS_KEY" in text) == (Level.FAIL, True)
    right = SecretStr(write_seal_key(b"o" * 32))
    assert found(desk, secrets_key=right)["alert channels"][0] is Level.OK


def test_broken_channels_are_named(desk: Desk) -> None:
    desk.post.is_cut = True
    desk.die(1)
    for minutes in (0, 1, 2, 4, 8):
        desk.wait(minutes)
    assert found(desk)["alert channels"] == (Level.WARN, "broken: mail (w1)")
