"""The stop flag, and an end that nothing holds up."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shared.process import FLUSHED_IN_S, StopFlag, make_owner
from worker.run_worker import READ_S
from worker.service import FLUSH_S, WATCH_END_S

ROOT = Path(__file__).resolve().parents[2]
WAITING = (
    "import threading\n"
    "from shared.process import StopFlag, leave\n"
    "flag = StopFlag()\n"
    "flag.listen()\n"
    "threading.Thread(target=threading.Event().wait).start()\n"
    "print('ready', flush=True)\n"
    "while not flag.wait(60): pass\n"
    "print('asked')\n"
    "leave(7)\n"
)


def test_the_flag_stays_up_once_it_is_raised() -> None:
    flag = StopFlag()
    assert (flag.is_raised(), flag.wait(0.001)) == (False, False)
    flag.raise_()
    flag.raise_()
    assert (flag.is_raised(), flag.wait(60)) == (True, True)


def test_a_wait_ends_when_another_thread_raises_the_flag() -> None:
    flag = StopFlag()
    found: list[bool] = []
    waiter = threading.Thread(target=lambda: found.append(flag.wait(30)))
    waiter.start()
    flag.raise_()
    waiter.join(5)
    assert found == [True]


def test_two_processes_never_share_a_name() -> None:
    assert make_owner() != make_owner()


def test_a_worker_is_given_the_time_that_it_may_need_to_write() -> None:
    assert READ_S + FLUSH_S + WATCH_END_S < FLUSHED_IN_S


def test_a_hangup_that_is_ignored_from_the_start_stays_ignored() -> None:
    code = WAITING.replace("print('asked')", "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)")
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'trap "" HUP; exec "$0" -c "$1"', sys.executable, f"import signal\n{code}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert (process.communicate(timeout=20)[0], process.returncode) == ("True\n", 7)


@pytest.mark.parametrize("asked", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_raises_the_flag_and_no_thread_holds_the_end_up(asked: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        cwd=ROOT,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(asked)
    out, err = process.communicate(timeout=20)
    assert (out, err, process.returncode) == ("asked\n", "", 7)
