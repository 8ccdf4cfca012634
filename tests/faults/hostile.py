"""A worker some of whose actions are hostile: they kill their process, fill its memory, or never end.

`work` is what such a worker's process calls. Run as a module, `RUN_ID LEASE`, it is the process in which that
worker drives a suspect run, with the same actions.
"""

import ctypes
import os
import resource
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from executors.contract import ActionResult, RunContext
from executors.registry import EXECUTORS
from pipeline.parts import Parts, open_parts
from pipeline.solo_child import drive_alone
from shared.logs import configure_logs
from shared.model.actions import ActionConfig, SendWebhook
from shared.model.runs import Claim
from shared.process import leave
from shared.settings import load_settings
from worker.service import serve_parts

ROOM_BYTES = 256 << 20


def abort() -> None:
    """Die as a failed assertion in C does."""
    os.abort()


def segfault() -> None:
    """Read where there is no memory."""
    ctypes.string_at(0)


def ask_for_memory() -> None:
    """Ask for more memory than the process may have, at once: so nobody else is left without any."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    bytearray(2 * ROOM_BYTES)


def block_in_c() -> None:
    """Stay in a C function that no exception reaches."""
    ctypes.CDLL(None).sleep(60)


def compute_in_c() -> None:
    """Compute in C functions, one after the other."""
    large = os.urandom(1 << 20) * 64
    while True:
        zlib.compress(large, 9)


DEEDS: Mapping[str, Callable[[], None]] = {
    "/abort": abort,
    "/segfault": segfault,
    "/memory": ask_for_memory,
    "/hang": block_in_c,
    "/compute": compute_in_c,
}


def send_or_harm(config: ActionConfig, run: RunContext) -> ActionResult:
    """Do what the webhook's path names, else send it."""
    if isinstance(config, SendWebhook) and (deed := DEEDS.get(urlsplit(str(config.url)).path)):
        deed()
        return ActionResult({})
    return EXECUTORS["SEND_WEBHOOK"](config, run)


def hostile_parts() -> Parts:
    """Build a worker's parts with the hostile actions in them."""
    settings = load_settings()
    configure_logs(settings)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    executors = {**EXECUTORS, "SEND_WEBHOOK": send_or_harm}
    return replace(open_parts(settings), executors=executors, child_module="tests.faults.hostile")


def work() -> None:
    """Be the worker."""
    leave(serve_parts(hostile_parts()))


if __name__ == "__main__":
    leave(drive_alone(hostile_parts(), Claim(sys.argv[1], int(sys.argv[2]))))
