"""The receiver as a process of its own: its ledger is on disk before the sender hears of it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from executors.send_webhook import send_webhook
from shared.errors import RetryableError
from shared.model.actions import SendWebhook
from tests.contexts import Trip, open_way_out
from tests.receiver import read_ledger
from tests.waiting import poll

ROOT = Path(__file__).parents[2]
SCRIPT = '{"/a": [{"status": 503, "headers": {"retry-after": "1"}}, 202]}'


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    port_file = tmp_path / "port"
    arguments = ["--port-file", str(port_file), "--ledger", str(tmp_path / "ledger"), "--script", SCRIPT]
    with Popen([sys.executable, "-m", "tests.receiver", *arguments], cwd=ROOT) as process:
        poll(port_file.exists)
        yield int(port_file.read_text())
        process.kill()


def test_a_receiver_process_answers_by_its_script_and_keeps_its_ledger(tmp_path: Path, port: int) -> None:
    http = open_way_out()
    config = SendWebhook(url=f"http://127.0.0.1:{port}/a", body="x", content_type="text/plain")
    with pytest.raises(RetryableError):
        send_webhook(config, Trip(http, run_id="r:1").context())
    assert send_webhook(config, Trip(http, run_id="r:1", position=2).context()).output["status"] == 202
    http.close()
    kept = read_ledger(tmp_path / "ledger")
    assert [(one.run_id, one.position, one.status, one.body) for one in kept] == [
        ("r:1", 1, 503, b"x"),
        ("r:1", 2, 202, b"x"),
    ]
