"""What a person does to steps of idle sequences (docs/idle-sequences.md): look at them, disarm one."""

from typing import Final

from sqlalchemy import Connection

from shared.db.engine import Database
from shared.db.idle_lists import IdleStepShown, find_idle_step
from shared.db.idle_waiting import disarm_step
from shared.errors import Conflict, NotFound
from shared.logs import get_logger
from shared.model.idle_steps import IdleStatus, IdleStop
from shared.services.auditing import Deed, write_deed
from shared.services.backends import Caller
from shared.services.references import check_workspace
from shared.time.clock import Clock

log: Final = get_logger("sequences")


def get_step(conn: Connection, caller: Caller, step_id: str) -> IdleStepShown:
    """Give one step of the caller's workspace; the id of a sequence is that of its first. Raises NotFound."""
    found = find_idle_step(conn, caller.workspace_id, step_id)
    if found is None:
        check_workspace(conn, caller.workspace_id)
        raise NotFound(f"there is no idle step {step_id!r} in workspace {caller.workspace_id!r}")
    return found


def disarm(database: Database, clock: Clock, caller: Caller, step_id: str) -> IdleStepShown:
    """Keep a step that waits from firing, and so all that would follow it.

    The agent's next message arms anew. Raises NotFound, and Conflict for a step that waits no more, as after
    a first call, or that a sweep has claimed: cancel its run, then.
    """
    now = clock.now()

    def work(conn: Connection) -> IdleStepShown:
        before = get_step(conn, caller, step_id).row
        if not disarm_step(conn, caller.workspace_id, step_id, now=now):
            raise Conflict(f"the step is {_standing(conn, caller, step_id)}; it waits no more")
        more = {
            "conversation_id": before.conversation_id,
            "agent_id": before.agent_id,
            "channel_id": before.channel_id,
            "reason": IdleStop.DISARMED,
        }
        deed = Deed("idle_step.disarmed", step_id, IdleStatus.PENDING, IdleStatus.STOPPED, more)
        write_deed(conn, caller, deed, now)
        return get_step(conn, caller, step_id)

    step = database.transact(work)
    log.info(
        "idle_step_disarmed",
        step_id=step_id,
        conversation_id=step.row.conversation_id,
        agent_id=step.row.agent_id,
        step_index=step.row.step_index,
    )
    return step


def _standing(conn: Connection, caller: Caller, step_id: str) -> str:
    row = get_step(conn, caller, step_id).row
    return f"{row.status} ({row.reason})" if row.reason else row.status.value
