"""Which process is killed at which point. Together they are all the kill points that there are."""

from shared.faults import FaultPoint

MATCHER = (
    FaultPoint.MATCH_AFTER_READ,
    FaultPoint.MATCH_AFTER_DEDUPE,
    FaultPoint.MATCH_BEFORE_COMMIT,
    FaultPoint.MATCH_AFTER_COMMIT,
    FaultPoint.ENQUEUE_BEFORE,
    FaultPoint.MATCH_BEFORE_ACK,
    FaultPoint.ENQUEUE_AFTER,
)
WORKER = (
    FaultPoint.CLAIM_AFTER_COMMIT,
    FaultPoint.HANDLE_BEFORE_ACK,
    FaultPoint.RUN_BEFORE_GUARD,
    FaultPoint.ACTION_BEFORE_EFFECT,
    FaultPoint.ACTION_AFTER_EFFECT,
    FaultPoint.RUN_BEFORE_TERMINAL,
    FaultPoint.OUTBOX_BEFORE_EMIT,
    FaultPoint.OUTBOX_AFTER_EMIT,
)
# The first passage writes the start of a run, the second one the outcome of its first action.
WORKER_AGAIN = (FaultPoint.JOURNAL_BEFORE_COMMIT, FaultPoint.JOURNAL_AFTER_COMMIT)
WORKER_RETRYING = FaultPoint.RETRY_BEFORE_SCHEDULE
SCHEDULER = FaultPoint.SCHEDULER_BEFORE_HAND_OVER
TIMERS = (FaultPoint.TIMERS_BEFORE_COMMIT, FaultPoint.TIMERS_AFTER_COMMIT)
DELAYED = (
    FaultPoint.DELAYED_AFTER_CLAIM,
    FaultPoint.DELAYED_BEFORE_COMMIT,
    FaultPoint.DELAYED_AFTER_COMMIT,
)
IDLE = (
    FaultPoint.IDLE_AFTER_CLAIM,
    FaultPoint.IDLE_BEFORE_COMMIT,
    FaultPoint.IDLE_AFTER_COMMIT,
)
BULK = (FaultPoint.BULK_BEFORE_COMMIT, FaultPoint.BULK_AFTER_COMMIT)
REQUEST = (
    FaultPoint.REQUEST_AFTER_CLAIM,
    FaultPoint.REQUEST_BEFORE_ANSWER,
    FaultPoint.REQUEST_AFTER_ANSWER,
)
WATCHDOG = FaultPoint.RESCUE_BEFORE_COMMIT
RETENTION = FaultPoint.RETENTION_BETWEEN_BATCHES

OUTBOX = frozenset({FaultPoint.OUTBOX_BEFORE_EMIT, FaultPoint.OUTBOX_AFTER_EMIT})
