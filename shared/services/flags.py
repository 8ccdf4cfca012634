"""Flags of a workspace, set by a person."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.flags import Flag, lock_flag, put_flag
from shared.db.people import workspace_name
from shared.errors import ConfigError, NotFound
from shared.model.flag_states import KNOWN_FLAGS, FlagState
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.time.clock import Clock

NAME: Final = re.compile(r"[a-z_][a-z0-9_\-]{0,99}")


@dataclass(frozen=True, slots=True)
class ListedFlag:
    """A flag that was set, or that something reads; `state` is None for one that was never set."""

    name: str
    state: FlagState | None
    turns_on: str | None
    updated_at: datetime | None


def listed_flags(flags: Iterable[Flag], known: Mapping[str, str] = KNOWN_FLAGS) -> list[ListedFlag]:
    """Join the flags that were set with those that something reads, by name."""
    given = {flag.name: flag for flag in flags}
    return [
        ListedFlag(
            name=name,
            state=given[name].state if name in given else None,
            turns_on=known.get(name),
            updated_at=given[name].updated_at if name in given else None,
        )
        for name in sorted({*given, *known})
    ]


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
        told = None if found is None else {"state": found.state}
        write_deed(conn, caller, Deed("flag.set", name, told, {"state": state}), now)
        return SetFlag(flag, None if found is None else found.state)

    return database.transact(work)
