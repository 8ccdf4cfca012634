"""The OpenAPI document is true: over every route that it lists."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from fastapi import FastAPI

from api.app import ROUTERS
from api.openapi import describe
from shared.services.workspaces import Scope, hash_key
from tests.calling import READ_SCOPES, Api

WRITES = ("post", "put", "patch", "delete")
UNKNOWN = "01900000-0000-7000-8000-000000000000"


@cache
def document() -> dict[str, Any]:
    app = FastAPI(title="t")
    for router in ROUTERS:
        app.include_router(router)
    return describe(app)


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


GUARDED = [(method, path) for method, path, operation in operations() if "security" in operation]
OPEN = {"/healthz", "/readyz", "/metrics"}


def scopes_of(method: str, path: str) -> list[str]:
    (needed,) = document()["paths"][path][method]["security"]
    found: list[str] = needed["key"]
    return found


def filled(path: str) -> str:
    return re.sub(r"\{[^}]*\}", UNKNOWN, path)


def body_of(method: str) -> dict[str, Any]:
    return {"json": {}} if method in WRITES else {}


def test_every_route_needs_a_key_but_the_probes() -> None:
    assert {path for _, path, operation in operations() if "security" not in operation} <= OPEN
    assert all(path.startswith(("/v1/", "/v2/")) for _, path in GUARDED)


@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_each_route_names_its_scopes_and_how_it_refuses(method: str, path: str) -> None:
    assert {*scopes_of(method, path)} <= {*Scope}
    assert scopes_of(method, path)
    operation = document()["paths"][path][method]
    for status in ("400", "401", "403", "404", "422", "503"):
        shown = operation["responses"][status]["content"]["application/json"]["schema"]
        assert shown == {"$ref": "#/components/schemas/Refusal"}
    has_key = any(given["name"] == "Idempotency-Key" for given in operation.get("parameters", ()))
    assert has_key == (method in WRITES)


def test_a_key_that_was_revoked_or_never_was_opens_nothing(api: Api) -> None:
    key, admin = api.key(), api.key(Scope.ADMIN)
    with api.backends.database.begin() as conn:
        conn.exec_driver_sql(
            f"UPDATE api_keys SET revoked_at = created_at WHERE key_hash = '{hash_key(key)}'"
        )
    for method, path in GUARDED:
        for bad in (key, "kn_live_x", "x" * 500, None):
            refused = api(method.upper(), filled(path), key=bad, **body_of(method))
            assert refused.status_code == 401, (method, path, bad)
            assert refused.json()["error"] == "unauthorized"
            assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert api("GET", "/v1/flags", key=admin).status_code == 200


def test_a_key_without_the_scope_is_turned_away(api: Api) -> None:
    keys = {scope.value: api.key(*(each for each in Scope if each is not scope)) for scope in Scope}
    reader = api.key(*READ_SCOPES)
    for method, path in GUARDED:
        for scope in scopes_of(method, path):
            refused = api(method.upper(), filled(path), key=keys[scope], **body_of(method))
            assert (refused.status_code, refused.json()["error"]) == (403, "forbidden"), (method, path)
            assert refused.json()["details"] == {"scopes": [scope]}
        if not {*scopes_of(method, path)} <= {*READ_SCOPES}:
            assert api(method.upper(), filled(path), key=reader, **body_of(method)).status_code == 403


def test_what_takes_an_id_answers_404_for_one_that_is_not_there(api: Api) -> None:
    key = api.key()
    for method, path in GUARDED:
        if method not in ("get", "delete") or "{" not in path:
            continue
        refused = api(method.upper(), filled(path), key=key)
        assert (refused.status_code, refused.json()["error"]) == (404, "not_found"), (method, path)
