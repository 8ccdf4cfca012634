"""What the rules of AI agents and channels are at this moment (docs/idle-sequences.md)."""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from shared.db.idle_rules import (
    RuleHolder,
    read_agent_holders,
    read_channel_holders,
    workspaces_with,
)
from shared.model.flag_states import SEQUENTIAL_IDLE, FlagState
from shared.model.idle_steps import IdleRuleKind
from shared.rules.idle_rules import (
    IdlePlan,
    MalformedIdleRule,
    RuleAsk,
    RuleFound,
    agent_plan,
    channel_plan,
)

_NOBODY: Final = RuleFound(None, "", is_there=False, malformed=None)


def read_rules(conn: Connection, asks: Iterable[RuleAsk]) -> dict[RuleAsk, RuleFound]:
    """Read rules as one set; each that was asked for is answered. Never raises for what is stored."""
    wanted = set(asks)
    places = {kind: [(at, id_) for at, of, id_ in wanted if of is kind] for kind in IdleRuleKind}
    agents = read_agent_holders(conn, places[IdleRuleKind.AGENT])
    channels = read_channel_holders(conn, places[IdleRuleKind.CHANNEL])
    on = workspaces_with(conn, SEQUENTIAL_IDLE, (workspace_id for workspace_id, _ in agents))

    def answer(ask: RuleAsk) -> RuleFound:
        workspace_id, kind, id_ = ask
        holder = (agents if kind is IdleRuleKind.AGENT else channels).get((workspace_id, id_))
        return _found(holder, kind, FlagState.ON if workspace_id in on else FlagState.OFF)

    return {ask: answer(ask) for ask in wanted}


def is_sequential_idle_on(conn: Connection, workspace_id: str) -> bool:
    """Tell whether agents of a workspace may have several steps: both halves of the flag say so."""
    return workspace_id in workspaces_with(conn, SEQUENTIAL_IDLE, [workspace_id])


def _found(holder: RuleHolder | None, kind: IdleRuleKind, state: FlagState) -> RuleFound:
    if holder is None:
        return _NOBODY
    try:
        plan = _plan(holder, kind, state)
    except MalformedIdleRule as fault:
        return RuleFound(None, holder.name, is_there=True, malformed=str(fault))
    return RuleFound(plan, holder.name, is_there=True, malformed=None)


def _plan(holder: RuleHolder, kind: IdleRuleKind, state: FlagState) -> IdlePlan | None:
    if holder.config is None:
        return None
    return agent_plan(holder.config, state) if kind is IdleRuleKind.AGENT else channel_plan(holder.config)
