"""A backup that was taken while everything ran is put back: what waited is done once, also without Redis.

The commands are those of docs/operations.md, "Backup".
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from redis import Redis

from tests.pages import page
from tests.servers import find_postgres
from tests.system.account import check_account
from tests.system.deployment import Deployment, open_deployment

DONE = 10
WAITING = 30


class Keeper:
    """Types the page's commands, for one kind of database."""

    def __init__(self, kind: str, database_url: str, folder: Path) -> None:
        """Work in `folder`, in which the data folder stands under its usual name."""
        self._kind = kind
        self._url = database_url
        self._folder = folder
        folder.mkdir()
        (folder / ".knockon").symlink_to(folder.parent)

    def type(self, what: str) -> None:
        """Type the block of the page that is marked `backup-KIND` or `restore-KIND`."""
        (block,) = page("operations.md").blocks(f"sh {what}-{self._kind}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=self._folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def lose(self) -> None:
        """Lose the database."""
        if self._kind == "sqlite":
            for file in self._folder.parent.glob("knockon.db*"):
                file.unlink()
            return
        with psycopg.connect(self._url, autocommit=True) as conn:
            conn.execute("DROP SCHEMA public CASCADE")
            conn.execute("CREATE SCHEMA public")

    def _environment(self) -> Mapping[str, str]:
        path = [str(Path(sys.executable).parent), os.environ["PATH"]]
        if self._kind == "postgresql":
            path.insert(0, str(find_postgres()))
        return {**os.environ, "PATH": os.pathsep.join(path), "DATABASE_URL": self._url}


@pytest.fixture
def site(redis_url: str, database_url: str, tmp_path: Path) -> Iterator[Deployment]:
    with open_deployment(redis_url, database_url, tmp_path) as opened:
        yield opened


@pytest.fixture
def keeper(database_url: str, tmp_path: Path) -> Keeper:
    kind = database_url.partition(":")[0]
    return Keeper(kind, database_url, tmp_path / "home")


def test_what_waited_at_the_backup_is_done_once_after_the_loss_of_everything(
    site: Deployment, keeper: Keeper, redis_url: str
) -> None:
    site.automation(site.hook("/one"))
    running = [site.fleet.start(room) for room in ("matcher", "watchdog")]
    worker = site.fleet.start("worker")
    site.publish(DONE)
    site.await_ended(DONE)
    worker.ask_to_end()
    assert worker.wait() == 0
    site.publish(WAITING)
    site.await_status("PENDING", WAITING)
    keeper.type("backup")
    for process in running:
        process.kill9()
    site.backends.database.dispose()
    keeper.lose()
    with closing(Redis.from_url(redis_url)) as client:
        client.flushdb()
    keeper.type("restore")
    for room in ("matcher", "worker", "scheduler"):
        site.fleet.start(room)
    site.await_ended(DONE + WAITING)
    check_account(site)
    assert site.outcomes() == ["succeeded"] * (DONE + WAITING)
    site.publish()
    site.await_ended(DONE + WAITING + 1)
    check_account(site)
