"""A server that is away makes the API answer 503 and nothing worse; it serves again by itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.services.backends import open_backends
from shared.services.workspaces import Scope
from shared.settings import Settings
from tests.calling import Api, serving

EVENT = {"type": "order.placed", "payload": {}}


@pytest.fixture
def without_redis(sqlite_url: str, tmp_path: Path) -> Iterator[Api]:
    """Give an API whose Redis is not there."""
    values = {
        "redis_url": f"unix://{tmp_path}/nobody.sock",
        "database_url": sqlite_url,
        "data_dir": tmp_path / "kept",
    }
    settings = Settings.model_validate(values)
    backends = open_backends(settings, 5)
    with serving(settings, backends) as served:
        yield served
    backends.close()


def test_what_needs_redis_is_not_served_without_it_and_the_rest_is(without_redis: Api) -> None:
    api = without_redis
    key = api.key(Scope.EVENTS_WRITE, Scope.ADMIN)
    for _ in "12":
        refused = api("POST", "/v1/events", key=key, json=EVENT, headers={"Idempotency-Key": "one"})
        assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
        assert int(refused.headers["Retry-After"]) >= 1
    other = {**EVENT, "type": "order.paid"}
    reused = api("POST", "/v1/events", key=key, json=other, headers={"Idempotency-Key": "one"})
    assert (reused.status_code, reused.json()["error"]) == (409, "idempotency_key_reused")
    assert api("GET", "/v1/flags", key=key).status_code == 200
    ready = api("GET", "/readyz")
    assert ready.status_code == 503
    assert ready.json() == {"status": "unavailable", "redis": "away", "sql": "ok", "migrations": "ok"}
    assert api("GET", "/healthz").status_code == 200


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_nothing_is_served_while_sql_is_away_and_all_of_it_afterwards(api: Api, tmp_path: Path) -> None:
    key = api.key()
    file, away = tmp_path / "knockon.db", tmp_path / "elsewhere.db"
    api.backends.database.dispose()
    file.rename(away)
    refused = api("GET", "/v1/flags", key=key)
    assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
    assert api("GET", "/readyz").json()["sql"] == "away"
    away.rename(file)
    assert api("GET", "/v1/flags", key=key).status_code == 200


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_database_without_its_tables_is_told_of(api: Api, tmp_path: Path) -> None:
    key = api.key()
    api.backends.database.dispose()
    for file in tmp_path.glob("knockon.db*"):
        file.unlink()
    (tmp_path / "knockon.db").touch()
    assert api("GET", "/readyz").json()["migrations"] == "behind"
    refused = api("GET", "/v1/flags", key=key)
    assert (refused.status_code, refused.json()["message"]) == (503, "the database has not been migrated")
