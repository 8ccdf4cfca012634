"""The door of the command: it is light, and Ctrl-C while the rest is loaded ends it quietly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED_AT = """
import os, signal, sys
from importlib.abc import MetaPathFinder

NAME = sys.argv[1]

class Interrupt(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == NAME:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from knockon.__main__ import main
sys.argv[1:] = ["runs", "list"]
"""


def run(code: str, *arguments: str) -> tuple[str, str, int]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout, done.stderr, done.returncode


@pytest.mark.parametrize("module", ["knockon.cli.app", "knockon.cli.runs", "redis", "sqlalchemy", "rq"])
def test_an_interrupt_while_modules_are_loaded_ends_without_a_word(module: str) -> None:
    assert run(f"{INTERRUPTED_AT}\nmain()", module) == ("", "", 130)


def test_an_interrupt_reaches_the_command_once_it_is_loaded() -> None:
    code = (
        "import signal, sys\n"
        "from knockon.__main__ import main\n"
        "sys.argv[1:] = ['--help']\n"
        "try:\n    main()\n"
        "except SystemExit:\n    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
    )
    out, _, _ = run(code)
    assert out.endswith("True\n")


def test_the_package_loads_the_client_only_when_it_is_asked_for() -> None:
    code = "import sys, knockon\nprint('redis' in sys.modules, knockon.Publisher.__module__)\n"
    assert run(code) == ("False knockon.client\n", "", 0)
    assert "has no attribute 'x'" in run("import knockon\nknockon.x")[1]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["runs", "list", "-h"], ["doctor"], ["doctor", "-o", "json"]], ids=" ".join
)
def test_a_command_whose_reader_has_gone_ends_without_a_word(tmp_path: Path, arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "knockon", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "KNOCKON_DATA_DIR": str(tmp_path)},
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.stderr, done.returncode) == ("", 141)
