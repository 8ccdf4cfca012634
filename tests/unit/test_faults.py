"""Kill points: how they are spelled, which passage acts, and what it does to a process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from shared.faults import VARIABLE, FaultPoint, _parse, passed
from tests.waiting import poll

ROOT = Path(__file__).resolve().parents[2]
PASS_THRICE = (
    "from shared.faults import FaultPoint, passed\n"
    "for n in range(3):\n"
    "    passed(FaultPoint.CLAIM_AFTER_COMMIT)\n"
    "    print(n, flush=True)\n"
)


def started(fault: str) -> "subprocess.Popen[str]":
    """Start a process that passes one point three times and prints after each."""
    return subprocess.Popen(
        [sys.executable, "-c", PASS_THRICE],
        cwd=ROOT,
        env={**os.environ, VARIABLE: fault},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("text", "armed"),
    [
        ("", {}),
        ("claim.after_commit:kill9", {"claim.after_commit": (0, "kill9")}),
        ("claim.after_commit@3:raise", {"claim.after_commit": (3, "raise")}),
        (
            "match.after_read:sleep:0.5,journal.before_commit@2:stop",
            {"match.after_read": (0, "sleep:0.5"), "journal.before_commit": (2, "stop")},
        ),
    ],
)
def test_faults_are_spelled_point_nth_and_deed(text: str, armed: dict[str, tuple[int, str]]) -> None:
    assert _parse(text) == armed


@pytest.mark.parametrize("text", ["nowhere:kill9", "claim.after_commit@x:kill9", "kill9"])
def test_a_misspelled_fault_stops_the_start(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid|invalid literal"):
        _parse(text)


def test_unarmed_points_do_nothing() -> None:
    for point in FaultPoint:
        passed(point)


@pytest.mark.parametrize(
    ("fault", "printed", "code"),
    [
        ("claim.after_commit:kill9", "", -signal.SIGKILL),
        ("claim.after_commit@3:kill9", "0\n1\n", -signal.SIGKILL),
        ("claim.after_commit@2:raise", "0\n", 1),
        ("claim.after_commit@2:dance", "0\n", 1),
        ("claim.after_commit@9:kill9,claim.after_commit@1:sleep:0.01", "0\n1\n2\n", 0),
    ],
)
def test_the_nth_passage_acts(fault: str, printed: str, code: int) -> None:
    process = started(fault)
    out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == (printed, code)


def test_a_stopped_process_goes_on_when_it_is_continued() -> None:
    process = started("claim.after_commit@2:stop")
    poll(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=20)
    assert (out, process.returncode) == ("0\n1\n2\n", 0)
