"""Automations turned on and off."""

from dataclasses import asdict
from typing import Final, Self

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from api.automations import AutomationOut, Reference, Writer
from api.served import Served
from shared.services.arming_existing import activate_and_arm
from shared.services.automations import Turned, activate, pause

router: Final = APIRouter(tags=["automations"])


class ArmedOut(BaseModel):
    """How many subjects were looked at, newest first, and for how many the automation waits now."""

    looked_at: int
    armed: int
    is_whole: bool = Field(description="Whether these are all that there are of the type.")


class TurnedOut(BaseModel):
    """An automation that was turned on or off, and how many waiting runs go on."""

    automation: AutomationOut
    changed: bool
    runs_woken: int
    existing: ArmedOut | None = Field(default=None, description="What `arm_existing` came to.")

    @classmethod
    def of(cls, turned: Turned) -> Self:
        """Show what became of it."""
        return cls(automation=AutomationOut.of(turned.row), changed=turned.changed, runs_woken=turned.woken)


class ActivateIn(BaseModel):
    """With `arm_existing` a delayed automation waits for subjects, too, that are in its state already."""

    model_config = ConfigDict(extra="forbid")

    arm_existing: StrictBool = False


@router.post("/v1/automations/{automation}/activate")
def turn_on(
    caller: Writer, backends: Served, automation: Reference, wanted: ActivateIn | None = None
) -> TurnedOut:
    """Let an automation match from now on; its waiting runs go on."""
    if wanted is None or not wanted.arm_existing:
        return TurnedOut.of(activate(backends, caller, automation))
    turned, found = activate_and_arm(backends, caller, automation)
    return TurnedOut.of(turned).model_copy(update={"existing": ArmedOut(**asdict(found))})


@router.post("/v1/automations/{automation}/pause")
def turn_off(caller: Writer, backends: Served, automation: Reference) -> TurnedOut:
    """Let an automation match nothing; what runs finishes, what waits stays."""
    return TurnedOut.of(pause(backends, caller, automation))
