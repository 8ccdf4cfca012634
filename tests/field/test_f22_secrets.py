"""The bearer token in the run history.

Elsewhere a token that an action sent was shown in clear among the data of the run, and error objects
printed every header of the request. Here a secret is named in the automation, opened for one attempt, and
masked in all that comes of it before anything is recorded, whatever the endpoint echoes and however the
attempt ends.
"""

import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
import structlog
from sqlalchemy import text

from shared.db.schema import METADATA
from shared.logs import mask_secrets
from shared.seal_keys import write_seal_key
from shared.sealing import Seal
from shared.services.runs import ReplayFrom, replay
from shared.services.secrets import SecretStore, drop_secret, set_secret
from tests.field.conftest import Open
from tests.field.road import W1, Road
from tests.receiver import Step
from tests.rooms import tree

KEY = b"k" * 32
VALUE = "tok-7Q"
ECHO = f'{{"you sent": {{"Authorization": "Bearer {VALUE}", "X-Pair": "dG9rLTdR"}}}}'
SCRIPT = {"/x": [Step(401, body=ECHO, headers={"X-Echo": VALUE}), Step(200, body=ECHO)]}
AUTHORS_OWN = ("automations", "automation_versions")  # an author's text is kept as it was written


@pytest.fixture
def log_text() -> Iterator[StringIO]:
    """Write the log as a process does that tells everything."""
    stream = StringIO()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            mask_secrets,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
    )
    yield stream
    structlog.reset_defaults()


@pytest.fixture
def road(open_here: Open) -> Road:
    road = open_here(script=SCRIPT, secrets_key=write_seal_key(KEY))
    set_secret(store(road), W1, "k1", VALUE)
    return road


def store(road: Road) -> SecretStore:
    return SecretStore(road.room.database, road.clock, Seal([KEY]))


def hook(url: str) -> dict[str, Any]:
    """Make an action that sends the secret in each place where one can stand."""
    config = {
        "url": url.replace("://", "://u:pw@") + "?api_key={{ secrets.k1 }}",
        "headers": {"Authorization": "Bearer {{ secrets.k1 }}"},
        "body": {"token": "{{ secrets.k1 }}"},
    }
    return {"type": "SEND_WEBHOOK", "config": config, "retries": 0}


def recorded(road: Road, but: tuple[str, ...] = ()) -> str:
    """Give all that is on record, as text: every table, and the stream."""
    found = [str(road.room.parts.redis.xrange(road.room.parts.keys.stream))]
    with road.room.database.read() as conn:
        for name in METADATA.tables:
            if name not in but:
                found += [f"{name}: {row}" for row in conn.execute(text(f"SELECT * FROM {name}")).all()]
    return "\n".join(found)


def test_a_secret_is_sent_and_stands_nowhere(road: Road, log_text: StringIO) -> None:
    road.automation(hook(road.receiver.url("/x")), on="order.placed")
    road.automation(hook("http://127.0.0.1:9/x"), on="order.lost")
    for type_ in ("order.placed", "order.lost", "order.placed"):
        road.publish(type_)
        road.rest()

    sent = road.receiver.deliveries()
    assert [delivery.headers["authorization"] for delivery in sent] == [f"Bearer {VALUE}"] * 2
    assert {delivery.body for delivery in sent} == {b'{"token":"tok-7Q"}'}
    assert road.ends() == ["FAILED", "DEAD_LETTER", "SUCCEEDED"]

    refused, lost, succeeded = road.runs()
    said = tree(refused.error)
    assert said["code"] == "WEBHOOK_HTTP_ERROR"
    assert said["message"] == f"POST {road.receiver.url('/x')} answered 401"
    assert tree(lost.error)["code"] == "NET_ECONNREFUSED"
    output = tree(succeeded.output)["actions"]["1"]
    assert (output["status"], output["host"], output["path"]) == (200, "127.0.0.1", "/x")
    assert output["response"] == ECHO.replace(VALUE, "***").replace("dG9rLTdR", "***")

    assert len(road.notices()) == 1
    assert "action_failed" in log_text.getvalue()
    assert VALUE not in recorded(road) + log_text.getvalue()
    assert "pw" not in recorded(road, but=(*AUTHORS_OWN, "secrets")) + log_text.getvalue()


def test_a_secret_that_is_not_there_ends_the_run_and_a_replay_takes_what_is_there_then(road: Road) -> None:
    drop_secret(road.room.database, road.clock, W1, "k1")
    road.automation(hook(road.receiver.url("/y")), on="order.placed")
    road.publish("order.placed")
    road.rest()
    run = road.run()
    assert (run.status, road.code(run), run.retry_count) == ("FAILED", "SECRET_MISSING", 0)
    assert "k1" in tree(run.error)["message"]
    assert road.receiver.deliveries() == []
    set_secret(store(road), W1, "k1", "tok-8R")
    replay(road.post.backends, W1, [run.id], ReplayFrom.FAILED_ACTION)
    road.rest()
    assert [delivery.headers["authorization"] for delivery in road.receiver.deliveries()] == ["Bearer tok-8R"]
    assert road.ends() == ["SUCCEEDED"]


def test_a_secret_of_another_key_is_named_and_not_shown(road: Road) -> None:
    set_secret(SecretStore(road.room.database, road.clock, Seal([b"o" * 32])), W1, "k1", VALUE)
    road.automation(hook(road.receiver.url("/y")), on="order.placed")
    road.publish("order.placed")
    road.rest()
    assert road.code(road.run()) == "SECRET_UNREADABLE"
    assert "k1" in tree(road.run().error)["message"]
    assert road.receiver.deliveries() == []
    assert VALUE not in recorded(road)


def test_what_an_author_wrote_into_a_webhook_in_plain_text_is_masked_in_its_answer_too(
    open_here: Open,
) -> None:
    road = open_here(script={"/x": [Step(200, body="Bearer own-token-1, dTpwdy1vcGVu, key-in-query-2")]})
    url = road.receiver.url("/x").replace("://", "://u:pw-open@") + "?api_key=key-in-query-2"
    config = {"url": url, "headers": {"Authorization": "Bearer own-token-1"}}
    road.automation({"type": "SEND_WEBHOOK", "config": config}, on="order.placed")
    road.publish("order.placed")
    road.rest()
    assert tree(road.run().output)["actions"]["1"]["response"] == "Bearer ***, ***, ***"
