"""What follows from an action that failed. Pure."""

from datetime import datetime, timedelta
from typing import Final

from executors.classify import Classification
from pipeline.plans import PlannedAction
from pipeline.retrying import Retryable
from shared.model.runs import DeadLettered, Failed, Retried, RunError
from shared.rules.backoff import run_backoff_seconds

MAX_WAIT: Final = timedelta(seconds=600)


def after_failure(
    action: PlannedAction, found: Classification, failures: int, now: datetime
) -> Failed | Retried | DeadLettered:
    """Decide between giving up, another attempt and the dead-letter desk (`docs/automations.md`, "Retries").

    `failures` counts those of this action before this one.
    """
    error = RunError(found.code, found.message, action.position)
    policy = action.policy
    if policy.errors is Retryable.NONE or (policy.errors is Retryable.AS_JUDGED and not found.retryable):
        return Failed(error)
    if failures >= action.retries:
        return DeadLettered(error)
    wait = policy.wait or timedelta(seconds=run_backoff_seconds(failures + 1))
    if found.retry_after is not None and policy.wait is None:
        wait = min(max(wait, found.retry_after), MAX_WAIT)
    return Retried(error, now + wait, failures + 1)
