"""Sealing: a text comes back under its key and under no other; where the key comes from."""

import base64
import stat
import threading
from pathlib import Path

import pytest

from shared.errors import ConfigError, SettingsError
from shared.seal_keys import read_seal_keys, write_seal_key
from shared.sealing import Seal, Unreadable
from shared.secrets import find_seal, make_seal
from shared.settings import Settings, load_settings

OLD, NEW = b"o" * 32, b"n" * 32


def settings(folder: Path, key: str | None = None) -> Settings:
    return Settings(_env_file=None, data_dir=folder, secrets_key=key)


def test_a_text_comes_back_and_is_not_seen_in_what_is_stored() -> None:
    seal = Seal([NEW])
    first, second = seal.close("tok-7Qé"), seal.close("tok-7Qé")
    assert seal.open(first) == seal.open(second) == "tok-7Qé"
    assert first != second
    assert "tok-7Q" not in first


def test_another_key_opens_nothing() -> None:
    with pytest.raises(Unreadable) as refused:
        Seal([NEW]).open(Seal([OLD]).close("tok-7Q"))
    assert "tok-7Q" not in str(refused.value)


@pytest.mark.parametrize("changed", ["", "x", "gAAAAA", "\u00e9"])
def test_what_was_changed_is_refused(changed: str) -> None:
    with pytest.raises(Unreadable):
        Seal([NEW]).open(changed)


def test_of_two_keys_the_first_seals_and_both_open() -> None:
    both = Seal([NEW, OLD])
    old = Seal([OLD]).close("a")
    assert both.open(old) == "a"
    assert not both.is_newest(old)
    assert both.is_newest(both.close("b"))
    assert Seal([NEW]).open(both.close("b")) == "b"


def test_keys_are_read_in_both_alphabets_of_base64() -> None:
    key = bytes(range(224, 256))
    plain, safe = write_seal_key(key), base64.urlsafe_b64encode(key).decode()
    assert plain != safe
    assert read_seal_keys(f"{plain} {safe}\n") == (key, key)


@pytest.mark.parametrize(
    "text", ["", "abc", "A" * 43, write_seal_key(b"x" * 31), " ".join([write_seal_key(NEW)] * 3)]
)
def test_what_is_no_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValueError, match="32 bytes in base64") as refused:
        read_seal_keys(text)
    assert not text or text not in str(refused.value)


def test_the_setting_comes_before_the_file(tmp_path: Path) -> None:
    make_seal(settings(tmp_path))
    found = find_seal(settings(tmp_path, write_seal_key(NEW)))
    assert found is not None
    assert found.source == "SECRETS_KEY"
    assert found.seal.open(Seal([NEW]).close("a")) == "a"


def test_whoever_only_reads_makes_no_key(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    assert find_seal(settings(folder)) is None
    assert not folder.exists()


def test_the_file_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    sealed = make_seal(settings(folder)).close("a")
    assert make_seal(settings(folder)).open(sealed) == "a"
    (file,) = folder.iterdir()
    assert (file.name, stat.S_IMODE(file.stat().st_mode)) == ("secrets.key", 0o600)
    found = find_seal(settings(folder))
    assert found is not None
    assert found.source == str(file)


def test_of_many_who_make_the_key_at_once_all_get_the_same(tmp_path: Path) -> None:
    made: list[Seal] = []
    together = threading.Barrier(8)

    def make() -> None:
        together.wait(10)
        made.append(make_seal(settings(tmp_path)))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    sealed = made[0].close("a")
    assert [seal.open(sealed) for seal in made] == ["a"] * 8
    assert [file.name for file in tmp_path.iterdir()] == ["secrets.key"]


def test_a_file_that_holds_no_key_is_named_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "secrets.key").write_text("opensesame")
    with pytest.raises(ConfigError, match=r"secrets\.key: must be 32 bytes") as refused:
        make_seal(settings(tmp_path))
    assert "opensesame" not in str(refused.value)


@pytest.mark.parametrize("text", ["opensesame", "b3BlbnNlc2FtZQ==", " ".join([write_seal_key(NEW)] * 3)])
def test_a_bad_setting_stops_the_start_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRETS_KEY", text)
    with pytest.raises(SettingsError, match=r"SECRETS_KEY: .*32 bytes in base64") as refused:
        load_settings()
    assert text not in str(refused.value)


def test_two_keys_with_a_space_between_are_a_setting(tmp_path: Path) -> None:
    found = find_seal(settings(tmp_path, f"{write_seal_key(NEW)} {write_seal_key(OLD)}"))
    assert found is not None
    assert found.seal.open(Seal([OLD]).close("a")) == "a"
    assert found.seal.is_newest(found.seal.close("b"))
