"""ASK_AI against a service on loopback: what is asked, what comes of each answer, what is never shown."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executors.ai_service import AiService, ai_service
from executors.ask_ai import ask_ai
from executors.classify import classify_error
from executors.outbound import Outbound, OutboundRequest
from executors.targets import parse_target
from pipeline.engine import Engine
from shared.errors import ActionError, FatalError
from shared.model.actions import AskAi
from shared.settings import Settings
from tests.acting import Stage, action
from tests.contexts import Trip, guarded_way_out
from tests.listening import capture_logs
from tests.receiver import Receiver, Step
from tests.rooms import OpenRoom, start, tree

KEY = "sk-s3cret-key"
PATH = "/v1/chat/completions"


@pytest.fixture
def http() -> Iterator[Outbound]:
    outbound = guarded_way_out()
    yield outbound
    outbound.close()


def said(content: Any, **keys: Any) -> Step:
    """Make an answer as such services give it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    body = {"id": "x", "model": "m-1-2026", "choices": [choice], "usage": usage, **keys}
    return Step(200, body=json.dumps(body))


def asked(http: Outbound, receiver: Receiver, timeout_s: float = 10, **config: Any) -> dict[str, Any]:
    service = AiService(receiver.url("/v1"), KEY, "m-1")
    trip = Trip(http, ai=service, timeout_s=timeout_s)
    return dict(ask_ai(AskAi.model_validate({"prompt": "Why?", **config}), trip.context()).output)


def refused(http: Outbound, receiver: Receiver, **config: Any) -> ActionError:
    with pytest.raises(ActionError) as caught:
        asked(http, receiver, **config)
    return caught.value


def test_a_question_is_asked_as_such_services_want_it(tmp_path: Path, http: Outbound) -> None:
    with Receiver(tmp_path / "ledger", {PATH: [said("Because ☂")]}) as receiver:
        config: dict[str, Any] = {
            "system": "Be brief.",
            "model": "m-2",
            "max_tokens": 7,
            "temperature": 0.5,
            "json": False,
        }
        output = asked(http, receiver, **config)
        asked(http, receiver)
        first, second = receiver.deliveries()
    assert output == {
        "text": "Because ☂",
        "model": "m-1-2026",
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
    }
    assert json.loads(first.body) == {
        "model": "m-2",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
        "max_tokens": 7,
        "temperature": 0.5,
    }
    assert json.loads(second.body) == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "Why?"}],
        "max_tokens": 1024,
    }
    assert (first.headers["authorization"], first.headers["content-type"]) == (
        f"Bearer {KEY}",
        "application/json",
    )


@pytest.mark.parametrize(
    "text", ['{"a": [1]}', ' {"a": [1]}\n', '```json\n{"a": [1]}\n```', '```\n{"a":[1]}```']
)
def test_an_answer_that_must_be_json_is_read(tmp_path: Path, http: Outbound, text: str) -> None:
    with Receiver(tmp_path / "ledger", {PATH: [said(text)]}) as receiver:
        output = asked(http, receiver, json=True)
        question = json.loads(receiver.deliveries()[0].body)
    assert (output["json"], output["text"]) == ({"a": [1]}, text)
    assert question["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize(
    ("step", "config"),
    [
        (said("Sure! {}"), {"json": True}),
        (said("[NaN]"), {"json": True}),
        (said("[" * 100_000), {"json": True}),
        (said(None), {}),
        (said(["x"]), {}),
        (said("x", choices=[]), {}),
        (Step(200, body="[1]"), {}),
        (Step(200, body="<html>"), {}),
        (Step(200, body=""), {}),
        (said("x" * 1_100_000), {}),
    ],
)
def test_an_answer_that_cannot_be_used_is_fatal(
    tmp_path: Path, http: Outbound, step: Step, config: dict[str, Any]
) -> None:
    with Receiver(tmp_path / "ledger", {PATH: [step]}) as receiver:
        error = refused(http, receiver, **config)
    assert (error.code, isinstance(error, FatalError)) == ("AI_BAD_ANSWER", True)


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (
            {"message": {"content": None, "refusal": "I can\nnot help"}, "finish_reason": "stop"},
            " (refusal: I can not help; finish_reason: stop)",
        ),
        (
            {"message": {"content": None}, "finish_reason": "content_filter"},
            " (finish_reason: content_filter)",
        ),
        ({"message": {"content": None, "refusal": 7}, "finish_reason": None}, ""),
    ],
)
def test_why_there_is_no_text_is_said(
    tmp_path: Path, http: Outbound, choice: dict[str, Any], why: str
) -> None:
    step = Step(200, body=json.dumps({"choices": [choice]}))
    with Receiver(tmp_path / "ledger", {PATH: [step]}) as receiver:
        error = refused(http, receiver)
    assert error.message == f"the answer holds no choices[0].message.content{why}"


def test_a_long_answer_is_taken_whole(tmp_path: Path, http: Outbound) -> None:
    with Receiver(tmp_path / "ledger", {PATH: [said("é" * 150_000)]}) as receiver:
        assert len(asked(http, receiver)["text"]) == 150_000


