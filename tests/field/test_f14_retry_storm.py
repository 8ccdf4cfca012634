"""A permanent refusal is retried for ever, with a notice each time.

Somebody has unsubscribed, so the mail is refused for good. Elsewhere every pass tried again and wrote another
notice, until one table held four million of them. Here a fatal refusal is one attempt and no notice, a dead
letter is told of once however often it was tried, and after its end a run leaves nothing that grows. Outside
the inbox a thousand dead letters are one mail with their number.
"""

from collections import Counter
from datetime import timedelta

from executors.contract import ActionResult, RunContext
from shared.errors import FatalError, RetryableError
from shared.model.actions import ActionConfig
from tests.alerts import opened_office
from tests.field.conftest import Open
from tests.field.road import Road
from tests.waiting import poll
from timers.alerting import Teller
from watchdog.service import Watchdog

CONTACTS = 1_000
TO_GONE = {"type": "UPDATE_RECORD", "config": {"record_id": "gone", "properties": {"mailed": True}}}


def pass_hours(road: Road) -> None:
    """Let two hours go by, with every retry, rescue and relay that comes due in them."""
    poll(lambda: not road.room.all("SELECT id FROM outbox WHERE sent_at IS NULL"))
    watchdog = Watchdog(road.watchdog())
    for _ in range(6):
        watchdog.tick()
        road.wait(1200)


def tell_contacts(road: Road, **fields: bool) -> None:
    """Tell something of a thousand contacts."""
    for number in range(CONTACTS):
        road.publish("contact.updated", {"contact": {"id": f"p{number}", **fields}})
    road.rest()


def statuses(road: Road) -> Counter[tuple[str, str | None]]:
    """Count what waits and has waited by its status and reason."""
    rows = road.room.all("SELECT status, skip_reason FROM pending_executions")
    return Counter((row.status, row.skip_reason) for row in rows)


def gone(config: ActionConfig, run: RunContext) -> ActionResult:
    raise FatalError("MAIL_REFUSED", f"550 {run.run_id} has unsubscribed")


def test_a_fatal_refusal_is_one_attempt(open_here: Open) -> None:
    road = open_here(script={"/mail": [410]})
    road.automation(road.hook("/mail"), on="mail.due")
    road.publish("mail.due")
    road.rest()
    pass_hours(road)
    run = road.run()
    assert (run.status, run.retry_count, run.next_attempt_at) == ("FAILED", 0, None)
    assert road.code(run) == "WEBHOOK_HTTP_ERROR"
    assert len(road.receiver.deliveries("/mail")) == 1
    assert road.notices() == []


def test_a_thousand_refusals_write_no_notice_and_nothing_grows(road: Road) -> None:
    road.automation(TO_GONE, on="mail.due")
    for number in range(CONTACTS):
        road.publish("mail.due", {"contact": number})
    road.rest()
    assert road.ends() == ["FAILED"] * CONTACTS
    before = road.sizes()
    assert (before["run_attempts"], before["notifications"], before["audit"]) == (CONTACTS, 0, 1)
    assert (before["alerts"], before["alert_groups"], before["alert_sends"]) == (0, 0, 0)
    assert before["stream"] == 2 * CONTACTS
    pass_hours(road)
    assert road.sizes() == before
    assert {(run.retry_count, run.lease) for run in road.runs()} == {(0, 1)}


def test_a_dead_letter_is_told_of_once_and_not_for_each_retry(open_here: Open) -> None:
    road = open_here(script={"/mail": [503]})
    road.automation(road.hook("/mail", retries=3), on="mail.due", key="mailing")
    road.publish("mail.due")
    road.rest()
    for wait_s in (1, 2, 4):
        assert (road.ends(), road.notices()) == (["PENDING"], [])
        road.wait(wait_s)
    assert road.ends() == ["DEAD_LETTER"]
    before = road.sizes()
    pass_hours(road)
    assert road.notices() == ['Automation "mailing" dead-lettered']
    assert len(road.receiver.deliveries("/mail")) == 4
    assert road.sizes() == before


def refuse(config: ActionConfig, run: RunContext) -> ActionResult:
    raise RetryableError("MAIL_TEMPORARY", f"mx.example:25 answered 451 not now, {run.run_id}")


