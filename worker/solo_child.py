"""The child process that drives one suspect run for a worker, with the worker's settlers."""

import sys

from pipeline.parts import open_parts
from pipeline.solo_child import drive_alone
from shared.logs import configure_logs
from shared.model.runs import Claim
from shared.process import leave
from shared.settings import load_settings
from worker.settlers import with_settlers


def main(run_id: str, lease: int) -> int:
    """Drive the run with what a worker can do; give the exit code."""
    settings = load_settings()
    configure_logs(settings)
    return drive_alone(with_settlers(open_parts(settings)), Claim(run_id, lease))


if __name__ == "__main__":
    leave(main(sys.argv[1], int(sys.argv[2])))
