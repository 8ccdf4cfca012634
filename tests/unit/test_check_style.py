"""The rules of style that `make style` checks: each is broken once, and once kept."""

from pathlib import Path

import pytest

from tools.check_style import check_module, check_text, main


def messages(source: str, path: str = "pipeline/drive.py") -> list[str]:
    return [breach.message for breach in check_module(path, source)]


def nested(depth: int) -> str:
    lines = ["def f(x):"] + ["    " * level + "if x:" for level in range(1, depth + 1)]
    return "\n".join([*lines, "    " * (depth + 1) + "pass"])


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\n" * 301, "301 lines"),
        ("def f():\n" + "    x = 1\n" * 40, "41 lines"),
        (nested(4), "nested 4 deep"),
        ("def f(a, b, c, d, e, g): ...", "6 parameters"),
        ("def f(a, *, b: int, c, d, e, g): ...", "6 parameters"),
        ("class A:\n" + "".join(f"    def m{n}(self): ...\n" for n in range(13)), "13 methods"),
        ("def f():\n    import os", "imports stand at the top"),
        ("class RunManager: ...", "says nothing"),
        ("class BaseAction: ...", "says nothing"),
        ("def f(dry: bool): ...", "boolean parameter dry"),
        ("def f(*, dry: bool | None = None): ...", "boolean parameter dry"),
        ("try:\n    f()\nexcept Exception:\n    pass", "catches everything"),
        ("try:\n    f()\nexcept (OSError, BaseException):\n    pass", "catches everything"),
        ("try:\n    f()\nexcept:\n    pass", "catches everything"),
        ("log.info(f'moved {x}')", "constant text"),
        ("self.log.info(event)", "constant text"),
        ("log.warning('moved', to=f'{x}')", "formatted text"),
        ("time.sleep(1)", "just sleeps"),
        ("from time import sleep", "import time itself"),
        ("datetime.now(UTC)", "reads the clock"),
        ("datetime.datetime.now()", "reads the clock"),
        ("time.monotonic()", "reads the clock"),
        ("import pickle", "loads objects from bytes"),
        ("from pickle import loads", "loads objects from bytes"),
        ("Q = 'SELECT id FROM runs'", "SQL outside"),
        ("Q = f'UPDATE runs SET a = {b}'", "SQL outside"),
    ],
)
def test_a_breach_is_told(source: str, told: str) -> None:
    assert any(told in message for message in messages(source)), messages(source)


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\n" * 300,
        "def f():\n" + "    x = 1\n" * 39,
        nested(3),
        "def f(self, a, b, c, d, e): ...",
        "def f(x):\n    if x: ...\n    elif y: ...\n    elif z:\n        if x:\n            if y: ...",
        "class Protocols(Protocol):\n" + "".join(f"    def m{n}(self, a: bool): ...\n" for n in range(13)),
        "class A(B):\n    @override\n    def m(self, a: bool): ...",
        "class DatabaseFault: ...",
        "try:\n    f()\nexcept ValueError:\n    pass",
        "log.info('run_moved', to=to)",
        "math.log(f(x))",
        "clock.now()",
        "Q = 'Select a row'",
        '"""A docstring may tell of SELECT x FROM y."""',
    ],
)
def test_what_keeps_the_rules_is_not(source: str) -> None:
    assert messages(source) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("shared/time/clock.py", "time.monotonic()"),
        ("tests/unit/test_x.py", "time.monotonic()"),
        ("tests/unit/test_x.py", "import pickle"),
        ("shared/db/runs.py", "Q = 'SELECT id FROM runs'"),
        ("migrations/versions/0001_x.py", "x = 1\n" * 400),
        ("pipeline/perform.py", "try:\n    f()\nexcept Exception:\n    pass"),
        ("tests/unit/test_x.py", "def f(a, b, c, d, e, g): ..."),
    ],
)
def test_a_rule_stops_at_its_exemptions(path: str, source: str) -> None:
    assert messages(source, path) == []


@pytest.mark.parametrize("path", ["shared/utils.py", "worker/data.py", "matcher/run_helper.py"])
def test_a_module_is_named_for_what_it_is(path: str) -> None:
    assert messages("", path) == ["this module's name says nothing"]


@pytest.mark.parametrize(
    ("source", "count"), [('"""Only this."""\n', 0), ('"""And."""\nx = 1\n', 1), ("", 1)]
)
def test_an_init_module_is_a_docstring(source: str, count: int) -> None:
    assert len(messages(source, "worker/__init__.py")) == count


def test_the_door_of_the_client_may_load_it() -> None:
    assert (
        messages(
            '"""The face."""\nfrom knockon.client import Publisher as Publisher\n', "knockon/__init__.py"
        )
        == []
    )


def test_text_of_any_kind_holds_no_path_of_one_machine_and_nothing_unfinished() -> None:
    text = "see /tm" + "p/x\n# TO" + "DO later\nhttps://example.test/work/x and a/root\n"
    assert [breach.line for breach in check_text("docs/a.md", text)] == [1, 2]
    assert [breach.line for breach in check_text("tests/a.py", text)] == [2]


def test_a_tree_is_walked_and_the_exit_code_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "worker").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "bad.py").write_text("import pickle\n")
    assert main([str(tmp_path)]) == 0
    (tmp_path / "worker" / "loop.py").write_text("import pickle\n")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == "worker/loop.py:1: loads objects from bytes: use JSON\n"
