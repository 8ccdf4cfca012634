"""What the child process of a suspect run does, started by `pipeline.solo` and by nobody else."""

from typing import Final

from pipeline.engine import Engine
from pipeline.parts import Parts
from shared.db.claims import find_claimed
from shared.model.runs import Claim
from shared.process import StopFlag

POLL_S: Final = 0.05
FAILED: Final = 70


def drive_alone(parts: Parts, claim: Claim) -> int:
    """Drive the run under the claim that the parent holds; 0 when all of it is written or handed back."""
    stop = StopFlag()
    stop.listen()
    engine = Engine(parts)
    engine.start()
    with parts.database.begin() as conn:
        run = find_claimed(conn, claim)
        held = None if run is None else engine.plan(conn, run)
    if held is None:
        return 0
    engine.adopt([held])
    while not engine.wait_idle(POLL_S):
        if engine.failure() is not None:
            return FAILED
        if stop.is_raised():
            break
    engine.stop(parts.settings.shutdown_grace_s)
    return 0
