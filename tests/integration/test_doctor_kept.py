"""What the doctor says about secrets and retention."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from knockon.doctor_kept import examine_kept
from knockon.findings import Level
from shared.seal_keys import write_seal_key
from shared.sealing import Seal
from shared.secrets import make_seal
from shared.services.backends import Backends
from shared.services.secrets import SecretStore, set_secret
from shared.settings import Settings
from shared.time.clock import ManualClock, SystemClock
from tests.history import DAY, Runs, add_runs
from tests.people import CALLER, opened_backends
from tests.watchdog_stage import close_stage, open_stage

OLD, NEW = b"o" * 32, b"n" * 32


@pytest.fixture
def opened(database_url: str, redis_url: str) -> Iterator[Backends]:
    with opened_backends(database_url, redis_url) as backends:
        yield backends


def put(opened: Backends, name: str, key: bytes) -> None:
    set_secret(SecretStore(opened.database, opened.clock, Seal([key])), CALLER, name, "opensesame")


def found(opened: Backends, settings: Settings, at: int = 0) -> tuple[Level, str]:
    finding = list(examine_kept(opened.database, settings))[at]
    assert "opensesame" not in finding.text
    return finding.level, finding.text


def settings(folder: Path, *keys: bytes) -> Settings:
    return Settings(_env_file=None, data_dir=folder, secrets_key=" ".join(map(write_seal_key, keys)) or None)


def test_the_source_of_the_key_is_told(opened: Backends, tmp_path: Path) -> None:
    assert found(opened, settings(tmp_path))[0] is Level.OK
    put(opened, "k1", NEW)
    assert found(opened, settings(tmp_path, NEW)) == (Level.OK, "1, under the key of SECRETS_KEY")
    level, text = found(opened, settings(tmp_path))
    assert (level, "neither SECRETS_KEY nor" in text) == (Level.FAIL, True)


def test_a_key_file_is_enough_for_one_machine_only(opened: Backends, tmp_path: Path) -> None:
    make_seal(settings(tmp_path))
    level, text = found(opened, settings(tmp_path))
    assert level is (Level.OK if opened.database.dialect == "sqlite" else Level.WARN)
    assert str(tmp_path / "secrets.key") in text


def test_what_another_key_closed_is_named(opened: Backends, tmp_path: Path) -> None:
    for number in range(7):
        put(opened, f"k{number}", OLD)
    level, text = found(opened, settings(tmp_path, NEW))
    assert level is Level.FAIL
    assert text.startswith("k0 (w1), k1 (w1), k2 (w1), k3 (w1), k4 (w1) and 2 more cannot be decrypted")
    level, text = found(opened, settings(tmp_path, NEW, OLD))
    assert (level, "still need the second key" in text) == (Level.WARN, True)
    for number in range(7):
        put(opened, f"k{number}", NEW)
    assert found(opened, settings(tmp_path, NEW, OLD))[0] is Level.OK


def test_a_file_that_is_no_key_fails(opened: Backends, tmp_path: Path) -> None:
    (tmp_path / "secrets.key").write_text("nonsense")
    assert found(opened, settings(tmp_path))[0] is Level.FAIL


def test_a_retention_that_is_behind_is_told(opened: Backends, database_url: str, redis_url: str) -> None:
    stage = open_stage(database_url, redis_url)
    stage = replace(stage, clock=ManualClock(SystemClock().now()))
    own = Settings(_env_file=None)
    add_runs(stage, stage.automation(), Runs(made=30 * DAY, ended=30 * DAY))
    assert found(opened, own, at=1)[0] is Level.OK
    add_runs(stage, stage.automation(), Runs(made=32 * DAY, ended=32 * DAY))
    level, text = found(opened, own, at=1)
    assert (level, str((stage.clock.now() - 32 * DAY).date()) in text) == (Level.WARN, True)
    close_stage(stage)
