"""What a person is told to type works in the shell, from where they are."""

import shlex
import sys
from pathlib import Path

import pytest

from knockon.up import command_name, shown_path
from shared.errors import ConfigError
from shared.folders import make_private
from shared.settings import Settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in a folder, with no `knockon` on PATH."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    return tmp_path


def test_a_path_beneath_the_folder_is_short_and_another_one_is_whole(folder: Path) -> None:
    assert shown_path(folder / "a" / "b.yaml") == "a/b.yaml"
    assert shown_path(Path("/somewhere/else")) == "/somewhere/else"
    assert shown_path(folder.parent / "c.yaml") == str(folder.parent / "c.yaml")


def test_a_path_is_quoted_for_the_shell(folder: Path) -> None:
    assert shlex.split(shown_path(folder / "it's a" / "$b")) == ["it's a/$b"]


def test_the_command_is_quoted_with_its_data_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(folder / "my tools" / "knockon"), "up"])
    data = folder / "my data"
    assert shlex.split(command_name(Settings(data_dir=data))) == [
        f"KNOCKON_DATA_DIR={data}",
        "my tools/knockon",
    ]


def test_what_is_no_folder_is_told(folder: Path) -> None:
    (folder / "data").write_text("a file")
    for place in (folder / "data", folder / "data" / "redis"):
        with pytest.raises(ConfigError, match="is no folder"):
            make_private(place)