def test_a_thousand_dead_letters_are_one_mail_with_their_number(open_here: Open) -> None:
    with opened_office() as (office, port):
        mail = {
            "smtp_host": "127.0.0.1",
            "smtp_port": port,
            "smtp_tls": "none",
            "smtp_from": "k@knockon.test",
        }
        road = open_here(executors={"UPDATE_RECORD": refuse}, **mail)
        road.automation({**TO_GONE, "retries": 0}, on="mail.due", key="mailing")
        for number in range(CONTACTS):
            road.publish("mail.due", {"contact": number})
        road.rest()
        assert road.ends() == ["DEAD_LETTER"] * CONTACTS
        assert len(road.notices()) == CONTACTS
        teller = Teller(road.room.parts.settings, road.post.backends)
        for _ in range(12):
            teller.tick()
            road.wait(600)
        (told,) = office.mails
        assert (told["To"], told["Subject"]) == (
            "owner@w1.test",
            f"[knockon] mx.example:25: MAIL_TEMPORARY ({CONTACTS}x)",
        )
        sizes = road.sizes()
        assert (sizes["alerts"], sizes["alert_groups"], sizes["alert_sends"]) == (0, 1, 1)


def test_a_delayed_mail_to_a_thousand_who_unsubscribed_meanwhile_is_not_tried(road: Road) -> None:
    """Armed at nine, unsubscribed at half past, due at ten: the list is empty of them before anything is."""
    subscribed = {"field": "contact.subscribed", "op": "eq", "value": True}
    on = {"type": "CONTACT_UPDATED"}
    mail = road.hook("/mail")
    road.automation(mail, on=on, conditions=subscribed, execution_delay=60, key="mailing")
    tell_contacts(road, subscribed=True)
    assert statuses(road) == {("pending", None): CONTACTS}
    road.clock.advance(timedelta(minutes=30))
    tell_contacts(road, subscribed=False)
    before = road.sizes()
    road.clock.advance(timedelta(minutes=40))
    for _ in range(3):
        road.sweep()
        pass_hours(road)
    assert statuses(road) == {("skipped", "conditions_changed"): CONTACTS}
    assert (road.runs(), road.receiver.deliveries("/mail"), road.notices()) == ([], [], [])
    assert road.sizes() == before


def test_one_who_unsubscribes_after_the_sweep_is_not_written_to(open_here: Open) -> None:
    road = open_here(script={"/mail": [410]})
    subscribed = {"field": "contact.subscribed", "op": "eq", "value": True}
    on = {"type": "CONTACT_UPDATED"}
    road.automation(road.hook("/mail"), on=on, conditions=subscribed, execution_delay=60)
    road.publish("contact.updated", {"contact": {"id": "p1", "subscribed": True}})
    road.rest()
    road.clock.advance(timedelta(minutes=70))
    road.sweep()
    road.publish("contact.updated", {"contact": {"id": "p1", "subscribed": False}})
    road.rest()
    pass_hours(road)
    run = road.run()
    assert (run.status, run.skip_reason, run.retry_count) == ("SUCCEEDED", "conditions_changed", 0)
    assert (road.receiver.deliveries("/mail"), statuses(road)) == ([], {("skipped", "conditions_changed"): 1})


def test_a_delayed_mail_that_is_refused_for_good_is_one_attempt_each(open_here: Open) -> None:
    road = open_here(executors={"SEND_WEBHOOK": gone})
    road.automation(road.hook("/mail"), on={"type": "CONTACT_UPDATED"}, execution_delay=60)
    tell_contacts(road, subscribed=True)
    road.clock.advance(timedelta(minutes=70))
    while statuses(road).get(("pending", None)):
        road.sweep()
    road.rest()
    assert road.ends() == ["FAILED"] * CONTACTS
    before = road.sizes()
    assert (before["run_attempts"], before["notifications"], before["alerts"]) == (CONTACTS, 0, 0)
    road.sweep()
    pass_hours(road)
    assert road.sizes() == before
    assert {(run.retry_count, run.lease) for run in road.runs()} == {(0, 1)}
