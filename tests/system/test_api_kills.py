"""The API dies in the middle of a write under an Idempotency-Key: its retry does what is left, no more."""

import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx2
import pytest

from shared.faults import FaultPoint
from shared.model.events import decode_entry
from shared.ports import free_port
from shared.services.workspaces import Scope, create_key
from tests.system import points
from tests.system.conftest import Opener
from tests.system.deployment import CALLER, KEYS, WORKSPACE, Deployment
from tests.waiting import poll

HOST = "127.0.0.1"
WANTED = {"email": "ada@example.com", "role": "viewer"}
EVENTS = [{"type": "order.placed", "payload": {"n": 1}}, {"type": "order.placed", "payload": {"n": 2}}]


class Caller:
    """Sends one write to the API of a deployment, which may be down."""

    def __init__(self, site: Deployment) -> None:
        self.port = free_port(HOST, 0)
        wanted = ("test", list(Scope))
        made = create_key(site.backends.database, site.backends.clock, CALLER, wanted)
        headers = {"Authorization": f"Bearer {made.text}", "Idempotency-Key": "one"}
        self._client = httpx2.Client(
            base_url=f"http://{HOST}:{self.port}", headers=headers, trust_env=False, timeout=20
        )

    def close(self) -> None:
        self._client.close()

    def post(self, path: str, body: Any) -> httpx2.Response:
        return self._client.post(path, json=body)

    def is_ready(self) -> bool:
        try:
            return self._client.get("/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    def post_until_done(self, path: str, body: Any) -> httpx2.Response:
        """Send the write until it is not being worked on any more, as a client does that is told to wait."""

        def settled() -> httpx2.Response | None:
            answer = self.post(path, body)
            return None if answer.json().get("error") == "in_progress" else answer

        answer = poll(settled, 20, every_s=0.5)
        assert answer is not None
        return answer


@pytest.fixture
def site(opened: Opener) -> Deployment:
    return opened()


@pytest.fixture
def caller(site: Deployment) -> Iterator[Caller]:
    with closing(Caller(site)) as made:
        yield made


def killed_at(site: Deployment, caller: Caller, point: FaultPoint, path: str, body: Any) -> None:
    """Have the API die at a point of this write, and another one take its place."""
    doomed = site.fleet.start("api", fault=f"{point}:kill9", API_PORT=caller.port)
    poll(caller.is_ready, 30)
    with pytest.raises(httpx2.TransportError):
        caller.post(path, body)
    assert doomed.wait() == -signal.SIGKILL
    site.fleet.start("api", API_PORT=caller.port)
    poll(caller.is_ready, 30)


@pytest.mark.parametrize("point", points.REQUEST)
def test_a_write_is_done_once_though_the_api_dies(
    site: Deployment, caller: Caller, point: FaultPoint
) -> None:
    killed_at(site, caller, point, "/v1/members", WANTED)
    answer = caller.post_until_done("/v1/members", WANTED)
    expected = {
        FaultPoint.REQUEST_AFTER_CLAIM: (201, None, None),
        FaultPoint.REQUEST_BEFORE_ANSWER: (409, "answer_lost", None),
        FaultPoint.REQUEST_AFTER_ANSWER: (201, None, "true"),
    }
    told = (answer.status_code, answer.json().get("error"), answer.headers.get("Idempotency-Replayed"))
    assert told == expected[point]
    made = site.all("SELECT id FROM members WHERE email = :email", email=WANTED["email"])
    assert len(made) == 1


def test_events_that_were_sent_before_the_api_died_are_known_again(site: Deployment, caller: Caller) -> None:
    site.automation({"type": "CREATE_NOTIFICATION", "config": {"title": "n"}})
    killed_at(site, caller, FaultPoint.REQUEST_BEFORE_ANSWER, "/v1/events", EVENTS)
    assert caller.post_until_done("/v1/events", EVENTS).status_code == 202
    entries = site.backends.redis.xrange(KEYS.stream)
    events = [decode_entry(entry_id.decode(), fields) for entry_id, fields in entries]
    assert len(events) == 4
    assert len({event.id for event in events}) == 2
    site.fleet.start("matcher")
    site.fleet.start("worker")
    site.await_ended(2)
    assert site.statuses() == ["SUCCEEDED", "SUCCEEDED"]
    assert {event.workspace_id for event in events} == {WORKSPACE}


def test_the_api_ends_in_order_and_tells_of_a_taken_port_in_one_line(
    site: Deployment, caller: Caller
) -> None:
    first = site.fleet.start("api", API_PORT=caller.port)
    poll(caller.is_ready, 30)
    second = site.fleet.start("api", API_PORT=caller.port)
    assert second.wait() == 1
    said = second.log.read_text().strip().splitlines()
    assert len(said) == 1
    assert f"API_PORT: cannot listen on {HOST}, port {caller.port}" in said[0]
    first.ask_to_end()
    assert first.wait() == 0
    assert first.has_logged("api_stopped")