@pytest.mark.parametrize(
    ("step", "code", "wait_s"),
    [
        (Step(429, headers={"retry-after": "7"}), "AI_HTTP_RETRIABLE", 7),
        (Step(503), "AI_HTTP_RETRIABLE", None),
        (Step(500, body="oops"), "AI_HTTP_RETRIABLE", None),
        (Step(401, body=json.dumps({"error": {"message": f"bad key {KEY}"}})), "AI_HTTP_ERROR", None),
        (Step(404, body=json.dumps({"error": {"message": "no such\nmodel"}})), "AI_HTTP_ERROR", None),
        (Step(307, headers={"location": "http://127.0.0.1/"}), "AI_HTTP_ERROR", None),
    ],
)
def test_the_status_decides(
    tmp_path: Path, http: Outbound, step: Step, code: str, wait_s: int | None
) -> None:
    with Receiver(tmp_path / "ledger", {PATH: [step]}) as receiver:
        found = classify_error(refused(http, receiver))
        assert len(receiver.deliveries()) == 1
    assert (found.code, found.retryable) == (code, code == "AI_HTTP_RETRIABLE")
    assert (found.retry_after.total_seconds() if found.retry_after else None) == wait_s
    assert str(step.status) in found.message
    assert KEY not in found.message
    assert ("no such model" in found.message) is (step.status == 404)


def test_a_slow_answer_ends_with_the_action(tmp_path: Path, http: Outbound) -> None:
    with Receiver(tmp_path / "ledger", {PATH: [Step(200, after_s=1.5)]}) as receiver:
        error = refused(http, receiver, timeout_s=0.3)
    assert (error.code, isinstance(error, FatalError)) == ("ACTION_TIMEOUT", True)


def test_a_service_that_repeats_the_key_does_not_give_it_away(tmp_path: Path, http: Outbound) -> None:
    with Receiver(tmp_path / "ledger", {PATH: [said(f"your key is {KEY}\0", model=KEY)]}) as receiver:
        assert KEY not in str(asked(http, receiver))
    assert KEY not in repr(AiService("http://x", KEY))


def test_only_the_question_itself_may_reach_a_private_host(tmp_path: Path, http: Outbound) -> None:
    with Receiver(tmp_path / "ledger", {PATH: [said("x")]}) as receiver:
        assert asked(http, receiver)["text"] == "x"
        webhook = OutboundRequest("POST", parse_target(receiver.url(PATH)), {}, b"")
        with pytest.raises(FatalError, match="WEBHOOK_BLOCKED"):
            http.exchange(webhook, Trip(http).context().deadline)
        assert len(receiver.deliveries()) == 1


@pytest.mark.parametrize("service", [AiService(), AiService(None, KEY, "m"), AiService("http://127.0.0.1:9")])
def test_without_a_service_or_a_model_nothing_is_asked(http: Outbound, service: AiService) -> None:
    with pytest.raises(FatalError, match="AI_NOT_CONFIGURED"):
        ask_ai(AskAi(prompt="Why?"), Trip(http, ai=service).context())


def test_the_service_is_made_from_the_settings() -> None:
    given = {"ai_base_url": "http://ai.internal:8000/v1/", "ai_api_key": KEY, "ai_model": "m"}
    settings = Settings.model_validate(given)
    assert ai_service(settings) == AiService("http://ai.internal:8000/v1", KEY, "m")
    assert ai_service(Settings()) == AiService(None, None, None)


def test_an_answer_goes_into_later_actions_and_the_key_nowhere(
    tmp_path: Path, open_here: OpenRoom, engines: list[Engine]
) -> None:
    steps = [said('{"label": "billing"}'), Step(503), Step(401, body=f'{{"error": {{"message": "{KEY}"}}}}')]
    with Receiver(tmp_path / "ledger", {PATH: steps}) as receiver:
        room = open_here(ai_base_url=receiver.url("/v1"), ai_api_key=KEY, ai_model="m")
        stage = Stage(room, start(room, engines))
        stage.knows(status="open")
        asking = action("ASK_AI", prompt="Label: {{ conversation.id }}", json=True)
        with capture_logs() as lines:
            row = stage.acts(asking, action("ADD_LABEL", labels=["{{ actions.1.output.json.label }}"]))
            late = stage.acts(asking)
            fatal = stage.acts(asking)
    assert (row.status, stage.state()["labels"]) == ("SUCCEEDED", ["billing"])
    assert (late.status, tree(late.error)["code"]) == ("PENDING", "AI_HTTP_RETRIABLE")
    assert stage.failure(fatal) == "AI_HTTP_ERROR"
    rows = [
        *room.all("SELECT error, output FROM automation_runs"),
        *room.all("SELECT output FROM run_actions"),
        *room.all("SELECT message, data FROM automation_logs"),
    ]
    assert KEY not in str(rows) + str(lines)


def test_a_prompt_that_renders_too_long_is_fatal(
    tmp_path: Path, open_here: OpenRoom, engines: list[Engine]
) -> None:
    with Receiver(tmp_path / "ledger") as receiver:
        room = open_here(ai_base_url=receiver.url("/v1"), ai_model="m")
        stage = Stage(room, start(room, engines))
        asking = action("ASK_AI", prompt="{{ text }}{{ text }}")
        assert stage.failure(stage.acts(asking, on={"text": "x" * 100_001})) == "CONFIG_INVALID"
        assert receiver.deliveries() == []
