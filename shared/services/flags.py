"""Flags of a workspace, and of the whole installation, set by a person."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.feature_flags import (
    list_feature_flags,
    lock_feature_flag,
    put_feature_flag,
    workspaces_that_set,
)
from shared.db.flags import Flag, list_flags, lock_flag, put_flag
from shared.db.people import workspace_name
from shared.errors import ConfigError, NotFound
from shared.logs import get_logger
from shared.model.flag_states import KNOWN_FLAGS, FlagState, has_two_halves, in_effect
from shared.services.auditing import Deed, write_deed, write_deed_in
from shared.services.backends import Caller
from shared.time.clock import Clock

log: Final = get_logger("flags")

NAME: Final = re.compile(r"[a-z_][a-z0-9_\-]{0,99}")


@dataclass(frozen=True, slots=True)
class ListedFlag:
    """A flag that was set, or that something reads; a half is None where it was never set.

    `effective` is what it comes to in the workspace; None where that is left to whoever reads it.
    """

    name: str
    state: FlagState | None
    installation: FlagState | None
    effective: FlagState | None
    turns_on: str | None
    updated_at: datetime | None


def list_known_flags(conn: Connection, workspace_id: str) -> list[ListedFlag]:
    """Join a workspace's flags with those of the installation and those that something reads, by name."""
    here = {flag.name: flag for flag in list_flags(conn, workspace_id)}
    everywhere = installation_flags(conn)
    return [_listed(name, here.get(name), everywhere.get(name)) for name in sorted({*here, *KNOWN_FLAGS})]


def installation_flags(conn: Connection) -> Mapping[str, FlagState]:
    """Give what the installation says, of each flag that it has a half of and that was set."""
    return {name: flag.state for name, flag in list_feature_flags(conn).items() if has_two_halves(name)}


def _listed(name: str, here: Flag | None, installation: FlagState | None) -> ListedFlag:
    known = KNOWN_FLAGS.get(name)
    state = None if here is None else here.state
    return ListedFlag(
        name=name,
        state=state,
        installation=installation,
        effective=in_effect(name, state, installation),
        turns_on=None if known is None else known.turns_on,
        updated_at=None if here is None else here.updated_at,
    )


@dataclass(frozen=True, slots=True)
class SetFlag:
    """A flag as it stands after it was set, and what it said before; None if it was never set."""

    flag: Flag
    before: FlagState | None


def set_flag(database: Database, clock: Clock, caller: Caller, wanted: tuple[str, FlagState]) -> SetFlag:
    """Turn a flag of the caller's workspace on or off.

    Setting it to what it says changes nothing. Raises ConfigError for a name that no flag can have, NotFound
    without the workspace.
    """
    name, state = wanted
    if NAME.fullmatch(name) is None:
        raise ConfigError(
            "a flag's name has at most 100 lower case letters, digits, underscores and dashes,"
            " the first of them a letter or an underscore"
        )
    now = clock.now()

    def work(conn: Connection) -> SetFlag:
        if workspace_name(conn, caller.workspace_id) is None:
            raise NotFound(f"there is no workspace {caller.workspace_id!r}")
        found = lock_flag(conn, caller.workspace_id, name)
        if found is not None and found.state is state:
            return SetFlag(found, state)
        flag = Flag(name, state, now)
        put_flag(conn, caller.workspace_id, flag)
        write_deed(conn, caller, _deed(found, flag, "workspace"), now)
        return SetFlag(flag, None if found is None else found.state)

    done = database.transact(work)
    _log(done, caller.workspace_id)
    return done


def set_feature_flag(
    database: Database, clock: Clock, caller: Caller, wanted: tuple[str, FlagState]
) -> SetFlag:
    """Turn the installation's half of a flag on or off, for all workspaces at once.

    It is audited in each workspace that has set its own half, and in the caller's if that is there. Setting
    it to what it says changes nothing. Raises ConfigError for a flag that has no such half.
    """
    name, state = wanted
    if not has_two_halves(name):
        raise ConfigError(f"the flag {name!r} has no half for the whole installation; name a workspace")
    now = clock.now()

    def work(conn: Connection) -> SetFlag:
        found = lock_feature_flag(conn, name)
        if found is not None and found.state is state:
            return SetFlag(found, state)
        flag = Flag(name, state, now)
        put_feature_flag(conn, flag)
        told = {*workspaces_that_set(conn, name), *_if_there(conn, caller.workspace_id)}
        write_deed_in(conn, sorted(told), caller, (_deed(found, flag, "installation"), now))
        return SetFlag(flag, None if found is None else found.state)

    done = database.transact(work)
    _log(done, None)
    return done


def _deed(before: Flag | None, after: Flag, half: str) -> Deed:
    told = None if before is None else {"state": before.state}
    more = {"half": half} if has_two_halves(after.name) else {}
    return Deed("flag.set", after.name, told, {"state": after.state}, more)


def _if_there(conn: Connection, workspace_id: str) -> list[str]:
    return [] if workspace_name(conn, workspace_id) is None else [workspace_id]


def _log(done: SetFlag, workspace_id: str | None) -> None:
    """Tell of a change; `workspace_id` is None for the whole installation."""
    if done.before is not done.flag.state:
        log.info(
            "flag_set",
            flag=done.flag.name,
            state=done.flag.state,
            before=done.before,
            flag_workspace_id=workspace_id,
        )
