"""Everything at once: servers of our own where none are named, the database in shape, all supervised."""

import os
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from knockon.cli.connections import caller, user_name
from knockon.cli.options import DEFAULT_WORKSPACE
from knockon.cli.output import print_line, show
from knockon.examples import AUTOMATIONS
from knockon.keeping import RedisKeeper, only_one
from knockon.servers import database_url, server_variables
from knockon.supervisor import Say, Spec, Supervisor
from shared.db.engine import open_database
from shared.db.migrating import migrate
from shared.db.reads import workspace_ids
from shared.log_choices import LogFormat
from shared.ports import free_port, url_of
from shared.process import StopFlag
from shared.services.workspaces import MadeKey, create_workspace
from shared.settings import Settings
from shared.time.clock import SystemClock

_WRITING: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Counts:
    """How many processes of the kinds that there may be several of."""

    workers: int
    matchers: int

    def specs(self) -> list[Spec]:
        """List all processes with the names that stand before their lines."""
        matchers = [Spec(f"matcher-{number}", "matcher") for number in range(1, self.matchers + 1)]
        workers = [Spec(f"worker-{number}", "worker") for number in range(1, self.workers + 1)]
        singles = [Spec(name, name) for name in ("scheduler", "timers", "watchdog", "api")]
        return [*matchers, *workers, *singles]


@dataclass(frozen=True, slots=True)
class Served:
    """Both servers: the environment that leads there, and what keeps those that are ours alive."""

    environment: dict[str, str]
    tend: Callable[[], None]


def run_up(settings: Settings, counts: Counts) -> None:
    """Start everything and keep it running until SIGINT, SIGTERM or SIGHUP.

    Raises ConfigError if another `up` runs on the same data folder, the port of the API cannot be had, or the
    private Redis cannot be kept.
    """
    stop = StopFlag()
    stop.listen()
    with only_one(settings.data_dir):
        port = free_port(settings.api_host, settings.api_port)
        _run(settings.model_copy(update={"api_port": port}), counts, stop)
    with suppress(OSError):
        print_line("stopped")


def _run(settings: Settings, counts: Counts, stop: StopFlag) -> None:
    with served(settings, say) as servers:
        key = prepare_database(settings)
        environment = {**servers.environment, "API_PORT": str(settings.api_port)}
        supervisor = Supervisor(counts.specs(), environment, SystemClock(), say)
        _greet(settings, key)
        try:
            supervisor.run(stop, servers.tend)
        finally:
            with suppress(OSError):  # the terminal may be gone, which is why we stop
                print_line("stopping")
            supervisor.stop(settings.shutdown_grace_s)


@contextmanager
def served(settings: Settings, say: Say) -> Iterator[Served]:
    """Have both servers run, and tell how to get there. A Redis of ours is stopped at the end."""
    redis = None if settings.redis_url else RedisKeeper(settings.data_dir, SystemClock(), say)
    environment = server_variables(
        settings.model_copy(
            update={
                "redis_url": redis.url if redis else settings.redis_url,
                "database_url": database_url(settings),
            }
        )
    )
    if settings.log_format is LogFormat.AUTO and sys.stderr.isatty():
        environment["LOG_FORMAT"] = LogFormat.CONSOLE.value
    try:
        yield Served(environment, redis.tend if redis else _tend_nothing)
    finally:
        if redis is not None:
            redis.stop()


def _tend_nothing() -> None:
    """Leave servers that are not ours to whoever runs them."""


def prepare_database(settings: Settings) -> MadeKey | None:
    """Migrate the database; give the first key if there was no workspace and one was made."""
    url = database_url(settings)
    migrate(url)
    database = open_database(url, pool_size=1)
    try:
        with database.read() as conn:
            if workspace_ids(conn, most=1):
                return None
        owner = f"{user_name()}@localhost"
        return create_workspace(database, SystemClock(), caller(DEFAULT_WORKSPACE), owner)
    finally:
        database.dispose()


def say(name: str, line: str) -> None:
    """Print one line of a process under its name; a closed terminal is no reason to stop listening to it."""
    with _WRITING:
        try:
            sys.stdout.write(f"{name:<10} | {show(line)}\n")
            sys.stdout.flush()
        except OSError:
            return


def command_name(settings: Settings) -> str:
    """Give what a person types to reach this very command and deployment from the same folder."""
    program = Path(sys.argv[0])
    on_path = shutil.which("knockon")
    name = "knockon"
    if program.name == "knockon" and (on_path is None or not Path(on_path).samefile(program)):
        name = shown_path(program)
    default = Settings.model_fields["data_dir"].get_default()
    is_default = settings.data_dir == Path(default).absolute()
    return name if is_default else f"KNOCKON_DATA_DIR={shlex.quote(str(settings.data_dir))} {name}"


def shown_path(path: Path) -> str:
    """Write a path as a shell takes it: from the working folder where it lies beneath, else in full."""
    whole = path.absolute()
    near = os.path.relpath(whole)
    return shlex.quote(str(whole) if near.startswith(os.pardir) else near)


def _greet(settings: Settings, key: MadeKey | None) -> None:
    name = command_name(settings)
    if key is not None:
        print_line(f"workspace {DEFAULT_WORKSPACE} is made; its key, shown only this once: {key.text}")
    print_line(f"knockon is up in {settings.data_dir}; Ctrl-C stops it. Try in another terminal:")
    print_line(f"    {name} apply -f {shown_path(AUTOMATIONS)}")
    print_line(f'    {name} publish order.placed --payload \'{{"orderId": 7, "total": 120}}\'')
    print_line(f"    {name} tail")
    print_line(f"the API is at {url_of(settings.api_host, settings.api_port)}, its description at /docs")
