"""The secret store: what is stored, what is audited, and what an action gets of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from knockon.cli.app import make_app
from shared.db.secrets import list_secrets
from shared.errors import ConfigError, Conflict, FatalError, NotFound
from shared.seal_keys import write_seal_key
from shared.sealing import Seal
from shared.secrets import FoundSeal, find_seal, make_seal
from shared.services.backends import Backends, Caller
from shared.services.sealed import seal_to_write
from shared.services.secrets import SecretStore, drop_secret, open_secrets, set_secret
from shared.settings import Settings
from tests.people import CALLER, NOW, opened_backends
from tests.rooms import tree

KEY = b"k" * 32
VALUE = "tok-7Q-opensesame"


@pytest.fixture
def opened(database_url: str, redis_url: str) -> Iterator[Backends]:
    with opened_backends(database_url, redis_url) as backends:
        yield backends


def store(opened: Backends, key: bytes = KEY) -> SecretStore:
    return SecretStore(opened.database, opened.clock, Seal([key]))


def settings(tmp_path: Path, key: bytes | None = KEY) -> Settings:
    return Settings(_env_file=None, data_dir=tmp_path, secrets_key=key and write_seal_key(key))


def everything(opened: Backends) -> str:
    with opened.database.read() as conn:
        tables = ("secrets", "audit")
        return str([conn.execute(text(f"SELECT * FROM {table}")).all() for table in tables])


def audited(opened: Backends) -> list[tuple[str, str, bool, bool]]:
    """Give each audited action, its resource, and whether it tells of a before and an after."""
    with opened.database.read() as conn:
        rows = conn.execute(text("SELECT action, resource_type, resource_id, detail FROM audit ORDER BY id"))
        return [
            (row.action, f"{row.resource_type}:{row.resource_id}", *_sides(tree(row.detail))) for row in rows
        ]


def _sides(detail: Any) -> tuple[bool, bool]:
    return detail["before"] is not None, detail["after"] is not None


def test_a_secret_is_set_replaced_and_deleted_and_each_is_audited_without_the_value(opened: Backends) -> None:
    assert set_secret(store(opened), CALLER, "k1", VALUE).is_new
    assert not set_secret(store(opened), CALLER, "k1", VALUE + "-2").is_new
    with opened.database.read() as conn:
        assert [(row.name, row.created_at) for row in list_secrets(conn, "w1")] == [("k1", NOW)]
    drop_secret(opened.database, opened.clock, CALLER, "k1")
    with opened.database.read() as conn:
        assert list_secrets(conn, "w1") == []
    assert audited(opened) == [
        ("secret.created", "secret:k1", False, True),
        ("secret.updated", "secret:k1", True, True),
        ("secret.deleted", "secret:k1", True, False),
    ]
    assert "tok-7Q" not in everything(opened)


def test_an_action_gets_what_it_names_of_its_own_workspace(opened: Backends, tmp_path: Path) -> None:
    for name, value in (("k1", VALUE), ("k2", "two"), ("k3", "three")):
        set_secret(store(opened), CALLER, name, value)
    set_secret(store(opened), Caller("w2", "USER cli:bert"), "k1", "theirs")
    with opened.database.read() as conn:
        assert open_secrets(conn, settings(tmp_path), "w1", ["k1", "k2"]) == {"k1": VALUE, "k2": "two"}
        with pytest.raises(FatalError, match="no secret k2, k9") as missing:
            open_secrets(conn, settings(tmp_path), "w2", ["k1", "k2", "k9"])
    assert missing.value.code == "SECRET_MISSING"


@pytest.mark.parametrize(("key", "why"), [(b"o" * 32, "another key"), (None, "neither SECRETS_KEY nor")])
def test_without_its_key_a_secret_is_named_and_not_shown(
    opened: Backends, tmp_path: Path, key: bytes | None, why: str
) -> None:
    set_secret(store(opened), CALLER, "k1", VALUE)
    with opened.database.read() as conn, pytest.raises(FatalError, match=why) as refused:
        open_secrets(conn, settings(tmp_path, key), "w1", ["k1"])
    assert refused.value.code == "SECRET_UNREADABLE"
    assert "secret k1" in refused.value.message
    assert "tok-7Q" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "a" * 101, "é"])
def test_a_name_that_no_template_could_write_is_refused(opened: Backends, name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        set_secret(store(opened), CALLER, name, VALUE)


@pytest.mark.parametrize("value", ["", "x" * 16_385, "a\ud800"])
def test_a_value_that_cannot_be_kept_is_refused(opened: Backends, value: str) -> None:
    with pytest.raises(ConfigError, match="value"):
        set_secret(store(opened), CALLER, "k1", value)


def test_what_is_not_there_is_told(opened: Backends) -> None:
    with pytest.raises(NotFound, match="workspace 'nowhere'"):
        set_secret(store(opened), Caller("nowhere", "USER cli:anna"), "k1", VALUE)
    with pytest.raises(NotFound, match="no secret 'k1'"):
        drop_secret(opened.database, opened.clock, CALLER, "k1")
    assert audited(opened) == []


def test_nothing_is_sealed_beside_what_the_present_key_does_not_open(
    opened: Backends, tmp_path: Path
) -> None:
    set_secret(store(opened), CALLER, "k1", VALUE)
    for key in (None, b"o" * 32):
        with pytest.raises(Conflict, match=r"secrets k1 \(w1\)"):
            seal_to_write(opened.database, settings(tmp_path, key))
    assert not (tmp_path / "secrets.key").exists()
    both = f"{write_seal_key(b'o' * 32)} {write_seal_key(KEY)}"
    own = Settings(_env_file=None, data_dir=tmp_path, secrets_key=both)
    seal_to_write(opened.database, own)
    drop_secret(opened.database, opened.clock, CALLER, "k1")
    sealed = seal_to_write(opened.database, settings(tmp_path, None)).close("a")
    assert seal_to_write(opened.database, settings(tmp_path, None)).open(sealed) == "a"


def test_the_first_two_secrets_at_once_are_closed_with_one_key(
    opened: Backends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = settings(tmp_path, None)
    others: list[Seal] = []

    def find_and_be_overtaken(wanted: Settings) -> FoundSeal | None:
        found = find_seal(wanted)
        if not others:
            others.append(make_seal(own))
            set_secret(SecretStore(opened.database, opened.clock, others[0]), CALLER, "k1", VALUE)
        return found

    monkeypatch.setattr("shared.services.sealed.find_seal", find_and_be_overtaken)
    assert seal_to_write(opened.database, own).open(others[0].close("a")) == "a"


def test_the_command_refuses_a_second_key_and_says_what_helps(
    opened: Backends, database_url: str, tmp_path: Path
) -> None:
    set_secret(store(opened), CALLER, "k1", VALUE)
    servers = {"DATABASE_URL": database_url, "KNOCKON_WORKSPACE": "w1", "KNOCKON_DATA_DIR": str(tmp_path)}
    result = CliRunner().invoke(make_app(), ["secrets", "set", "k2"], env=servers, input=VALUE)
    assert result.exit_code == 1
    assert "knockon secrets delete NAME" in result.output
    assert not (tmp_path / "secrets.key").exists()


def test_the_command_takes_a_value_from_stdin_and_never_gives_it_back(
    opened: Backends, database_url: str, tmp_path: Path
) -> None:
    servers = {
        "DATABASE_URL": database_url,
        "KNOCKON_WORKSPACE": "w1",
        "KNOCKON_DATA_DIR": str(tmp_path / "d"),
    }
    said = ""

    def knockon(*arguments: str, stdin: str | None = None, code: int = 0) -> str:
        nonlocal said
        result = CliRunner().invoke(make_app(), ["secrets", *arguments], env=servers, input=stdin)
        assert result.exit_code == code, result.output
        said += result.output
        return result.output

    assert knockon("set", "k1", stdin=f"{VALUE}\n") == "created\n"
    assert "updated" in knockon("set", "k1", stdin=VALUE)
    assert "k1" in knockon("list")
    assert '"updated_at"' in knockon("list", "-o", "json")
    assert "fewer than 4" in knockon("set", "pin", stdin="123")
    assert "has 1 to" in knockon("set", "k2", stdin="", code=1)
    knockon("set", "k2", "value-as-argument", code=2)
    with opened.database.read() as conn:
        own = Settings(_env_file=None, data_dir=tmp_path / "d")
        assert open_secrets(conn, own, "w1", ["k1"]) == {"k1": VALUE}
    assert knockon("delete", "k1") == "deleted\n"
    assert "no secret 'k1'" in knockon("delete", "k1", code=1)
    assert VALUE not in said
