"""`knockon demo` on servers of its own and on given ones."""

import signal
from pathlib import Path

import psutil
import pytest
from redis import Redis

from tests.system.commands import Home
from tests.waiting import poll

LIMIT_S = 150  # the demo's own deadline and the start of everything, on a machine that is busy with tests


def test_the_demo_ends_well_by_itself_and_leaves_nothing(tmp_path: Path) -> None:
    folders = tmp_path / "folders"
    folders.mkdir()
    demo = Home(tmp_path / "home", {"TMPDIR": str(folders)})
    said = demo.run("demo", timeout_s=LIMIT_S)
    assert said.count("\nok  ") == 8
    assert '{"' not in said
    assert "FAIL" not in said
    assert not list(folders.iterdir())
    assert not (demo.folder / ".knockon").exists()


def test_an_interrupted_demo_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    folders = tmp_path / "folders"
    folders.mkdir()
    with Home(tmp_path / "home", {"TMPDIR": str(folders)}).started("demo") as demo:
        demo.await_line("starting a matcher")
        children = poll(demo.process.children)
        demo.process.send_signal(signal.SIGINT)
        assert demo.process.wait(60) == 130
        assert psutil.wait_procs(children, 5)[1] == []
    assert demo.said().endswith("\ninterrupted\n")
    assert "FAIL" not in demo.said()
    assert not list(folders.iterdir())


@pytest.mark.parametrize("kind", ["postgres_url", "sqlite_url"])
def test_the_demo_uses_given_servers_under_names_of_its_own(
    kind: str, request: pytest.FixtureRequest, redis_url: str, redis_client: Redis, tmp_path: Path
) -> None:
    servers = {"DATABASE_URL": request.getfixturevalue(kind), "REDIS_URL": redis_url}
    demo = Home(tmp_path / "home", servers)
    demo.run("demo", timeout_s=LIMIT_S)
    found: list[bytes] = redis_client.keys()  # type: ignore[assignment]  # a client of bytes answers bytes
    assert [name for name in found if b"demo-" in name or not name.startswith(b"rq:")] == []
    assert "there is no workspace 'default'" in demo.run("runs", "list", code=1)
