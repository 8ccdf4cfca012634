"""What the command shows of runs and automations: everything but secrets."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from sqlalchemy import text
from typer.testing import CliRunner, Result

from knockon.cli.app import make_app
from shared.services.backends import Backends
from tests.people import opened_backends

SECRET = "PW-7Q"
AUTHORED = f"""
key: a
name: A
trigger: {{type: MANUAL}}
actions:
  - type: SEND_WEBHOOK
    config:
      url: https://h.test/?q={SECRET}&id={{{{ payload.id }}}}
      headers: {{X-Plain: {SECRET}}}
"""


class Commands:
    """The command against one test's servers, in a folder of its own."""

    def __init__(self, database_url: str, redis_url: str) -> None:
        self._servers = {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "KNOCKON_WORKSPACE": "w1"}

    def run(self, *arguments: str, code: int = 0) -> Result:
        result = CliRunner().invoke(make_app(), arguments, env=self._servers)
        assert result.exit_code == code, (result.output, result.exception)
        return result


@pytest.fixture
def opened(database_url: str, redis_url: str) -> Iterator[Backends]:
    with opened_backends(database_url, redis_url) as backends:
        yield backends


@pytest.fixture
def commands(
    database_url: str, redis_url: str, opened: Backends, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Commands:
    monkeypatch.chdir(tmp_path)
    Path("a.yaml").write_text(AUTHORED)
    return Commands(database_url, redis_url)


def test_what_a_run_got_and_gave_is_shown_without_secrets(commands: Commands, opened: Backends) -> None:
    commands.run("apply", "-f", "a.yaml")
    payload = {
        "user": {"password": SECRET, "name": "Ann"},
        "url": f"http://b:{SECRET}@h.test/?token={SECRET}",
    }
    started = commands.run("automations", "run", "a", "--payload", orjson.dumps(payload).decode())
    run_id = started.stdout.split()[0]
    answer = orjson.dumps(
        {"body": f'{{"Authorization": "{SECRET}"}}', "headers": {"X-Auth": SECRET}}
    ).decode()
    with opened.database.begin() as conn:
        conn.execute(text("UPDATE automation_runs SET output = :output"), {"output": answer})
    shown = [commands.run("runs", "show", run_id, "-o", form).stdout for form in ("json", "table")]
    assert all(SECRET not in each and "Ann" in each and "http://***@h.test/" in each for each in shown)
    assert orjson.loads(shown[0])["run"]["id"] == run_id


def test_a_definition_that_was_shown_is_refused_where_it_is_masked(commands: Commands) -> None:
    commands.run("apply", "-f", "a.yaml")
    shown = commands.run("automations", "show", "a").stdout
    assert SECRET not in shown
    assert "{{ payload.id }}" in shown
    Path("b.yaml").write_text(shown)
    said = commands.run("apply", "-f", "b.yaml", code=1).stderr
    assert "b.yaml: actions[0].config.url: is masked" in said
    assert "b.yaml: actions[0].config.headers.X-Plain: is masked" in said


def test_a_key_has_a_name_that_can_be_read(commands: Commands) -> None:
    assert "must not be blank" in commands.run("keys", "create", " ", code=1).stderr
    assert "holds U+000A" in commands.run("keys", "create", "a\nb", code=1).stderr


def test_dead_events_and_old_log_lines_are_shown_without_secrets(
    commands: Commands, opened: Backends
) -> None:
    payload = orjson.dumps({"user": {"password": SECRET}, "url": f"http://b:{SECRET}@h.test/"}).decode()
    opened.redis.xadd(
        "factory:events:dead", {"payload": payload, "reason": "type: is missing", "entry": "1-1"}
    )
    line = (
        "INSERT INTO automation_logs (xid, workspace_id, level, message, data, at)"
        " VALUES (0, 'w1', 'info', 'm', :d, :at)"
    )
    with opened.database.begin() as conn:
        conn.execute(text(line), {"d": payload, "at": "2026-01-01T00:00:00+00:00"})
    for form in ("table", "json"):
        for command in (("events", "dead"), ("tail", "--no-follow")):
            shown = commands.run(*command, "-o", form).stdout
            assert SECRET not in shown
            assert "password" in shown
