"""What every request passes: ids, methods, keys, bodies, and the envelope of what is refused."""

import pytest

from tests.calling import Api


def test_the_process_is_up_and_ready(api: Api) -> None:
    assert api("GET", "/healthz").json() == {"status": "ok"}
    ready = api("GET", "/readyz")
    assert ready.status_code == 200
    assert ready.json() == {"status": "ok", "redis": "ok", "sql": "ok", "migrations": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/healthz", 405, "method_not_allowed"),
        ("GET", "/healthz/", 404, "not_found"),
        ("GET", "/v1/nowhere", 404, "not_found"),
        ("GET", "/a%00b", 400, "malformed"),
        ("GET", "/healthz?a=%00", 400, "malformed"),
    ],
)
def test_what_is_refused_has_one_shape(api: Api, method: str, path: str, status: int, code: str) -> None:
    refused = api(method, path)
    assert refused.status_code == status
    assert refused.json()["error"] == code
    assert refused.json().keys() == {"error", "message", "details"}


def test_head_is_get_without_a_body_and_options_names_what_can_be_done(api: Api) -> None:
    head = api("HEAD", "/healthz")
    assert (head.status_code, head.content) == (200, b"")
    options = api("OPTIONS", "/healthz")
    assert (options.status_code, options.headers["Allow"]) == (204, "GET, HEAD, OPTIONS")
    assert api("POST", "/healthz").headers["Allow"] == "GET, HEAD, OPTIONS"


def test_each_answer_has_an_id_and_gives_back_one_that_was_sent(api: Api) -> None:
    assert api("GET", "/healthz", headers={"X-Request-Id": "abc-1"}).headers["X-Request-Id"] == "abc-1"
    made = {api("GET", "/nowhere", headers={"X-Request-Id": "a b"}).headers["X-Request-Id"] for _ in "12"}
    assert len(made) == 2
