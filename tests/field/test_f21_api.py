"""The filter stored, and not applied: the same over HTTP, where an id of another workspace is no id at all.

Neither the answer nor the work behind it may tell whether the id exists: the same statements are executed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

from shared.services.backends import Backends, open_backends
from shared.settings import Settings
from tests.calling import Api, serving
from tests.pending_rows import add_pending
from tests.waiting import poll

MANUAL = {
    "key": "mine",
    "name": "Mine",
    "trigger": {"type": "MANUAL"},
    "actions": [{"type": "CREATE_NOTIFICATION", "config": {"title": "Hello"}}],
}
ASKED: list[tuple[str, str, Any]] = [
    ("GET", "/v1/automations/AUTOMATION", None),
    ("PATCH", "/v1/automations/AUTOMATION", {"name": "Yours"}),
    ("DELETE", "/v1/automations/AUTOMATION", None),
    ("POST", "/v1/automations/AUTOMATION/run", None),
    ("POST", "/v1/automations/AUTOMATION/pause", None),
    ("GET", "/v1/automations/AUTOMATION/versions", None),
    ("GET", "/v1/runs?automation=AUTOMATION", None),
    ("GET", "/v1/logs?automation=AUTOMATION", None),
    ("GET", "/v1/logs/stream?automation=AUTOMATION", None),
    ("GET", "/v1/runs/RUN", None),
    ("POST", "/v1/runs/RUN/replay", {"from_start": True}),
    ("POST", "/v1/runs/RUN/cancel", {"force": True}),
    ("GET", "/v1/pending-executions?automation=AUTOMATION", None),
    ("GET", "/v1/pending-executions/WAITING", None),
    ("POST", "/v1/pending-executions/WAITING/cancel", None),
    ("GET", "/v1/subjects/order/SUBJECT", None),
    ("DELETE", "/v1/subjects/order/SUBJECT", None),
]


@pytest.fixture
def api(redis_url: str, database_url: str, tmp_path: Path) -> Iterator[Api]:
    values = {"redis_url": redis_url, "database_url": database_url, "data_dir": tmp_path / "kept"}
    settings = Settings.model_validate(values)
    backends = open_backends(settings, 5)
    with serving(settings, backends) as served:
        yield served
    backends.close()


@pytest.fixture
def theirs(api: Api) -> dict[str, str]:
    """Give the ids of an automation, a run, what waits and a subject of w1."""
    key = api.key()
    automation = api("POST", "/v1/automations", key=key, json=MANUAL).json()["id"]
    run = api("POST", "/v1/automations/mine/run", key=key).json()["run_id"]
    assert api("PUT", "/v1/subjects/order/o1", key=key, json={"data": {"total": 5}}).status_code == 201
    poll(lambda: is_noted(api.backends, key), 10)
    with api.backends.database.begin() as conn:
        waiting = add_pending(conn, "waiting-1", automation)
    return {"AUTOMATION": automation, "RUN": run, "WAITING": waiting, "SUBJECT": "o1"}


def asked(api: Api, backends: Backends, key: str, what: tuple[str, str, Any]) -> tuple[int, str, list[str]]:
    """Ask, and give the status, the body and the statements that it took."""
    statements: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    method, path, body = what
    engine = backends.database._engine
    event.listen(engine, "before_cursor_execute", note)
    answer = api(method, path, key=key, **({} if body is None else {"json": body}))
    event.remove(engine, "before_cursor_execute", note)
    return answer.status_code, answer.text, statements


def is_noted(backends: Backends, key: str) -> bool:
    """Tell whether the use of a key is noted, which is done once, beside the request."""
    with backends.database.read() as conn:
        found = text("SELECT count(*) FROM api_keys WHERE last4 = :last4 AND last_used_at IS NOT NULL")
        return bool(conn.scalar(found, {"last4": key[-4:]}))


def put_in(path: str, ids: dict[str, str]) -> str:
    for name, found in ids.items():
        path = path.replace(name, found)
    return path


@pytest.mark.parametrize("what", ASKED, ids=lambda what: f"{what[0]} {what[1]}")
def test_an_id_of_another_workspace_is_answered_as_one_that_does_not_exist(
    api: Api, theirs: dict[str, str], what: tuple[str, str, Any]
) -> None:
    key = api.key(workspace="w2")
    api("GET", "/v1/runs", key=key)
    poll(lambda: is_noted(api.backends, key), 10)
    nobody = {name: f"{found[:-1]}x" for name, found in theirs.items()}
    method, path, body = what
    status, text, statements = asked(api, api.backends, key, (method, put_in(path, theirs), body))
    none_status, none_text, none_statements = asked(
        api, api.backends, key, (method, put_in(path, nobody), body)
    )
    assert (status, none_status) == (404, 404)
    for name, found in theirs.items():
        text, none_text = text.replace(found, name), none_text.replace(nobody[name], name)
    assert text == none_text
    assert statements == none_statements


def test_lists_of_another_workspace_hold_nothing_of_it(api: Api, theirs: dict[str, str]) -> None:
    key = api.key(workspace="w2")
    paths = ("/v1/automations", "/v1/runs", "/v1/pending-executions", "/v1/logs", "/v1/audit")
    for path in (*paths, f"/v1/logs?run={theirs['RUN']}"):
        text = api("GET", path, key=key).text
        named = (theirs["AUTOMATION"], theirs["RUN"], theirs["WAITING"], "mine")
        assert not [found for found in named if found in text]
