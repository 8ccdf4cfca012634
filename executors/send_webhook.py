"""SEND_WEBHOOK: one signed HTTP request in the form of Standard Webhooks 1.0."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from standardwebhooks import Webhook
from standardwebhooks.webhooks import EmptyWebhookSecretError

from executors.contract import ActionResult, RunContext
from executors.outbound import Answer, OutboundRequest
from executors.targets import Target, parse_target, redirect_target
from executors.webhook_answers import FOLLOWED, HTTP_ERROR, check_status, parse_retry_after
from shared.errors import FatalError
from shared.model.actions import SendWebhook
from shared.signing import split_secrets

MOST_REDIRECTS: Final = 3
USER_AGENT: Final = "Knockon/1"
BODILESS: Final = frozenset({"GET", "DELETE"})


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent on every hop: `open_headers` to all, `own_headers` and a signature to the first party."""

    method: str
    body: bytes
    open_headers: Mapping[str, str]
    own_headers: Mapping[str, str]
    secret: str | None


def send_webhook(config: SendWebhook, run: RunContext) -> ActionResult:
    """Send the configured body, or the trigger event; a repeat has the same `webhook-id`.

    Raises RetryableError WEBHOOK_HTTP_RETRIABLE on 408, 425, 429 and 5xx, FatalError WEBHOOK_HTTP_ERROR on
    any other answer but 2xx, FatalError for what is not allowed, and what `Outbound.exchange` raises.
    """
    target = parse_target(config.url)
    message = _compose(config, target, run)
    answer, reached = _deliver(message, target, run)
    shown = f"{message.method} {reached.shown}"
    check_status(
        answer.status, shown, parse_retry_after(answer.headers.get("retry-after"), run.http.clock.now())
    )
    output = {"status": answer.status, "host": reached.host, "path": reached.path, "response": _text(answer)}
    return ActionResult(output | ({"truncated": True} if answer.is_cut else {}))


def sign(secrets: str, message_id: str, at: datetime, body: bytes) -> str:
    """Write the `webhook-signature` header, with a signature by each of the secrets (`shared.signing`)."""
    try:
        hooks = [Webhook(secret) for secret in split_secrets(secrets) or ("",)]
        text = body.decode("utf-8")
        return " ".join(hook.sign(message_id, at.astimezone(UTC), text) for hook in hooks)
    except (ValueError, EmptyWebhookSecretError) as error:
        raise FatalError("CONFIG_INVALID", "secret: is not a webhook secret (whsec_ and base64)") from error


def _compose(config: SendWebhook, target: Target, run: RunContext) -> Message:
    body = _body(config, run)
    open_headers = {
        "user-agent": USER_AGENT,
        "accept": "*/*",
        "accept-encoding": "identity",
        "idempotency-key": run.idempotency_id,
        "x-knockon-entry-id": run.entry_id,
        "x-knockon-occurred-at": run.occurred_at.astimezone(UTC).isoformat(timespec="milliseconds"),
    }
    if body:
        open_headers["content-type"] = config.content_type
    own_headers = {name.lower(): value for name, value in config.headers.items()}
    if target.authorization is not None:
        own_headers.setdefault("authorization", target.authorization)
    secret = config.secret if config.secret is not None else run.http.policy.webhook_secret
    return Message(config.method, body, open_headers, own_headers, secret)


def _body(config: SendWebhook, run: RunContext) -> bytes:
    if isinstance(config.body, str):
        return config.body.encode("utf-8", "replace")
    if config.body is not None:
        return _json(config.body)
    return b"" if config.method in BODILESS else _json(run.event)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _deliver(message: Message, first: Target, run: RunContext) -> tuple[Answer, Target]:
    """Send, and send again as it is to where a 307 or 308 points; each hop is checked like the first."""
    target, visited, status = first, {first.url}, 0
    for _ in range(MOST_REDIRECTS + 1):
        request = OutboundRequest(message.method, target, _headers(message, first, target, run), message.body)
        answer = run.http.exchange(request, run.deadline)
        status, location = answer.status, answer.headers.get("location")
        if status not in FOLLOWED or location is None:
            return answer, target
        target = redirect_target(target, location)
        if target.url in visited:
            raise FatalError(HTTP_ERROR, f"{message.method} {first.shown} answered {status} in a loop")
        visited.add(target.url)
    raise FatalError(HTTP_ERROR, f"{message.method} {first.shown} answered {status} more than 3 times")


def _headers(message: Message, first: Target, target: Target, run: RunContext) -> Mapping[str, str]:
    """Give the headers of one hop, signed anew. Another party gets neither secrets nor a signature."""
    now = run.http.clock.now()
    stamps = {"webhook-id": run.idempotency_id, "webhook-timestamp": str(int(now.timestamp()))}
    if not _is_same_party(first, target):
        return {**message.open_headers, **stamps}
    if message.secret is not None:
        stamps["webhook-signature"] = sign(message.secret, run.idempotency_id, now, message.body)
    return {**message.open_headers, **message.own_headers, **stamps}


def _is_same_party(first: Target, target: Target) -> bool:
    """Compare origins; going up from plain http to https on the default ports keeps the party."""
    if first.origin == target.origin:
        return True
    up = first.origin._replace(scheme="https", port=443)
    return first.origin.scheme == "http" and first.origin.port == 80 and target.origin == up


def _text(answer: Answer) -> str:
    """Give the body as storable text; a compressed one is named instead, since it was asked for plain."""
    coding = answer.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        return f"({coding[:20]} body)"
    return answer.body.decode("utf-8", "replace").replace("\0", "\ufffd")
