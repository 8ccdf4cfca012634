"""Every change by a person is an audit entry, whichever service makes it; and how entries are read."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest

import shared.services
from shared.db.audit_reads import AuditQuery, AuditRow, list_audit
from shared.db.tables_people import ALERT_GROUPS
from shared.dead_stream import Burial, bury
from shared.model.audit_kinds import AuditKind
from shared.model.channels import ChannelKind
from shared.model.flag_states import SEQUENTIAL_IDLE, FlagState
from shared.model.roles import Role
from shared.sealing import Seal
from shared.services.ai_agents import AgentEdit, drop_agent, edit_agent, make_agent
from shared.services.alerts import NewChannel, add_channel, mute_alerts, remove_channel
from shared.services.arming_existing import activate_and_arm
from shared.services.automations import Edit, activate, apply_changes, create, delete, edit, pause
from shared.services.backends import Backends, Caller
from shared.services.bulk import cancel_bulk, confirm, preview, start_bulk
from shared.services.channels import ChannelEdit, drop_channel, edit_channel, make_channel
from shared.services.channels import NewChannel as NewTalkChannel
from shared.services.dead_events import put_back_events
from shared.services.definitions import Leftovers
from shared.services.flags import set_feature_flag, set_flag
from shared.services.members import NewMember, add_member, change_role, remove_member
from shared.services.pending import cancel_waiting
from shared.services.renaming import rename_workspace
from shared.services.runs import Insistence, ReplayFrom, cancel, replay, start_by_hand
from shared.services.secrets import SecretStore, drop_secret, set_secret
from shared.services.sequences import disarm
from shared.services.workspaces import Scope, create_key, create_workspace, revoke_key
from shared.time.clock import ManualClock
from tests.any_rows import add_row
from tests.bulk import wish
from tests.idle_rows import add_step
from tests.pages import names, page
from tests.pending_rows import add_pending
from tests.people import CALLER, NOW, definition, opened_backends, set_run

ANNA = NewMember("anna@example.org", Role.OWNER)
BERT = NewMember("bert@example.org", Role.OWNER)
CHANNEL = NewChannel("ops", "https://example.test/", None)
# What takes a caller and changes nothing, or is a part of one of the others.
LOOKS = {
    "preview_changes",
    "write_deed",
    "write_deeds",
    "write_deed_in",
    "get_step",
    "get_agent",
    "get_channel",
    "note_stops",
    "create_row",
    "remove_row",
    "get_subject",
    "get_pending",
}
# A service's own data tells of itself by an event on the stream; a notice is its reader's own.
TOLD_ELSEWHERE = {"put_subject", "delete_subject", "read_notice"}


@pytest.fixture
def opened(database_url: str, redis_url: str) -> Iterator[Backends]:
    with opened_backends(database_url, redis_url) as backends:
        yield backends


class Office:
    """Does one thing after another, as people do."""

    def __init__(self, opened: Backends) -> None:
        self.all = opened
        self.base = (opened.database, opened.clock, CALLER)
        self.store = SecretStore(opened.database, opened.clock, Seal([b"k" * 32]))

    def audited(self) -> list[AuditRow]:
        with self.all.database.read() as conn:
            return list_audit(conn, AuditQuery("w1", 1_000)) + list_audit(conn, AuditQuery("w3", 1_000))

    def run(self, status: str) -> str:
        apply_changes(self.all, CALLER, [definition()], Leftovers.KEEP)
        run_id = start_by_hand(self.all, CALLER, "welcome", {})
        set_run(self.all, run_id, status)
        return run_id

    def dead_event(self) -> str:
        fields = {b"type": b"x", b"workspaceId": b"w1", b"payload": b"?"}
        with self.all.redis.pipeline() as pipe:
            bury(pipe, self.all.keys, [Burial("1-0", fields, "payload: is no JSON", "BadEvent")])
            (dead_id,) = pipe.execute()
        return str(dead_id.decode())

    def pending(self) -> str:
        applied(self)
        with self.all.database.begin() as conn:
            return add_pending(conn, "p1", "a1")

    def agent(self) -> str:
        return make_agent(*self.base, {"name": "Nora"}, "nora").id

    def channel(self) -> str:
        wanted = NewTalkChannel("shop", "Shop", ChannelKind.SMS, True, {})
        return make_channel(*self.base, wanted).id

    def idle_step(self) -> str:
        with self.all.database.begin() as conn:
            return add_step(conn, "s1")

    def alert_group(self) -> str:
        with self.all.database.begin() as conn:
            add_row(conn, ALERT_GROUPS, id="g1", workspace_id="w1")
        return "g1"


def applied(office: Office) -> None:
    apply_changes(office.all, CALLER, [definition()], Leftovers.KEEP)


def ignore(_found: object) -> None:
    """Have nothing against what is found."""


def member(office: Office) -> None:
    for each in (ANNA, BERT):
        add_member(*office.base, each)


# Each service's change: what it needs beforehand, the change itself, and the action that tells of it.
Before = Callable[[Office], Any]
Change = Callable[[Office, Any], Any]
CHANGES: dict[str, tuple[Before, Change, str]] = {
    "create_workspace": (
        lambda office: Caller("w3", CALLER.actor),
        lambda office, caller: create_workspace(office.all.database, office.all.clock, caller, "a@b.test"),
        "workspace.created",
    ),
    "create_key": (
        lambda office: None,
        lambda office, _: create_key(*office.base, ("k", [Scope.ADMIN])),
        "api_key.created",
    ),
    "revoke_key": (
        lambda office: create_key(*office.base, ("k", [Scope.ADMIN])).id,
        lambda office, key_id: revoke_key(*office.base, key_id),
        "api_key.revoked",
    ),
    "apply_changes": (
        lambda office: None,
        lambda office, _: apply_changes(office.all, CALLER, [definition()], Leftovers.KEEP),
        "automation.created",
    ),
    "create": (
        lambda office: None,
        lambda office, _: create(office.all, CALLER, definition()),
        "automation.created",
    ),
    "edit": (
        applied,
        lambda office, _: edit(office.all, CALLER, "welcome", Edit({"name": "New"}, ignore, ignore)),
        "automation.updated",
    ),
    "cancel_waiting": (
        lambda office: office.pending(),
        lambda office, pending_id: cancel_waiting(office.all, CALLER, pending_id),
        "pending_execution.cancelled",
    ),
    "activate_and_arm": (
        lambda office: create(office.all, CALLER, definition(execution_delay=5, status="PAUSED")),
        lambda office, _: activate_and_arm(office.all, CALLER, "welcome"),
        "automation.armed",
    ),
    "rename_workspace": (
        lambda office: None,
        lambda office, _: rename_workspace(*office.base, "New", ignore),
        "workspace.renamed",
    ),
    "pause": (applied, lambda office, _: pause(office.all, CALLER, "welcome"), "automation.paused"),
    "activate": (
        lambda office: apply_changes(office.all, CALLER, [definition(status="DRAFT")], Leftovers.KEEP),
        lambda office, _: activate(office.all, CALLER, "welcome"),
        "automation.activated",
    ),
    "delete": (applied, lambda office, _: delete(office.all, CALLER, "welcome"), "automation.deleted"),
    "start_by_hand": (
        applied,
        lambda office, _: start_by_hand(office.all, CALLER, "welcome", {}),
        "run.started_by_hand",
    ),
    "replay": (
        lambda office: office.run("FAILED"),
        lambda office, run_id: replay(office.all, CALLER, [run_id], ReplayFrom.FAILED_ACTION),
        "run.replayed",
    ),
    "cancel": (
        lambda office: office.run("PENDING"),
        lambda office, run_id: cancel(office.all, CALLER, run_id, Insistence.GENTLE),
        "run.cancelled",
    ),
    "set_secret": (
        lambda office: None,
        lambda office, _: set_secret(office.store, CALLER, "k1", "value"),
        "secret.created",
    ),
    "drop_secret": (
        lambda office: set_secret(office.store, CALLER, "k1", "value"),
        lambda office, _: drop_secret(*office.base, "k1"),
        "secret.deleted",
    ),
    "set_flag": (
        lambda office: None,
        lambda office, _: set_flag(*office.base, ("f", FlagState.ON)),
        "flag.set",
    ),
    "set_feature_flag": (
        lambda office: None,
        lambda office, _: set_feature_flag(*office.base, (SEQUENTIAL_IDLE, FlagState.ON)),
        "flag.set",
    ),
    "make_agent": (lambda office: None, lambda office, _: office.agent(), "ai_agent.created"),
    "edit_agent": (
        lambda office: office.agent(),
        lambda office, id_: edit_agent(*office.base, id_, AgentEdit({"name": "New"}, ignore)),
        "ai_agent.updated",
    ),
    "drop_agent": (
        lambda office: office.agent(),
        lambda office, id_: drop_agent(*office.base, id_, ignore),
        "ai_agent.deleted",
    ),
    "make_channel": (lambda office: None, lambda office, _: office.channel(), "channel.created"),
    "edit_channel": (
        lambda office: office.channel(),
        lambda office, id_: edit_channel(*office.base, id_, ChannelEdit("New", None, None, {}, ignore)),
        "channel.updated",
    ),
    "drop_channel": (
        lambda office: office.channel(),
        lambda office, id_: drop_channel(*office.base, id_, ignore),
        "channel.deleted",
    ),
    "disarm": (
        lambda office: office.idle_step(),
        lambda office, id_: disarm(*office.base, id_),
        "idle_step.disarmed",
    ),
    "add_member": (lambda office: None, lambda office, _: add_member(*office.base, ANNA), "member.added"),
    "change_role": (
        member,
        lambda office, _: change_role(*office.base, (ANNA.email, Role.VIEWER)),
        "member.role_changed",
    ),
    "remove_member": (
        member,
        lambda office, _: remove_member(*office.base, ANNA.email),
        "member.removed",
    ),
    "put_back_events": (
        lambda office: office.dead_event(),
        lambda office, dead_id: list(put_back_events(office.all, CALLER.actor, [dead_id])),
        "event.requeued",
    ),
    "mute_alerts": (
        lambda office: office.alert_group(),
        lambda office, group_id: mute_alerts(*office.base, (group_id, timedelta(hours=1))),
        "alert_group.muted",
    ),
    "preview": (
        lambda office: None,
        lambda office, _: preview(office.all, CALLER, wish()),
        "bulk_operation.created",
    ),
    "confirm": (
        lambda office: preview(office.all, CALLER, wish()).id,
        lambda office, operation_id: confirm(office.all, CALLER, operation_id),
        "bulk_operation.confirmed",
    ),
    "start_bulk": (
        lambda office: None,
        lambda office, _: start_bulk(office.all, CALLER, wish()),
        "bulk_operation.confirmed",
    ),
    "cancel_bulk": (
        lambda office: preview(office.all, CALLER, wish()).id,
        lambda office, operation_id: cancel_bulk(office.all, CALLER, operation_id),
        "bulk_operation.cancelled",
    ),
    "add_channel": (
        lambda office: None,
        lambda office, _: add_channel(*office.base[:2], office.store.seal, CALLER, CHANNEL),
        "alert_channel.added",
    ),
    "remove_channel": (
        lambda office: add_channel(*office.base[:2], office.store.seal, CALLER, CHANNEL),
        lambda office, _: remove_channel(*office.base, "ops"),
        "alert_channel.removed",
    ),
}


def deeds() -> set[str]:
    """Name the public functions of all services that act for somebody."""
    found = set[str]()
    for module in pkgutil.iter_modules(shared.services.__path__):
        loaded = import_module(f"shared.services.{module.name}")
        for name, function in inspect.getmembers(loaded, inspect.isfunction):
            is_own = function.__module__ == loaded.__name__ and not name.startswith("_")
            if is_own and {"caller", "actor"} & inspect.signature(function).parameters.keys():
                found.add(name)
    return found


def test_every_service_that_acts_for_somebody_is_looked_at() -> None:
    assert deeds() - LOOKS - TOLD_ELSEWHERE == CHANGES.keys()


def test_the_page_tells_of_every_entry() -> None:
    told = {name for row in page("security.md").table("Audit") for name in names(row[1])}
    assert {action for _, _, action in CHANGES.values()} <= told


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_audited_with_what_was_before_and_what_is_after(opened: Backends, name: str) -> None:
    office = Office(opened)
    prepare, change, action = CHANGES[name]
    given = prepare(office)
    before = {row.id for row in office.audited()}
    change(office, given)
    made = [row for row in office.audited() if row.id not in before]
    (entry,) = [row for row in made if row.action == action]
    assert entry.actor == CALLER.actor
    assert entry.resource_type
    assert entry.resource_id
    assert entry.detail is not None
    assert {"before", "after"} <= entry.detail.keys()
    assert entry.detail["before"] != entry.detail["after"]


def test_the_audit_is_read_by_thing_and_by_time_newest_first(opened: Backends) -> None:
    clock = opened.clock
    assert isinstance(clock, ManualClock)
    for name in ("a", "b", "c"):
        set_flag(opened.database, clock, CALLER, (name, FlagState.ON))
        clock.advance(timedelta(hours=1))
    add_member(opened.database, clock, CALLER, ANNA)
    set_flag(opened.database, clock, Caller("w2", "USER cli:bert"), ("z", FlagState.ON))

    def read(**given: Any) -> list[str]:
        with opened.database.read() as conn:
            return [
                row.resource_id for row in list_audit(conn, AuditQuery("w1", given.pop("most", 10), **given))
            ]

    assert read(resource_type="flag") == ["c", "b", "a"]
    assert read(resource_type="flag", resource_id="b") == ["b"]
    assert read(resource_type="flag", since=NOW + timedelta(hours=1)) == ["c", "b"]
    assert len(read(most=2)) == 2
    assert "z" not in read()


def test_the_page_lists_every_kind_of_thing() -> None:
    rows = page("security.md").table("Audit")
    assert [name for row in rows for name in names(row[0])] == list(AuditKind)
