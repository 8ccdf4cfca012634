"""The plans of runs: those of automations by their definitions, those of other sources by their events."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from sqlalchemy import Connection

from pipeline.idle_plan import idle_plan
from pipeline.plans import Plan, Plans
from shared.model.runs import ClaimedRun, RunSource
from shared.settings import Settings

# The sources whose runs have no automation: what makes a plan of a run, within an action's time.
BY_EVENT: Final[Mapping[RunSource, Callable[[ClaimedRun, timedelta], Plan]]] = MappingProxyType(
    {RunSource.IDLE_STEP: idle_plan}
)


class PlanBook:
    """Gives each run of this process its plan."""

    def __init__(self, settings: Settings) -> None:
        """Take the defaults for retries and timeouts from the settings."""
        self._plans = Plans(settings)
        self._timeout = timedelta(milliseconds=settings.action_timeout_ms)

    def current(self, conn: Connection, runs: Sequence[ClaimedRun]) -> dict[str, Plan]:
        """Give the plans by run id, those of automations as they stand in this transaction."""
        of_automations = self._plans.current(
            conn, (run.automation_id for run in runs if run.automation_id is not None)
        )
        return {run.claim.run_id: self._plan(run, of_automations) for run in runs}

    def _plan(self, run: ClaimedRun, of_automations: Mapping[str, Plan]) -> Plan:
        if run.automation_id is not None:
            return of_automations[run.automation_id]
        return BY_EVENT[run.source](run, self._timeout)
