"""Plug-ins laid where they are found: the example's wheel, and distributions that a test writes."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.pages import ROOT

EXAMPLE = ROOT / "examples" / "plugin-executor"


def install_example(target: Path) -> Path:
    """Build the example as its author would, and lay its wheel into a folder as an installer does."""
    source, built = target / "source", target / "built"
    shutil.copytree(EXAMPLE, source)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target / "installed")
    return target / "installed"


def lay(target: Path, name: str, entries: dict[str, str], module: str = "") -> None:
    """Write a distribution with these entry points and one module, named after it."""
    described = target / f"{name}-1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{key} = {value}\n" for key, value in entries.items())
    (described / "entry_points.txt").write_text(f"[knockon.executors]\n{lines}")
    (target / f"{name}.py").write_text(module)
