"""Who may read the metrics over HTTP, and where."""

from contextlib import ExitStack

import httpx2
import pytest

from api.beating import beating
from api.metrics import served_apart
from shared.beats import count_beating
from shared.errors import SettingsError
from shared.metrics.exposition import CONTENT_TYPE, Metrics
from shared.ports import free_port
from shared.services.backends import Backends
from shared.settings import Settings
from tests.calling import Api, serving
from tests.waiting import poll


def test_this_machine_reads_them_without_a_key(api: Api) -> None:
    answer = api("GET", "/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == CONTENT_TYPE
    assert 'knockon_up{part="redis"} 1.0' in answer.text
    assert 'knockon_up{part="sql"} 1.0' in answer.text


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"])
def test_what_came_through_a_proxy_is_not_answered(api: Api, header: str) -> None:
    answer = api("GET", "/metrics", headers={header: "203.0.113.9"})
    assert answer.status_code == 404
    assert "METRICS_PORT" in answer.json()["message"]


@pytest.mark.parametrize("given", [{"api_host": "0.0.0.0"}, {"metrics_port": 1}, {"api_host": "example.org"}])
def test_an_api_that_others_reach_does_not_serve_them(
    settings: Settings, backends: Backends, given: dict[str, object]
) -> None:
    with serving(settings.model_copy(update=given), backends) as api:
        assert api("GET", "/metrics").status_code == 404


def test_a_port_of_their_own_serves_them_until_the_end(settings: Settings, backends: Backends) -> None:
    port = free_port("127.0.0.1", 0)
    apart = settings.model_copy(update={"metrics_port": port})
    url = f"http://127.0.0.1:{port}/metrics"
    with served_apart(apart, Metrics(backends)):
        assert 'knockon_up{part="sql"} 1.0' in httpx2.get(url, trust_env=False).text
        with pytest.raises(SettingsError, match="METRICS_PORT: cannot listen on"), ExitStack() as stack:
            stack.enter_context(served_apart(apart, Metrics(backends)))
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(url, trust_env=False)


def test_a_process_that_serves_is_counted_and_one_that_has_ended_is_not(backends: Backends) -> None:
    def counted() -> int:
        return count_beating(backends.redis, backends.keys, "api", backends.clock.now())

    with beating(backends):
        poll(counted)
    assert counted() == 0
