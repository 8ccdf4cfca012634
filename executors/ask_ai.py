"""ASK_AI: one question to a language model, one answer that later actions may use."""

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import orjson

from executors.contract import ActionResult, RunContext
from executors.outbound import READ_BYTES, Answer, OutboundRequest
from executors.targets import Target, parse_target
from executors.webhook_answers import Codes, check_status, parse_retry_after
from shared.errors import FatalError
from shared.masking import MASK
from shared.model.actions import AskAi

CODES: Final = Codes(retriable="AI_HTTP_RETRIABLE", fatal="AI_HTTP_ERROR")
BAD_ANSWER: Final = "AI_BAD_ANSWER"
NOT_CONFIGURED: Final = "AI_NOT_CONFIGURED"
USER_AGENT: Final = "Knockon/1"
SAID_MAX: Final = 200
FENCE: Final = "```"
COUNTS: Final = ("prompt_tokens", "completion_tokens", "total_tokens")


def ask_ai(config: AskAi, run: RunContext) -> ActionResult:
    """Ask the configured service; its key is in no output and no error, even where the service repeats it.

    Raises FatalError AI_NOT_CONFIGURED, AI_HTTP_ERROR, AI_BAD_ANSWER; RetryableError AI_HTTP_RETRIABLE on
    408, 425, 429 and 5xx; and what `Outbound.exchange` raises.
    """
    target = _target(run)
    request = OutboundRequest(
        method="POST",
        target=target,
        headers=_headers(run),
        body=orjson.dumps(_question(config, run)),
        allow_private=True,  # the operator named this very host
        kept_bytes=READ_BYTES,
    )
    answer = run.http.exchange(request, run.deadline)
    body = _masked(answer.body.decode("utf-8", "replace"), run.ai.api_key)
    retry_after = parse_retry_after(answer.headers.get("retry-after"), run.http.clock.now())
    check_status(answer.status, f"POST {target.shown}{_complaint(answer, body)}", retry_after, CODES)
    return ActionResult(_output(config, answer, body))


def _target(run: RunContext) -> Target:
    if run.ai.base_url is None:
        raise FatalError(NOT_CONFIGURED, "AI_BASE_URL is not set")
    return parse_target(f"{run.ai.base_url}/chat/completions")


def _headers(run: RunContext) -> Mapping[str, str]:
    headers = {
        "user-agent": USER_AGENT,
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "idempotency-key": run.idempotency_id,
    }
    key = run.ai.api_key
    return headers if key is None else {**headers, "authorization": f"Bearer {key}"}


def _question(config: AskAi, run: RunContext) -> Mapping[str, Any]:
    model = config.model or run.ai.model
    if model is None:
        raise FatalError(NOT_CONFIGURED, "neither the action names a model nor AI_MODEL does")
    system = [{"role": "system", "content": config.system}] if config.system is not None else []
    question: dict[str, Any] = {
        "model": model,
        "messages": [*system, {"role": "user", "content": config.prompt}],
        "max_tokens": config.max_tokens,
    }
    if config.temperature is not None:
        question["temperature"] = config.temperature
    if config.wants_json:
        question["response_format"] = {"type": "json_object"}
    return question


def _masked(text: str, key: str | None) -> str:
    return text.replace(key, MASK).replace("\0", "\ufffd") if key else text.replace("\0", "\ufffd")


def _complaint(answer: Answer, body: str) -> str:
    """Give what the service says is wrong, for the message of an error."""
    if answer.status < 400:
        return ""
    said = _at(_parsed(body), "error", "message")
    return f" ({_one_line(said)})" if isinstance(said, str) else ""


def _output(config: AskAi, answer: Answer, body: str) -> Mapping[str, Any]:
    if answer.is_cut:
        raise FatalError(BAD_ANSWER, f"the answer is larger than {READ_BYTES} bytes")
    told = _parsed(body)
    text = _at(told, "choices", 0, "message", "content")
    if not isinstance(text, str):
        raise FatalError(BAD_ANSWER, f"the answer holds no choices[0].message.content{_reasons(told)}")
    counts = {name: _at(told, "usage", name) for name in COUNTS}
    output = {
        "text": text,
        "model": _at(told, "model"),
        "finish_reason": _at(told, "choices", 0, "finish_reason"),
        "usage": {name: count for name, count in counts.items() if isinstance(count, int)},
    }
    return output | ({"json": _read_json(text)} if config.wants_json else {})


def _reasons(told: Any) -> str:
    """Give what the service says of why there is no text."""
    refusal = _at(told, "choices", 0, "message", "refusal")
    given = {"refusal": refusal, "finish_reason": _at(told, "choices", 0, "finish_reason")}
    said = [f"{name}: {_one_line(text)}" for name, text in given.items() if isinstance(text, str) and text]
    return f" ({'; '.join(said)})" if said else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())[:SAID_MAX]


def _read_json(text: str) -> Any:
    """Read the text as JSON, also where the model put it into a fenced block."""
    plain = text.strip()
    if plain.startswith(FENCE) and plain.endswith(FENCE):
        plain = plain.removesuffix(FENCE).partition("\n")[2]
    try:
        return json.loads(plain, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FatalError(BAD_ANSWER, "the text of the answer is not JSON") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _at(tree: Any, *path: str | int) -> Any:
    """Follow a path of keys and indexes; None where it leads nowhere."""
    for step in path:
        if isinstance(step, str) and isinstance(tree, Mapping):
            tree = tree.get(step)
        elif isinstance(step, int) and isinstance(tree, list) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree
