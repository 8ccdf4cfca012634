"""The commands that work on rows and Redis, run inside this process, on both databases."""

import re
from pathlib import Path

import orjson
import pytest
from redis import Redis
from sqlalchemy import text

from shared.db.engine import open_database
from shared.keys import GROUP
from shared.services.backends import Backends
from shared.services.workspaces import hash_key
from tests.bulk import working
from tests.commanding import AUTOMATIONS, Knockon, document, start
from tests.people import set_run
from tests.waiting import poll


def test_init_makes_a_workspace_once_and_stores_only_the_hash_of_its_key(
    knockon: Knockon, database_url: str
) -> None:
    key = document(knockon("init", "shop", "-o", "json"))["key"]
    assert re.fullmatch(r"kn_live_[\w-]{43}", key)
    assert document(knockon("init", "shop", "-o", "json")) == {
        "workspace": "shop",
        "created": False,
        "key": None,
    }
    database = open_database(database_url)
    with database.read() as conn:
        stored = conn.execute(text("SELECT key_hash, last4 FROM api_keys")).one()
        assert conn.execute(text("SELECT role FROM members")).scalar_one() == "owner"
    database.dispose()
    assert tuple(stored) == (hash_key(key), key[-4:])
    assert "at most 100 letters" in knockon("init", "no good", code=1).stderr


@pytest.mark.parametrize("owner", ["nobody", "@h.test", "a@", "a b@h.test", "a@h.test\n", "a@@h.test", ""])
def test_an_owner_has_a_mail_address(knockon: Knockon, owner: str) -> None:
    assert "is no mail address" in knockon("init", "shop", "--owner", owner, code=1).stderr
    knockon("init", "shop", "--owner", "anna@h.test")


def test_keys_are_made_listed_and_revoked(knockon: Knockon, backends: Backends) -> None:
    made = document(knockon("keys", "create", "shop", "--scope", "events:write", "-o", "json"))
    knockon("keys", "revoke", made["id"])
    (listed,) = document(knockon("keys", "list", "-o", "json"))
    assert (listed["name"], listed["scopes"], listed["last4"]) == ("shop", ["events:write"], made["key"][-4:])
    assert listed["revoked_at"] is not None
    assert made["key"] not in knockon("keys", "list").stdout
    assert "there is no key" in knockon("keys", "revoke", "nope", code=1).stderr


def test_apply_shows_what_changes_and_a_dry_run_changes_nothing(knockon: Knockon, backends: Backends) -> None:
    assert "2 of 2 would change" in knockon("apply", "-f", "automations.yaml", "--dry-run").stdout
    assert document(knockon("automations", "list", "-o", "json")) == []
    nowhere = "redis://127.0.0.1:1/0"
    assert "2 of 2" in knockon("apply", "-f", "automations.yaml", "--dry-run", REDIS_URL=nowhere).stdout
    assert "created    welcome" in knockon("apply", "-f", "automations.yaml").stdout
    assert "0 of 2 changed" in knockon("apply", "-f", "automations.yaml").stdout
    Path("automations.yaml").write_text(AUTOMATIONS.replace("name: Welcome", "name: Good morning"))
    shown = knockon("apply", "-f", "automations.yaml").stdout
    assert "-name: Welcome" in shown
    assert "+name: Good morning" in shown


def test_apply_reads_stdin_and_prunes_only_when_told(knockon: Knockon, backends: Backends) -> None:
    knockon("apply", "-f", "automations.yaml")
    alone = AUTOMATIONS.split("- key: second", maxsplit=1)[0]
    assert "deleted" not in knockon("apply", "-f", "-", stdin=alone).stdout
    assert "deleted    second" in knockon("apply", "-f", "-", "--prune", stdin=alone).stdout


def test_a_bad_definition_is_a_list_of_faults(knockon: Knockon, backends: Backends) -> None:
    Path("bad.yaml").write_text(
        AUTOMATIONS.replace("title: Hello", "titel: Hello").replace("MANUAL", "MANUEL")
    )
    said = knockon("apply", "-f", "automations.yaml", "-f", "bad.yaml", code=1).stderr
    assert "error: bad.yaml: [0].actions[0].config.titel: 'titel' is unknown" in said
    assert "error: bad.yaml: [1].trigger.type: 'MANUEL' is unknown; did you mean MANUAL?" in said
    assert "Traceback" not in said
    twice = knockon("apply", "-f", "automations.yaml", "-f", "automations.yaml", code=1).stderr
    assert "automations.yaml: welcome: is in automations.yaml too" in twice
    assert "nowhere.yaml: No such file" in knockon("apply", "-f", "nowhere.yaml", code=1).stderr


def test_automations_are_turned_on_and_off(knockon: Knockon, backends: Backends) -> None:
    knockon("apply", "-f", "automations.yaml")
    assert knockon("automations", "pause", "welcome").stdout == "welcome is PAUSED\n"
    assert knockon("automations", "pause", "welcome").stdout == "welcome was PAUSED already\n"
    assert "activate it first" in knockon("automations", "run", "welcome", code=1).stderr
    assert document(knockon("automations", "activate", "welcome", "-o", "json"))["changed"] is True
    assert "eventType: order.placed" in knockon("automations", "show", "welcome").stdout
    assert "there is no automation 'x'" in knockon("automations", "show", "x", code=1).stderr


def test_runs_are_listed_shown_and_cancelled(knockon: Knockon, backends: Backends) -> None:
    first, second = start(knockon, 2)
    assert [run["id"] for run in document(knockon("runs", "list", "-o", "json"))] == [second, first]
    assert knockon("runs", "list").stdout.splitlines()[1].split()[:3] == [second, "welcome", "PENDING"]
    assert knockon("runs", "cancel", first).stdout == "cancelled\n"
    assert "CANCELLED" in knockon("runs", "cancel", first, code=1).stderr
    cancelled = document(knockon("runs", "list", "--status", "cancelled", "-o", "json"))
    assert [run["id"] for run in cancelled] == [first]
    assert knockon("runs", "list", "--status", "cancelled").stdout.splitlines()[1].split()[3] == "CANCELLED"
    assert "why           CANCELLED" in knockon("runs", "show", first).stdout
    set_run(backends, second, "RUNNING")
    assert "--force" in knockon("runs", "cancel", second, code=1).stderr
    assert "unless it is in its last action" in knockon("runs", "cancel", second, "--force").stdout
    detail = document(knockon("runs", "show", first, "-o", "json"))
    assert detail["run"]["status"] == "CANCELLED"
    assert [line["message"] for line in detail["logs"]] == ["run cancelled"]
    assert "run cancelled" in knockon("runs", "show", first).stdout
    assert "there is no run" in knockon("runs", "show", first, "-w", "w2", code=1).stderr


def test_failed_and_dead_runs_are_replayed_once(knockon: Knockon, backends: Backends) -> None:
    failed, *dead = start(knockon, 4)
    set_run(backends, failed, "FAILED")
    said = knockon("dead", "replay", failed, code=1).stderr
    assert f"replay it with: knockon runs replay {failed}" in said
    for run_id in dead:
        set_run(backends, run_id, "DEAD_LETTER")
    assert "1 replayed from the action that failed" in knockon("runs", "replay", failed).stdout
    assert f"{failed} is going on already" in knockon("runs", "replay", failed).stderr
    assert len(document(knockon("dead", "list", "-o", "json"))) == 3
    assert "succeeded are repeated" in knockon("dead", "replay", dead[0], "--from-start").stdout
    with working(backends):
        said = knockon("dead", "replay", "--automation", "welcome", "--yes").stdout
    assert said == "2 replayed from the action that failed\n"
    assert document(knockon("dead", "list", "-o", "json")) == []
    set_run(backends, failed, "DEAD_LETTER")
    knockon(
        "apply", "-f", "-", "--prune", stdin=AUTOMATIONS.split("- key: second")[1].join(("- key: second", ""))
    )
    with working(backends):
        left = knockon("dead", "replay", "--all", "--yes")
    assert left.stdout == "0 replayed from the action that failed\n"
    assert left.stderr.endswith("1 skipped: of a deleted automation\n")
    assert "was deleted" in knockon("dead", "replay", failed, code=1).stderr
    gone = dead[0]
    logs = document(knockon("runs", "show", gone, "-o", "json"))["logs"]
    assert [line["message"] for line in logs] == ["run replayed", "run cancelled"]
    for name in ("welcome", document(knockon("runs", "show", gone, "-o", "json"))["run"]["automation_id"]):
        assert len(document(knockon("runs", "list", "--automation", name, "-o", "json"))) == 4
        assert gone in knockon("tail", "--no-follow", "--automation", name).stdout
        assert failed in knockon("dead", "list", "--automation", name).stdout
    knockon("apply", "-f", "automations.yaml")
    assert document(knockon("runs", "list", "--automation", "welcome", "-o", "json")) == []
    assert "why           AUTOMATION_DELETED" in knockon("runs", "show", gone).stdout
    knockon("dead", "replay", code=2)
    knockon("dead", "replay", "x", "--all", code=2)


def _two_lines(text: str) -> list[str]:
    """Give the lines once both are there: a transaction elsewhere on the server may hold them back."""
    lines = text.splitlines()
    return lines if len(lines) == 2 else []


def test_tail_prints_what_there_is_and_filters(knockon: Knockon, backends: Backends) -> None:
    first, second = start(knockon, 2)
    knockon("runs", "cancel", first)
    knockon("runs", "cancel", second)
    lines = poll(lambda: _two_lines(knockon("tail", "--no-follow", "-o", "json").stdout))
    assert [orjson.loads(line)["run_id"] for line in lines] == [first, second]
    assert first in knockon("tail", "--no-follow", "--run", first).stdout
    assert second not in knockon("tail", "--no-follow", "--run", first).stdout
    assert knockon("tail", "--no-follow", "--automation", "second").stdout == ""
    assert knockon("tail", "--no-follow", "--level", "warning").stdout == ""
    assert len(knockon("tail", "--no-follow", "--since", "10m").stdout.splitlines()) == 2
    knockon("tail", "--no-follow", "--since", "5x", code=2)
    knockon("tail", "--no-follow", "--level", "loud", code=2)


def test_what_could_steer_a_terminal_is_not_printed(knockon: Knockon, backends: Backends) -> None:
    start(knockon)
    run_id = knockon("automations", "run", "welcome", "--payload", '{"a": "\\u001b[2Jx"}').stdout.strip()
    assert "\x1b" not in knockon("runs", "show", run_id).stdout


def test_the_doctor_finds_what_is_wrong(knockon: Knockon, backends: Backends, redis_client: Redis) -> None:
    findings = {found["subject"]: found for found in document(knockon("doctor", "-o", "json"))}
    warned = {subject for subject, found in findings.items() if found["level"] != "ok"}
    assert warned == {"api", "matcher", "worker", "timers", "scheduler", "watchdog"}
    assert {"python", "settings", "data folder", "redis", "queue", "stream", "sql", "clock"} < findings.keys()
    redis_client.set("rq:suspended", 1)
    redis_client.xadd("factory:events", {"type": "order.placed"})
    shown = knockon("doctor", code=1).stdout
    assert "is suspended" in shown
    assert "no matcher has ever read" in shown
    redis_client.xgroup_create("factory:events", GROUP, id="0")
    assert "being worked on" in knockon("doctor", code=1).stdout


def test_the_doctor_and_the_others_name_a_server_that_is_away(knockon: Knockon) -> None:
    nowhere = "redis://me:hidden@127.0.0.1:1/0"
    shown = knockon("doctor", code=1, REDIS_URL=nowhere).stdout
    assert "correct REDIS_URL" in shown
    assert "hidden" not in shown
    knockon("init", "w1")
    knockon("apply", "-f", "automations.yaml")
    assert "error: Redis" in knockon("automations", "activate", "second", code=1, REDIS_URL=nowhere).stderr
    away = "postgresql://me:hidden@127.0.0.1:1/x"
    assert "correct DATABASE_URL" in knockon("doctor", code=1, DATABASE_URL=away).stdout
    said = knockon("runs", "list", code=1, DATABASE_URL=away).stderr
    assert "the database cannot be used" in said
    assert "hidden" not in said


@pytest.mark.parametrize("url", ["", "redis://127.0.0.1:1/0"])
def test_what_runs_can_be_paused_and_pruned_without_redis(
    knockon: Knockon, backends: Backends, url: str
) -> None:
    knockon("apply", "-f", "automations.yaml")
    assert "welcome is PAUSED" in knockon("automations", "pause", "welcome", REDIS_URL=url).stdout
    said = knockon("automations", "activate", "welcome", code=1, REDIS_URL=url).stderr
    assert ("knockon up" if not url else "error: Redis") in said
    only = AUTOMATIONS[: AUTOMATIONS.index("- key: second")].replace("name: Welcome", "name: Other")
    assert "2 of 2 changed" in knockon("apply", "-f", "-", "--prune", stdin=only, REDIS_URL=url).stdout
    new = only.replace("key: welcome", "key: third")
    assert "Redis" in knockon("apply", "-f", "-", "--prune", stdin=new, code=1, REDIS_URL=url).stderr
    (left,) = document(knockon("automations", "list", "-o", "json"))
    assert (left["key"], left["name"], left["status"]) == ("welcome", "Other", "PAUSED")


def test_an_automation_is_deleted_by_whoever_says_yes(knockon: Knockon, backends: Backends) -> None:
    knockon("apply", "-f", "automations.yaml")
    asked = knockon("automations", "delete", "welcome", code=2).stderr
    assert "--yes" in asked
    assert knockon("automations", "delete", "welcome", "--yes", REDIS_URL="").stdout == "welcome is deleted\n"
    assert "no automation" in knockon("automations", "delete", "welcome", "-y", code=1).stderr
    told = document(knockon("automations", "delete", "second", "-y", "-o", "json"))
    assert (told["key"], told["deleted"]) == ("second", True)
    assert document(knockon("automations", "list", "-o", "json")) == []


def test_without_servers_a_command_says_how_to_start_them(knockon: Knockon) -> None:
    bare = {"REDIS_URL": "", "DATABASE_URL": ""}
    assert "knockon up" in knockon("runs", "list", code=1, **bare).stderr
    assert "knockon up" in knockon("publish", "order.placed", code=1, **bare).stderr


def test_a_database_that_was_never_migrated_is_named(knockon: Knockon, tmp_path: Path) -> None:
    fresh = f"sqlite:///{tmp_path / 'fresh.db'}"
    assert "knockon migrate" in knockon("runs", "list", code=1, DATABASE_URL=fresh).stderr
    assert "knockon migrate" in knockon("doctor", code=1, DATABASE_URL=fresh).stdout
    knockon("migrate", DATABASE_URL=fresh)
    knockon("migrate", DATABASE_URL=fresh)
    knockon("init", "w1", DATABASE_URL=fresh)
    assert knockon("runs", "list", "-o", "json", DATABASE_URL=fresh).stdout == "[]\n"


def test_a_bad_setting_is_one_line(knockon: Knockon) -> None:
    said = knockon("runs", "list", code=1, RUN_LEASE_S="soon").stderr
    assert said.startswith("error: RUN_LEASE_S: ")
    assert said.count("\n") == 1


def test_no_secret_of_a_definition_is_shown(knockon: Knockon, backends: Backends, tmp_path: Path) -> None:
    secret = "whsec_" + "c2VjcmV0" * 4
    file = tmp_path / "a.yaml"
    hook = f"{{type: SEND_WEBHOOK, config: {{url: 'https://h.test/x', secret: '{secret}'}}}}"
    author = f"key: a\nname: A\ntrigger: {{type: MANUAL}}\nactions: [{hook}]\n"
    file.write_text(author)
    shown = [knockon("apply", "-f", str(file), "-o", "json").stdout]
    file.write_text(author.replace("name: A", "name: B"))
    shown += [knockon("apply", "-f", str(file)).stdout, knockon("automations", "show", "a").stdout]
    assert all(secret not in each for each in shown)
    assert "***" in shown[0]
    with backends.database.read() as conn:
        details = conn.execute(text("SELECT detail FROM audit")).scalars().all()
    assert details
    assert all(secret not in str(each) for each in details)


COMMANDS = [
    ["runs", "list"],
    ["runs", "list", "--automation", "welcome"],
    ["runs", "show", "r1"],
    ["runs", "replay", "r1"],
    ["runs", "cancel", "r1"],
    ["automations", "list"],
    ["automations", "show", "welcome"],
    ["automations", "activate", "welcome"],
    ["automations", "pause", "welcome"],
    ["automations", "run", "welcome"],
    ["apply", "-f", "automations.yaml"],
    ["apply", "-f", "automations.yaml", "--dry-run"],
    ["tail", "--no-follow"],
    ["tail", "--no-follow", "--automation", "welcome"],
    ["keys", "list"],
    ["keys", "create", "shop"],
    ["keys", "revoke", "k1"],
    ["dead", "list"],
    ["dead", "replay", "--all"],
    ["dead", "replay", "r1"],
    ["dead", "groups"],
    ["bulk", "list"],
    ["bulk", "show", "b1"],
    ["bulk", "cancel", "b1"],
    ["runs", "replay", "--status", "failed"],
    ["runs", "cancel", "--all"],
    ["publish", "order.placed"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_an_unknown_workspace_is_an_error(knockon: Knockon, backends: Backends, arguments: list[str]) -> None:
    said = knockon(*arguments, "-w", "nowhere", code=1)
    assert said.stdout == ""
    assert said.stderr == "error: there is no workspace 'nowhere'; make it with: knockon init nowhere\n"
    assert backends.redis.xlen("factory:events") == 0


@pytest.mark.parametrize(("name", "fix"), [("", "knockon init"), ("a b", "knockon init 'a b'")])
def test_the_fix_for_an_odd_workspace_is_a_line_for_a_shell(
    knockon: Knockon, backends: Backends, name: str, fix: str
) -> None:
    said = knockon("runs", "list", "-w", name, code=1).stderr
    assert said == f"error: there is no workspace {name!r}; make it with: {fix}\n"
