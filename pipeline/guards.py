"""What stops a run before its first action. Pure; the order is that of `docs/automations.md`, "Guards"."""

from pipeline.plans import Plan
from shared.model.automation import MAX_ACTIONS
from shared.model.events import Event
from shared.model.moves import SkipReason
from shared.model.runs import ClaimedRun, Failed, RunError, Succeeded
from shared.model.statuses import AutomationStatus
from shared.rules.guarding import is_own_event, is_too_deep, may_have_actions


def guard(run: ClaimedRun, plan: Plan, event: Event, depth_max: int) -> Succeeded | Failed | None:
    """Say how the run ends without acting, or None when it may act."""
    if plan.state.is_deleted:
        return _failed("AUTOMATION_DELETED", "the automation was deleted")
    if run.stop_reason is not None:
        return _failed(run.stop_reason, "stopped before its next action")
    if plan.state.status is not AutomationStatus.ACTIVE and not run.finished and run.retry_count == 0:
        return Succeeded(SkipReason.INACTIVE, {})
    if is_own_event(event, run.automation_id):
        return Succeeded(SkipReason.SELF_TRIGGER, {})
    if is_too_deep(run.depth, depth_max):
        return Succeeded(SkipReason.DEPTH_LIMIT, {})
    if plan.fault is not None:
        return _failed(plan.fault_code, plan.fault)
    if not may_have_actions(len(plan.actions)):
        return _failed("ACTION_COUNT", f"{len(plan.actions)} actions; 1 to {MAX_ACTIONS} are allowed")
    return _changed_definition(run, plan)


def _changed_definition(run: ClaimedRun, plan: Plan) -> Failed | None:
    """Refuse to go on where an action that is done already is no longer what it was."""
    for done in run.finished:
        if done.position > len(plan.actions):
            return _failed("DEFINITION_CHANGED", f"action {done.position} was removed after it was done")
        now = plan.actions[done.position - 1].type
        if now != done.type:
            return _failed("DEFINITION_CHANGED", f"action {done.position} was {done.type} and is {now} now")
    return None


def _failed(code: str, message: str) -> Failed:
    return Failed(RunError(code, message, None))
