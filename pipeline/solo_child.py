"""The child process that drives one suspect run, started by `pipeline.solo` and by nobody else."""

import sys
from typing import Final

from pipeline.engine import Engine
from pipeline.parts import Parts, open_parts
from shared.db.claims import find_claimed
from shared.logs import configure_logs
from shared.model.runs import Claim
from shared.process import StopFlag, leave
from shared.settings import load_settings

POLL_S: Final = 0.05
FAILED: Final = 70


def main(run_id: str, lease: int) -> int:
    """Drive the run with what the product can do; give the exit code."""
    settings = load_settings()
    configure_logs(settings)
    return drive_alone(open_parts(settings), Claim(run_id, lease))


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


if __name__ == "__main__":
    leave(main(sys.argv[1], int(sys.argv[2])))
