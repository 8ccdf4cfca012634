"""The key of one workspace reaches nothing of another: over every route that names a thing."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shared.db.automations import find_by_reference
from shared.db.people import Notice, insert_notices
from shared.db.runs_new import insert_runs
from shared.services.automations import apply_changes
from shared.services.backends import Caller
from shared.services.definitions import Leftovers
from tests.api.test_openapi import GUARDED, UNKNOWN, WRITES
from tests.calling import Api
from tests.idle_rows import add_step
from tests.pending_rows import add_pending
from tests.people import definition
from tests.rooms import new_run

OTHER = Caller("w2", "USER cli:bob")
NAMED = [(method, path) for method, path in GUARDED if "{" in path and not path.startswith("/v1/subjects/")]


def things_of_w2(api: Api, key: str) -> Mapping[str, str]:
    """Make one of each thing in w2; give their ids by the collection that they are in."""
    database, now = api.backends.database, api.backends.clock.now()
    apply_changes(api.backends, OTHER, [definition("theirs")], Leftovers.KEEP)
    with database.begin() as conn:
        automation = find_by_reference(conn, "w2", "theirs")
        assert automation is not None
        run = replace(new_run(automation, {}), workspace_id="w2")
        insert_runs(conn, [run])
        add_step(conn, "theirs", workspace_id="w2")
        add_pending(conn, "theirs", automation.id, workspace_id="w2")
        insert_notices(conn, [Notice("w2", ("owner",), "t", "b", "run", run.id)], now=now)
    event = {"type": "order.placed", "payload": {"secretly": "theirs"}}
    published = api("POST", "/v1/events", key=key, json=event).json()
    api("POST", "/v1/secrets", key=key, json={"name": "THEIRS", "value": "x" * 20})
    api("POST", "/v2/ai_agents", key=key, json={"id": "theirs", "name": "Nora"})
    api("POST", "/v1/audience/channels", key=key, json={"id": "theirs", "name": "Shop", "kind": "sms"})
    wish = {"kind": "replay", "filter": {}}
    return {
        "automations": automation.id,
        "runs": run.id,
        "members": api("GET", "/v1/members", key=key).json()["items"][0]["id"],
        "api-keys": api("GET", "/v1/api-keys", key=key).json()["items"][0]["id"],
        "notifications": api("GET", "/v1/notifications", key=key).json()["items"][0]["id"],
        "secrets": "THEIRS",
        "events": published["entries"][0]["entry_id"],
        "pending-executions": "theirs",
        "ai_agents": "theirs",
        "audience": "theirs",
        "sequences": "theirs",
        "bulk": api("POST", "/v1/bulk", key=key, json=wish).json()["id"],
    }


def call(api: Api, method: str, path: str, name: str, key: str) -> Any:
    body: dict[str, Any] = {"json": {}} if method in WRITES else {}
    return api(method.upper(), re.sub(r"\{[^}]*\}", name, path), key=key, **body)


def test_a_thing_of_another_workspace_is_not_there(api: Api) -> None:
    ours, theirs = api.key(), api.key(workspace="w2")
    things = things_of_w2(api, theirs)
    for method, path in NAMED:
        name = things[path.split("/")[2]]
        refused = call(api, method, path, name, ours)
        assert refused.status_code in ((404, 422) if method in ("post", "patch") else (404,)), (method, path)
        unknown = f"{name}7" if path.startswith("/v1/events/") else UNKNOWN
        plain = call(api, method, path, unknown, ours)
        assert refused.status_code == plain.status_code
        assert refused.text.replace(name, unknown) == plain.text
    for method, path in NAMED:
        if method == "get":
            name = things[path.split("/")[2]]
            assert call(api, method, path, name, theirs).status_code in (200, 409), path
