"""AI agents: made, edited, deleted; audited. Their idle rules are checked here (docs/idle-sequences.md)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from sqlalchemy import Connection

from shared.db.ai_agents import AgentRow, delete_agent, find_agent, insert_agent, lock_agent, save_agent
from shared.db.engine import Database
from shared.errors import ConfigError, IdTaken, NotFound
from shared.ids import new_id
from shared.model.flag_states import FlagState
from shared.rules.idle_rules import read_steps
from shared.rules.values import is_same_json, object_of
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.services.idle_rules import is_sequential_idle_on
from shared.services.references import check_workspace
from shared.time.clock import Clock

PARAMETERS_BYTES_MAX: Final = 65_536

CheckAgent = Callable[[AgentRow], None]


class StepsNotEnabled(ConfigError):
    """Steps are to be stored where the flag is off."""

    def __init__(self) -> None:
        """Say so."""
        super().__init__("sequential idle steps are not enabled for this workspace")


@dataclass(frozen=True, slots=True)
class AgentEdit:
    """New values for `name`, `profile` and `parameters`; each is replaced whole, what is not given stays.

    `check` raises what it finds against the agent as it stands.
    """

    keys: Mapping[str, Any]
    check: CheckAgent


def get_agent(conn: Connection, caller: Caller, agent_id: str) -> AgentRow:
    """Give an agent of the caller's workspace. Raises NotFound."""
    found = find_agent(conn, caller.workspace_id, agent_id)
    if found is None:
        raise _no_agent(caller, agent_id)
    return found


def make_agent(
    database: Database, clock: Clock, caller: Caller, keys: Mapping[str, Any], agent_id: str | None
) -> AgentRow:
    """Make an agent of `name`, `profile` and `parameters`, under an id of ours where none is given.

    Raises IdTaken for an id that is taken, also by one that was deleted, NotFound without the workspace, and
    what `edit_agent` raises.
    """
    now = clock.now()

    def work(conn: Connection) -> AgentRow:
        check_workspace(conn, caller.workspace_id)
        parameters = _laid_over({}, _accepted(keys, _state(conn, caller)))
        row = AgentRow(agent_id or new_id(), keys["name"], parameters, now, now)
        if not insert_agent(conn, caller.workspace_id, row):
            raise IdTaken(f"the id {row.id!r} is taken in workspace {caller.workspace_id!r}")
        write_deed(conn, caller, Deed("ai_agent.created", row.id, None, _told(row)), now)
        return row

    return database.transact(work)


def edit_agent(
    database: Database, clock: Clock, caller: Caller, agent_id: str, wanted: AgentEdit
) -> AgentRow:
    """Change an agent; what fires from now on goes by it. The same again changes nothing.

    Raises NotFound, MalformedIdleRule, StepsNotEnabled, ConfigError for what is too large, and what
    `wanted.check` raises.
    """
    now = clock.now()

    def work(conn: Connection) -> AgentRow:
        before = _locked(conn, caller, agent_id)
        wanted.check(before)
        keys = _accepted(wanted.keys, _state(conn, caller))
        after = replace(
            before, name=keys.get("name", before.name), parameters=_laid_over(before.parameters, keys)
        )
        if is_same_json(_told(before), _told(after)):
            return before
        after = replace(after, updated_at=now)
        save_agent(conn, caller.workspace_id, after)
        write_deed(conn, caller, Deed("ai_agent.updated", agent_id, _told(before), _told(after)), now)
        return after

    return database.transact(work)


def drop_agent(database: Database, clock: Clock, caller: Caller, agent_id: str, check: CheckAgent) -> None:
    """Delete an agent: nothing of it fires any more, and nobody else ever gets its id.

    Raises NotFound, and what `check` raises.
    """
    now = clock.now()

    def work(conn: Connection) -> None:
        before = _locked(conn, caller, agent_id)
        check(before)
        delete_agent(conn, caller.workspace_id, agent_id, now=now)
        write_deed(conn, caller, Deed("ai_agent.deleted", agent_id, _told(before), None), now)

    database.transact(work)


def _state(conn: Connection, caller: Caller) -> FlagState:
    return FlagState.ON if is_sequential_idle_on(conn, caller.workspace_id) else FlagState.OFF


def _accepted(keys: Mapping[str, Any], state: FlagState) -> Mapping[str, Any]:
    """Give what somebody wants to store as it will be stored. Raises what is wrong with its steps."""
    checked = dict(keys)
    if isinstance(keys.get("profile"), Mapping):
        checked["profile"] = _with_steps(keys["profile"], state)
    if isinstance(keys.get("parameters"), Mapping):
        checked["parameters"] = _with_steps(keys["parameters"], state)
        profile = keys["parameters"].get("profile")
        if isinstance(profile, Mapping):
            checked["parameters"] = {**checked["parameters"], "profile": _with_steps(profile, state)}
    return checked


def _with_steps(holder: Mapping[str, Any], state: FlagState) -> Mapping[str, Any]:
    """Give what holds a rule with the order of its steps made from where they stand."""
    rule = holder.get("idle_rule")
    steps = rule.get("steps") if isinstance(rule, Mapping) else None
    if not isinstance(rule, Mapping) or steps is None:
        return holder
    if state is FlagState.OFF:
        raise StepsNotEnabled
    read_steps(steps)
    ordered = [{**step, "order": place} for place, step in enumerate(steps, 1)]
    return {**holder, "idle_rule": {**rule, "steps": ordered}}


def _laid_over(parameters: object, keys: Mapping[str, Any]) -> Mapping[str, Any]:
    merged = dict(object_of(keys.get("parameters", parameters)))
    if "profile" in keys:
        merged["profile"] = keys["profile"]
    if len(orjson.dumps(merged)) > PARAMETERS_BYTES_MAX:
        raise ConfigError(f"parameters have at most {PARAMETERS_BYTES_MAX:,} bytes as JSON")
    return merged


def _locked(conn: Connection, caller: Caller, agent_id: str) -> AgentRow:
    found = lock_agent(conn, caller.workspace_id, agent_id)
    if found is None:
        raise _no_agent(caller, agent_id)
    return found


def _no_agent(caller: Caller, agent_id: str) -> NotFound:
    return NotFound(f"there is no AI agent {agent_id!r} in workspace {caller.workspace_id!r}")


def _told(row: AgentRow) -> Mapping[str, Any]:
    return {"name": row.name, "parameters": row.parameters}
