"""What the doctor finds of the API, by asking it."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from knockon.doctor_api import examine_api
from knockon.findings import Finding, Level
from knockon.keeping import only_one
from shared.ports import free_port
from shared.services.backends import open_backends
from shared.settings import Settings
from tests.calling import Api, serving


@pytest.fixture
def settings(sqlite_url: str, redis_url: str, tmp_path: Path) -> Settings:
    values = {"redis_url": redis_url, "database_url": sqlite_url, "data_dir": tmp_path / "data"}
    return Settings.model_validate(values)


@pytest.fixture
def api(settings: Settings) -> Iterator[Api]:
    backends = open_backends(settings, 5)
    with serving(settings, backends) as served:
        yield served
    backends.close()


def found(settings: Settings, port: int) -> Finding:
    (finding,) = examine_api(settings.model_copy(update={"api_port": port}))
    return finding


def test_an_api_that_serves_is_well(settings: Settings, api: Api) -> None:
    finding = found(settings, urlsplit(api.url).port or 0)
    assert (finding.level, finding.text) == (Level.OK, f"serves at {api.url}")


def test_an_api_that_lacks_something_is_a_failure_that_names_it(
    settings: Settings, api: Api, tmp_path: Path
) -> None:
    api.backends.database.dispose()
    (tmp_path / "knockon.db").rename(tmp_path / "away.db")
    finding = found(settings, urlsplit(api.url).port or 0)
    assert (finding.level, finding.text) == (Level.FAIL, f"at {api.url} cannot serve: sql, migrations not ok")


def test_that_none_runs_is_a_failure_only_under_an_up(settings: Settings) -> None:
    port = free_port("127.0.0.1", 0)
    alone = found(settings, port)
    assert (alone.level, alone.fix) == (Level.WARN, "knockon up, or knockon run api")
    with only_one(settings.data_dir):
        kept = found(settings, port)
    assert (kept.level, kept.fix) == (Level.FAIL, "see what knockon up prints")


def test_a_port_that_the_system_chose_is_not_asked(settings: Settings) -> None:
    assert found(settings, 0).level is Level.OK
