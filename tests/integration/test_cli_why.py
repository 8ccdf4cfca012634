"""`knockon explain`, `automations dry-run` and `backtest`: what a person is told, and nothing done."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from shared.model.stamps import parse_stamp
from shared.services.backends import Backends
from shared.services.backtests import Stretch, backtest
from shared.settings import Settings
from shared.time.clock import SystemClock
from tests.commanding import Knockon, document
from tests.matching import Post, open_post
from tests.people import definition, set_run
from tests.rooms import open_room, start
from tests.traps import trap
from tests.waiting import poll

FILE = """
- key: large
  name: Large orders
  trigger: {type: EVENT, config: {eventType: order.placed}}
  conditions:
    all:
      - {field: total, op: gt, value: 100}
      - {field: token, op: eq, value: right}
  actions:
    - type: SEND_WEBHOOK
      config: {url: "http://HOST/{{ orderId }}", headers: {X-Key: "{{ secrets.KEY }}"}}
      timeout_ms: 300
      retries: 0
    - {type: SEND_EMAIL, config: {to: anna@example.test, subject: "Order {{ orderId }}", body: b}}
- key: paused
  name: Paused
  status: PAUSED
  trigger: {type: EVENT, config: {eventType: order.placed}}
  actions: [{type: CREATE_NOTIFICATION, config: {title: Hello}}]
