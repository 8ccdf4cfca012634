"""Dead letters told outside the inbox: one trouble is one group, and a flood of it is two mails."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from shared.db.alert_groups import list_groups
from shared.db.alerts import AUTOMATIONS_KEPT, Alert, fold_alerts, insert_alerts
from shared.errors import NotFound, RetryableError
from shared.model.roles import Role
from shared.process import StopFlag
from shared.secrets import make_seal
from shared.services.alerts import NewChannel, add_channel, mute_alerts
from tests.alerts import Desk, add_people, opened_desk
from tests.listening import capture_logs
from tests.people import CALLER, audit_actions
from tests.receiver import Receiver
from tests.waiting import poll
from timers.alert_choices import title_of

OLGA = "olga@example.test"
ADAM = "adam@example.test"


class Killed(BaseException):
    """Stands for the death of the process: nothing catches it."""


@pytest.fixture
def desk(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Desk]:
    with opened_desk(database_url, redis_url, data_dir=tmp_path) as opened:
        yield opened


def body(desk: Desk, at: int = -1, to: str = OLGA) -> str:
    part = desk.office.to(to)[at].get_body(("plain",))
    assert part is not None
    text: str = part.get_content()
    return text


def test_a_flood_of_one_dead_endpoint_is_one_group_and_two_mails(desk: Desk) -> None:
    for number in range(60):
        desk.clock.advance(timedelta(seconds=5))
        desk.die(167 if number < 40 else 166, automation=f"a{number % 40}")
        desk.wait(0)
    desk.wait(5)
    assert len(desk.office.to(OLGA)) == 1
    desk.wait(1 / 12)
    assert {reader: len(desk.office.to(reader)) for reader in (OLGA, ADAM)} == {OLGA: 2, ADAM: 2}
    assert Counter(desk.office.readers) == {OLGA: 2, ADAM: 2}
    assert (desk.group().target, desk.group().count, desk.group().told) == ("dead.example", 10_000, 10_000)
    assert desk.rows("SELECT id FROM alerts") == []
    assert "9833 more since 2026-03-01 12:00:05 UTC, 10000 in all." in body(desk)
    assert desk.office.mails[-1]["Subject"] == "[knockon] dead.example: WEBHOOK_HTTP_RETRIABLE (10000x)"


def test_nothing_is_told_twice_that_does_not_grow(desk: Desk) -> None:
    desk.die(3)
    for minutes in (0, 1, 11, 600):
        desk.wait(minutes)
    assert len(desk.office.mails) == 2
    assert desk.group().due_at is None


def test_a_digest_tells_what_came_since(desk: Desk) -> None:
    desk.die(1)
    desk.wait(0)
    desk.die(36)
    desk.wait(9)
    assert len(desk.office.to(OLGA)) == 1
    desk.wait(1)
    assert "36 more since 2026-03-01 12:00:00 UTC, 37 in all." in body(desk)
    desk.die(5)
    desk.wait(30)
    assert "5 more since 2026-03-01 12:10:00 UTC, 42 in all." in body(desk)


def test_what_was_quiet_for_a_day_is_told_of_as_back(desk: Desk) -> None:
    desk.die(1)
    desk.wait(0)
    desk.wait(60 * 24 - 1)
    desk.die(1)
    desk.wait(0)
    assert "is back" not in body(desk)
    desk.wait(60 * 24)
    desk.die(2)
    desk.wait(0)
    assert "It is back after a quiet day: 2 more since" in body(desk)


def test_a_muted_group_is_silent_and_then_told_of_in_whole(desk: Desk) -> None:
    desk.die(1)
    desk.wait(0)
    database, hour = desk.backends.database, timedelta(hours=1)
    mute_alerts(database, desk.clock, CALLER, (desk.group().fingerprint, hour))
    desk.die(8)
    desk.wait(59)
    assert len(desk.office.to(OLGA)) == 1
    desk.wait(1)
    assert "8 more since" in body(desk)
    mute_alerts(database, desk.clock, CALLER, (desk.group().id, hour))
    desk.die(1)
    desk.wait(20)
    mute_alerts(database, desk.clock, CALLER, (desk.group().id, timedelta(0)))
    desk.wait(0)
    assert "1 more since" in body(desk)
    assert audit_actions(desk.backends)[-1] == "alert_group.muted"
    with pytest.raises(NotFound):
        mute_alerts(database, desk.clock, replace(CALLER, workspace_id="w2"), (desk.group().id, hour))


def test_an_automation_that_always_fails_anew_is_capped_and_then_summed_up(desk: Desk) -> None:
    kinds = ["red", "green", "blue", "cyan", "pink", "gray", "gold", "lime", "teal", "navy"]
    for kind in kinds:
        desk.die(2, message=f"the {kind} one is broken")
        desk.wait(0)
    assert len(desk.office.to(OLGA)) == 5
    assert ["Muted until" in body(desk, at) for at in range(5)] == [False] * 4 + [True]
    assert "Muted until 2026-03-01 13:00:00 UTC" in body(desk)
    desk.wait(60)
    assert len(desk.office.to(OLGA)) == 6
    assert desk.office.to(OLGA)[-1]["Subject"] == "[knockon] welcome: 5 kinds of errors (10x)"
    assert all(f"the {kind} one" in body(desk) for kind in kinds[5:])


def test_a_channel_takes_twenty_an_hour_the_last_of_them_for_all_that_are_left(desk: Desk) -> None:
    for number in range(30):
        desk.die(1, message="is broken", automation=f"a{number}")
    desk.wait(0)
    assert len(desk.office.to(OLGA)) == 20
    sizes = sorted(len(mail["Subject"].split("kinds")) for mail in desk.office.to(OLGA))
    assert sizes == [1] * 19 + [2]
    assert sum("[knockon] 11 kinds of errors (11x)" in mail["Subject"] for mail in desk.office.to(OLGA)) == 1
    assert len(desk.office.to(ADAM)) == 20
    desk.die(1, message="is broken", automation="late")
    desk.wait(59)
    assert len(desk.office.to(OLGA)) == 20
    desk.wait(1)
    assert len(desk.office.to(OLGA)) == 21


def test_a_person_of_two_workspaces_is_told_twenty_times_an_hour_in_all(desk: Desk) -> None:
    add_people(desk.backends, [(OLGA, Role.OWNER)], "w2")
    for number in range(20):
        desk.die(1, message="is broken", automation=f"a{number}")
    desk.wait(0)
    desk.die(1, message="is broken", automation="elsewhere", workspace_id="w2")
    desk.wait(59)
    assert len(desk.office.to(OLGA)) == 20
    desk.wait(1)
    assert len(desk.office.to(OLGA)) == 21


def test_a_trouble_of_several_automations_is_told_as_theirs(desk: Desk) -> None:
    for number in range(1, 8):
        desk.die(number, automation=f"Flood {number}")
        with desk.backends.database.begin() as conn:
            fold_alerts(conn, now=desk.clock.now(), most=100)
    desk.wait(0)
    assert len(desk.office.to(OLGA)) == 1
    text = body(desk).replace("\r\n", "\n")
    assert "7 automations dead-lettered alike\n28 dead letters so far." in text
    named = ", ".join(f"Flood {number} ({number})" for number in range(7, 2, -1))
    assert f"Automations: {named}, and 2 others (3)" in text
    assert text.count("knockon dead replay --automation ") == 5
    assert "knockon dead replay --all --workspace w1" in text


def test_the_automations_of_a_trouble_are_counted_up_to_a_bound(desk: Desk) -> None:
    with desk.backends.database.begin() as conn:
        for number in (*range(AUTOMATIONS_KEPT + 3), 0):
            alert = Alert("w1", "f", f"a{number}", "r", "t", "b", "C", "host")
            insert_alerts(conn, [alert], now=desk.clock.now())
    for most in (60, 100):
        with desk.backends.database.begin() as conn:
            fold_alerts(conn, now=desk.clock.now(), most=most)
    with desk.backends.database.read() as conn:
        (row,) = list_groups(conn, "w1", most=1)
    assert (row.group.count, len(row.automations)) == (AUTOMATIONS_KEPT + 4, AUTOMATIONS_KEPT)
    assert row.automations["a0"] == 2
    assert title_of(row) == "100 or more automations dead-lettered alike"


def test_two_tellers_at_once_send_each_message_once(desk: Desk) -> None:
    for number in range(15):
        desk.die(10, message="is broken", automation=f"a{number}")
    start = threading.Barrier(2)

    def tell() -> None:
        teller = desk.teller()
        start.wait(10)
        for _ in range(3):
            teller.tick()

    with ThreadPoolExecutor(2) as tellers:
        for told in [tellers.submit(tell) for _ in range(2)]:
            told.result()
    desk.wait(0)
    assert [tuple(row) for row in desk.rows("SELECT sum(count), sum(told) FROM alert_groups")] == [(150, 150)]
    ids = Counter(mail["Message-ID"] for mail in desk.office.mails)
    assert len(ids) == 30
    assert set(ids.values()) == {1}


def test_a_mail_server_that_was_down_gets_the_mails_once_it_is_up(desk: Desk) -> None:
    desk.post.is_cut = True
    desk.die(2)
    desk.wait(0)
    assert desk.office.mails == []
    desk.wait(0.9)
    assert {row.attempts for row in desk.rows("SELECT attempts FROM alert_sends")} == {1}
    desk.wait(0.1)
    assert {row.attempts for row in desk.rows("SELECT attempts FROM alert_sends")} == {2}
    desk.post.is_cut = False
    desk.wait(2)
    assert Counter(desk.office.readers) == {OLGA: 1, ADAM: 1}
    assert {row.status for row in desk.rows("SELECT status FROM alert_sends")} == {"sent"}
    assert [row.failures for row in desk.rows("SELECT failures FROM alert_channels")] == [0]
    assert desk.rows("SELECT id FROM automation_runs") == []


def test_a_message_is_given_up_after_eight_attempts_and_mail_is_broken_after_ten(desk: Desk) -> None:
    desk.post.is_cut = True
    desk.die(1)
    for minutes in (0, 1, 2, 4, 8, 16, 32, 60):
        desk.wait(minutes)
    found = desk.rows("SELECT status, attempts, error, due_at FROM alert_sends")
    assert {tuple(row) for row in found} == {
        ("failed", 8, "NET_ECONNREFUSED: 127.0.0.1:1: [Errno 111] Connection refused", None)
    }
    (channel,) = desk.rows("SELECT name, kind, failures, broken_at FROM alert_channels")
    assert (channel.name, channel.kind, channel.failures) == ("mail", "mail", 16)
    assert channel.broken_at is not None
    notices = desk.rows("SELECT title FROM notifications WHERE resource_type = 'alert_channel'")
    assert [row.title for row in notices] == ['Alert channel "mail" is broken'] * 2
    desk.post.is_cut = False
    desk.die(1)
    desk.wait(10)
    assert [row.broken_at for row in desk.rows("SELECT broken_at FROM alert_channels")] == [None]


def test_a_process_that_dies_after_sending_costs_one_repeat_under_the_same_id(desk: Desk) -> None:
    def die() -> None:
        desk.post.after = None
        raise Killed

    desk.die(1)
    desk.post.after = die
    with pytest.raises(Killed):
        desk.wait(0)
    desk.wait(1)
    assert len(desk.office.mails) == 2
    desk.wait(0.5)
    desk.wait(60)
    ids = Counter(mail["Message-ID"] for mail in desk.office.mails)
    assert sorted(ids.values()) == [1, 2]


def test_a_late_sender_writes_nothing_over_what_another_did(desk: Desk) -> None:
    def wait() -> None:
        desk.post.after = refuse
        desk.wait(2)

    def refuse() -> None:
        desk.post.after = None
        raise RetryableError("MAIL_TEMPORARY", "no")

    with desk.backends.database.begin() as conn:
        conn.exec_driver_sql("DELETE FROM members WHERE role = 'admin'")
    desk.die(1)
    desk.post.after = wait
    desk.wait(0)
    (send,) = desk.rows("SELECT status, attempts, error FROM alert_sends")
    assert tuple(send) == ("pending", 2, "MAIL_TEMPORARY: no")


def test_who_is_no_admin_any_more_is_not_told(desk: Desk) -> None:
    desk.post.is_cut = True
    desk.die(1)
    desk.wait(0)
    with desk.backends.database.begin() as conn:
        conn.exec_driver_sql("UPDATE members SET role = 'viewer' WHERE role = 'admin'")
    desk.post.is_cut = False
    desk.wait(1)
    assert desk.office.readers == [OLGA]
    found = desk.rows("SELECT status, attempts FROM alert_sends ORDER BY status")
    assert [tuple(row) for row in found] == [("failed", 2), ("sent", 2)]


def test_mails_of_one_group_are_one_thread_and_answer_to_nobody(desk: Desk) -> None:
    desk.die(1)
    desk.wait(0)
    desk.die(1)
    desk.wait(10)
    first, second = desk.office.to(OLGA)
    assert first["References"] == second["References"] == f"<{desk.group().id}@knockon.test>"
    assert first["Message-ID"] != second["Message-ID"]
    assert first["Date"].datetime.isoformat() == "2026-03-01T12:00:00+00:00"
    assert (first["Auto-Submitted"], first["From"]) == ("auto-generated", "Knockon <robot@knockon.test>")
    assert first["List-Id"] == "Knockon alerts <w1.alerts.knockon.test>"


@pytest.mark.parametrize("name", ["x\r\nBcc: eve@evil.test\r\n\r\n<b>hi</b>", "<script>alert(1)</script>"])
def test_an_automations_name_stays_text(desk: Desk, name: str) -> None:
    desk.die(1, message="is <i>broken</i> at ftp://ann:pw@files.test/x", automation=name)
    desk.wait(0)
    mail = desk.office.to(OLGA)[0]
    assert mail["Bcc"] is None
    assert set(desk.office.readers) == {OLGA, ADAM}
    html = mail.get_body(("html",))
    assert html is not None
    assert "<script" not in html.get_content()
    assert "<b>" not in html.get_content()
    assert "is &lt;i&gt;broken&lt;/i&gt; at ftp://***@files.test/x" in html.get_content()
    assert "ann:pw" not in body(desk)


def test_without_anybody_to_tell_groups_are_counted_still(database_url: str, redis_url: str) -> None:
    with opened_desk(database_url, redis_url) as desk:
        with desk.backends.database.begin() as conn:
            conn.exec_driver_sql("DELETE FROM members")
        desk.die(3)
        desk.wait(0)
        assert (desk.group().count, desk.group().told, desk.group().due_at) == (3, 0, None)
        assert desk.rows("SELECT id FROM alert_sends") == []


def test_the_loop_outlives_an_outage_and_says_so_once(desk: Desk) -> None:
    def rename(before: str, after: str) -> None:
        with desk.backends.database.begin() as conn:
            conn.exec_driver_sql(f"ALTER TABLE {before} RENAME TO {after}")

    stop = StopFlag()
    desk.die(1)
    rename("alerts", "alerts_away")
    loop = threading.Thread(target=desk.teller().run, args=(stop,))
    with capture_logs() as logs:
        loop.start()
        poll(lambda: [line for line in logs if line["event"] == "outage_began"])
        rename("alerts_away", "alerts")
        poll(lambda: len(desk.office.mails) == 2)
        poll(lambda: [line for line in logs if line["event"] == "outage_ended"])
        stop.raise_()
        loop.join(10)
    assert not loop.is_alive()
    assert [line["event"] for line in logs if "outage" in line["event"]] == ["outage_began", "outage_ended"]


def test_webhooks_do_not_wait_for_a_mail_server_that_is_down(desk: Desk, tmp_path: Path) -> None:
    with Receiver(tmp_path / "ledger") as receiver:
        wanted = NewChannel("ops", receiver.url("/in"), None)
        add_channel(desk.backends.database, desk.clock, make_seal(desk.settings), CALLER, wanted)
        desk.post.is_cut = True
        desk.die(1)
        desk.teller().tick()
        assert len(receiver.deliveries()) == 1
    attempts = desk.rows("SELECT attempts FROM alert_sends WHERE channel = 'mail' ORDER BY attempts")
    assert [row.attempts for row in attempts] == [0, 1]


def test_hundreds_of_troubles_at_once_are_one_message_that_counts_them(desk: Desk) -> None:
    letters = "abcdefghijklmnopqrst"
    words = [f"{first}{second}" for first in letters for second in letters]
    for word in words:
        desk.die(2, message=f"{word} is broken")
    desk.wait(0)
    assert len(desk.rows("SELECT id FROM alert_groups")) == len(words)
    (mail,) = desk.office.to(OLGA)
    assert mail["Subject"] == "[knockon] welcome: 400 kinds of errors (800x)"
    assert "And 780 dead letters of 390 other kinds" in body(desk)
    assert [row.told for row in desk.rows("SELECT sum(told) AS told FROM alert_groups")] == [800]
