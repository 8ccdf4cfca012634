"""The command on a terminal of its own: typed at, read, and interrupted as people do."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import poll

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command that believes a person sits before it."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        """Read what it writes from now on, lest it wait for a reader."""
        self.process = process
        self._master = master
        self._read = bytearray()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        """Give what was written so far, without what moves the cursor."""
        return ESCAPES.sub("", self._read.decode(errors="replace"))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def await_text(self, text: str) -> None:
        poll(lambda: text in self.text, 30)

    def wait(self) -> int:
        """Wait for the end, and give the exit code."""
        code = self.process.wait(30)
        self._thread.join(30)
        return code

    def _listen(self) -> None:
        try:
            while read := os.read(self._master, 65_536):
                self._read += read
        except OSError:
            return  # the other end is closed


@contextmanager
def opened_terminal(folder: Path, servers: Mapping[str, str], *arguments: str) -> Iterator[Terminal]:
    """Start the command on a terminal; it is gone afterwards."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "knockon", *arguments],
        env={**os.environ, **servers, "TERM": "xterm", "COLUMNS": "120"},
        cwd=folder,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait(30)
        os.close(master)
