"""What actions would be handed for an event: rendered, masked, and with what is not known said."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from shared.masking import MASK
from shared.rules.previewing import (
    Fault,
    PreviewedAction,
    Stage,
    asked_secrets,
    asks_for_subject,
    preview_actions,
)
from tests.matching import make_automation, make_event

STAGE = Stage(datetime(2026, 3, 1, 12, tzinfo=UTC))
ORDER = {
    "orderId": 7,
    "total": 12.5,
    "password": "hunter2hunter2",
    "hook": "https://u:p4ssw0rd@h.test/?token=t0k3n",
}


def previewed(*actions: dict[str, Any], stage: Stage = STAGE, **payload: Any) -> list[PreviewedAction]:
    automation = make_automation(actions=list(actions))
    return preview_actions(make_event(payload={**ORDER, **payload}), automation, stage)


def hook(**config: Any) -> dict[str, Any]:
    return {"type": "SEND_WEBHOOK", "config": {"url": "https://x.test/", **config}}


def notice(title: str) -> dict[str, Any]:
    return {"type": "CREATE_NOTIFICATION", "config": {"title": title}}


def test_a_config_is_rendered_as_a_run_would() -> None:
    (action,) = previewed(hook(url="https://x.test/{{ orderId }}", body={"total": "{{ total }}"}))
    assert action.config == {"url": "https://x.test/7", "body": {"total": 12.5}}
    assert (action.position, action.type, action.fault) == (1, "SEND_WEBHOOK", None)
    assert (action.missing, action.assumed, action.secrets) == ((), (), ())


def test_a_path_that_leads_nowhere_is_named() -> None:
    (action,) = previewed(notice("Order {{ nothing.here }}"))
    assert action.config == {"title": "Order "}
    assert action.missing == ("nothing.here",)


def test_what_an_earlier_action_gives_is_assumed_and_what_a_later_one_gives_is_missing() -> None:
    first, second = previewed(
        notice("{{ actions.2.output.id }}x"),
        notice("{{ actions.1.output.id }} {{ actions.1.output.rows[0].sku }}"),
    )
    assert (first.missing, first.assumed) == (("actions.2.output.id",), ())
    assert (second.missing, second.assumed) == ((), ("actions.1.output.rows.0.sku", "actions.1.output.id"))
    assert second.config is not None
    assert "(actions.1.output.id)" in second.config["title"]


def test_secrets_are_stood_in_for_and_masked_wherever_they_come_out() -> None:
    config = hook(
        url="{{ secrets.URL }}",
        headers={"X-Token": "{{ secrets.T }}"},
        body={"a": "{{ secrets.T | base64_encode }}", "b": "k={{ secrets.T }}"},
        secret="{{ secrets.S }}",
    )
    (action,) = previewed(config, stage=Stage(STAGE.at, None, frozenset({"URL", "T", "S"})))
    assert action.fault is None
    assert action.secrets == ("S", "T", "URL")
    assert action.config == {
        "url": MASK,
        "headers": {"X-Token": MASK},
        "body": {"a": f"{MASK}=", "b": f"k={MASK}"},
        "secret": MASK,
    }


def test_a_secret_that_is_not_there_is_the_fault_that_a_run_would_have() -> None:
    (action,) = previewed(hook(headers={"X-T": "{{ secrets.T }}"}))
    assert action.fault == Fault("SECRET_MISSING", "there is no secret T in the workspace")


@pytest.mark.parametrize(
    "template", ["{{ password }}", "{{ payload.password }}", "{{ payload | json }}", "{{ hook }}"]
)
def test_no_template_carries_a_secret_of_the_event_out(template: str) -> None:
    shown = orjson.dumps(previewed(hook(body={"x": template}), notice(template)), default=str).decode()
    assert MASK in shown
    assert all(each not in shown for each in ("hunter2", "p4ssw0rd", "t0k3n"))


def test_a_rendered_config_that_a_run_would_refuse_is_told_with_its_place() -> None:
    (action,) = previewed({"type": "SEND_EMAIL", "config": {"to": "{{ who }}", "subject": "s", "body": "b"}})
    assert action.fault is not None
    assert (action.fault.code, action.fault.message.partition(":")[0]) == ("CONFIG_INVALID", "to")
    assert action.missing == ("who",)


def test_a_template_that_fails_is_told_and_shows_no_config() -> None:
    (action,) = previewed(notice("{{ total | divided_by: 0 }}"))
    assert action.config is None
    assert action.fault is not None
    assert action.fault.code == "TEMPLATE_ERROR"


def test_a_masked_value_is_no_fault_of_the_config() -> None:
    mail = {"type": "SEND_EMAIL", "config": {"to": "{{ auth }}", "subject": "s", "body": "b"}}
    (action,) = previewed(mail, auth="anna@example.test")
    assert action.fault is None
    assert action.config == {"to": MASK, "subject": "s", "body": "b"}


def test_the_subject_is_what_is_known_of_it() -> None:
    stage = Stage(STAGE.at, {"name": "Ada", "token": "s3cr3t-token"})
    (action,) = previewed(notice("{{ subject.name }} {{ subject.token }}"), stage=stage)
    assert action.config == {"title": f"Ada {MASK}"}


def test_what_templates_ask_for_is_known_before() -> None:
    automation = make_automation(actions=[hook(headers={"A": "{{ secrets.B }}"}), notice("{{ subject.x }}")])
    assert asked_secrets(automation) == ("B",)
    assert asks_for_subject(automation)
    assert not asks_for_subject(make_automation(actions=[notice("subject {{ payload.subject }}")]))