"""
GOOD = {"orderId": 7, "total": 200, "token": "right"}


@pytest.fixture
def post(backends: Backends, knockon: Knockon, tmp_path: Path) -> Post:
    """Give a matcher, with the automations of the file stored."""
    (tmp_path / "drafts.yaml").write_text(FILE.replace("HOST", "hooks.example"))
    knockon("apply", "-f", "drafts.yaml")
    return open_post(replace(backends, clock=SystemClock()))


def file_with(tmp_path: Path, event: Any) -> str:
    (tmp_path / "event.json").write_bytes(orjson.dumps(event))
    return "event.json"


def test_explain_names_the_leaf_that_one_changed_field_fails(post: Post, knockon: Knockon) -> None:
    right, wrong = post.publish(payload=GOOD), post.publish(payload={**GOOD, "total": 99})
    post.step()
    ran, skipped = post.runs()
    set_run(post.backends, ran.id, "SUCCEEDED")
    set_run(post.backends, skipped.id, "SUCCEEDED", skip_reason="conditions")
    told = document(knockon("explain", wrong, "-o", "json"))
    assert (told["state"], told["event"]["payload"]["token"]) == ("taken", "***")
    large, paused = told["automations"]
    (leaf,) = large["blamed"]
    assert (leaf["path"], leaf["wanted"], leaf["found"]) == ("conditions.all[0]", 100, 99)
    assert (large["verdict"], large["run"]["id"]) == ("matched", skipped.id)
    assert (paused["verdict"], paused["stopped_by"]["found"]) == ("not_matched", "PAUSED")
    shown = knockon("explain", wrong).stdout.splitlines()
    assert shown[2].split()[:6] == ["large", "matched", "conditions.all[0]:", "total", "gt", "100"]
    good = document(knockon("explain", right, "--automation", "large", "-o", "json"))["automations"][0]
    assert (good["stopped_by"], len(good["checks"]), len(good["leaves"])) == (None, 15, 2)
    assert good["leaves"][1]["found"] == "***"


def test_explain_says_what_became_of_the_entry_itself(post: Post, knockon: Knockon) -> None:
    unread = post.publish()
    assert "has not read it yet" in knockon("explain", unread).stdout
    bad = post.publish_raw({"type": "order.placed", "workspaceId": "w1", "payload": "{"})
    post.step()
    assert "payload: is not JSON" in knockon("explain", bad).stdout
    last = post.publish()
    post.backends.redis.xtrim(post.backends.keys.stream, minid=last, approximate=False)
    assert "it is gone" in knockon("explain", unread).stdout
    assert "there is no entry" in knockon("explain", last, "--workspace", "w2", code=1).stderr
    assert "there is no entry" in knockon("explain", "17-0-0", code=1).stderr
    assert "there is no automation" in knockon("explain", last, "--automation", "none", code=1).stderr


def test_a_dry_run_of_a_file_renders_what_would_be_sent(post: Post, knockon: Knockon, tmp_path: Path) -> None:
    name = file_with(tmp_path, {"type": "order.placed", "payload": GOOD})
    told = document(knockon("automations", "dry-run", "large", "--event", name, "-o", "json"))
    assert (told["would_run"], told["stopped_by"], told["blamed"]) == (True, None, [])
    hook, mail = told["actions"]
    assert hook["config"]["url"] == "http://hooks.example/7"
    assert hook["config"]["headers"] == {"X-Key": "***"}
    assert hook["fault"]["code"] == "SECRET_MISSING"
    assert mail["config"]["subject"] == "Order 7"
    knockon("secrets", "set", "KEY", stdin="abcdefgh")
    shown = knockon("automations", "dry-run", "large", "--event", "-", stdin=(tmp_path / name).read_text())
    assert shown.stdout.startswith("large would run\n")
    assert "would fail" not in shown.stdout
    assert "abcdefgh" not in shown.stdout


def test_a_dry_run_says_no_for_a_paused_one_and_tries_a_recorded_event(post: Post, knockon: Knockon) -> None:
    entry = post.publish(payload={**GOOD, "token": "wrong"}, id="e1")
    post.step()
    again = post.publish(payload=GOOD, id="e1")
    shown = knockon("automations", "dry-run", "paused", "--event", entry).stdout
    assert shown.startswith("paused would not run: status: the automation is PAUSED\n")
    told = document(knockon("automations", "dry-run", "large", "--event", entry, "-o", "json"))
    assert (told["stopped_by"]["check"], told["blamed"][0]["found"]) == ("conditions", "***")
    told = document(knockon("automations", "dry-run", "large", "--event", again, "-o", "json"))
    assert (told["stopped_by"]["check"], told["stopped_by"]["found"]) == ("duplicate", post.runs()[0].id)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ({"type": "Bad Type", "payload": {}}, "type: must be noun.verb"),
        ({"payload": {}}, "type: is missing"),
        ({"type": "a.b", "payload": []}, "payload: is not a JSON object"),
        ({"type": "a.b", "workspaceId": "w2"}, "workspaceId: is not w1"),
        ({"type": "a.b", "colour": 1}, "colour: is unknown"),
        ({"type": 7}, "type: must be a text"),
        ({"type": "a.b", "context": {"depth": 1}}, "context: automationId"),
        ([], "event: is not a JSON object"),
    ],
)
def test_a_bad_event_is_refused_with_its_field(
    post: Post, knockon: Knockon, tmp_path: Path, event: Any, told: str
) -> None:
    name = file_with(tmp_path, event)
    assert told in knockon("automations", "dry-run", "large", "--event", name, code=1).stderr


def test_a_file_that_is_not_there_is_an_error(post: Post, knockon: Knockon) -> None:
    assert "No such file" in knockon("automations", "dry-run", "large", "--event", "nowhere", code=1).stderr


def test_a_backtest_counts_what_said_no_and_how_often_each_leaf_did(
    post: Post, knockon: Knockon, tmp_path: Path
) -> None:
    drafts = FILE.replace("HOST", "hooks.example").replace("field: token", "field: mark")
    (tmp_path / "drafts.yaml").write_text(drafts)
    good = {**GOOD, "mark": "right"}
    for number in range(6):
        post.publish(payload={**good, "total": 98 + number}, id=f"e{number}")
    post.publish(payload={**good, "total": 103}, id="e5")
    post.publish(payload={"total": 1})
    post.publish("order.paid")
    post.publish_raw({"type": "order.placed", "workspaceId": "w1", "payload": "{"})
    post.publish(workspace_id="w2")
    large, paused = document(knockon("backtest", "-f", "drafts.yaml", "-o", "json"))
    assert (large["events"], large["would_run"], large["unreadable"], large["next"]) == (10, 3, 1, None)
    assert large["no"] == {"trigger": 1, "duplicate": 1, "conditions": 4}
    assert [(leaf["path"], leaf["said_no"]) for leaf in large["leaves"]] == [
        ("conditions.all[0]", 4),
        ("conditions.all[1]", 1),
    ]
    assert (paused["would_run"], paused["no"]) == (7, {"trigger": 1, "duplicate": 1})
    shown = knockon("backtest", "-f", "drafts.yaml").stdout
    assert "conditions.all[0]: total gt" in shown
    assert post.runs() == []


def test_a_backtest_ends_at_its_limit_and_names_where_to_go_on(post: Post, knockon: Knockon) -> None:
    entries = [post.publish(payload=GOOD) for _ in range(5)]
    (large, _) = document(knockon("backtest", "-f", "drafts.yaml", "--limit", "3", "-o", "json"))
    assert (large["events"], large["next"]) == (3, entries[3])
    (large, _) = document(knockon("backtest", "-f", "drafts.yaml", "--since", "0s", "-o", "json"))
    assert large["events"] == 0


def test_a_backtest_whose_time_is_over_has_looked_at_one_event_and_goes_on_with_the_next(post: Post) -> None:
    entries = [post.publish(payload=GOOD) for _ in range(3)]
    drafted = definition("late"), Stretch((0, 0), within_s=0)
    found = backtest(post.backends, Settings.model_validate({}), "w1", drafted, lambda events, at: None)
    assert (found.events, found.next) == (1, parse_stamp(entries[1]))


def test_a_backtest_of_a_schedule_is_refused(knockon: Knockon, tmp_path: Path) -> None:
    draft = (
        'key: s\nname: S\ntrigger: {type: SCHEDULE, config: {cron: "0 9 * * *"}}\n'
        "actions: [{type: CREATE_NOTIFICATION, config: {title: Hello}}]\n"
    )
    (tmp_path / "s.yaml").write_text(draft)
    assert "no event starts SCHEDULE" in knockon("backtest", "-f", "s.yaml", code=1).stderr


def test_no_server_is_called_by_anything_but_the_run_itself(
    backends: Backends, knockon: Knockon, tmp_path: Path, redis_url: str, database_url: str
) -> None:
    with trap() as web, trap() as mail:
        (tmp_path / "drafts.yaml").write_text(FILE.replace("HOST", f"127.0.0.1:{web.port}"))
        knockon("secrets", "set", "KEY", stdin="abcdefgh")
        smtp: dict[str, Any] = {
            "smtp_host": "127.0.0.1",
            "smtp_port": mail.port,
            "smtp_from": "k@x.test",
            "smtp_tls": "none",
            "webhook_allow_private": True,
        }
        named = {name.upper(): str(value) for name, value in smtp.items()}
        knockon("apply", "-f", "drafts.yaml", **named)
        post = open_post(replace(backends, clock=SystemClock()))
        entry = post.publish(payload=GOOD)
        post.step()
        event = file_with(tmp_path, {"type": "order.placed", "payload": GOOD})
        for each in (event, entry):
            knockon("automations", "dry-run", "large", "--event", each, **named)
        knockon("explain", entry, **named)
        knockon("explain", entry, "--automation", "large", **named)
        knockon("backtest", "-f", "drafts.yaml", **named)
        assert (web.count(), mail.count()) == (0, 0)
        room = open_room(redis_url, database_url, data_dir=tmp_path / ".knockon", **smtp)
        engine = start(room, [])
        engine.take([post.runs()[0].id])
        poll(lambda: web.count() == 1)
        engine.stop(grace_s=2)
        room.database.dispose()
        room.parts.redis.close()
