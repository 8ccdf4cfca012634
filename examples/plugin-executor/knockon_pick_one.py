"""PICK_ONE: picks one of several by a text, so that equal texts always pick the same one.

Spread conversations over agents, for example, so that a contact always meets the same agent.
"""

from hashlib import sha256
from typing import Annotated, ClassVar, Final

from pydantic import Field

from knockon.plugins import ActionConfig, ActionResult, FatalError, Plugin, RunContext, Text


class PickOne(ActionConfig):
    """`choices` to pick from, and the text to pick `by`. Templates may stand in both."""

    is_local: ClassVar[bool] = True  # it waits on nothing, so no thread is kept for it

    choices: Annotated[tuple[Text, ...], Field(min_length=1, max_length=100)]
    by: Text


def pick_one(config: PickOne, run: RunContext) -> ActionResult:
    """Pick; later actions use `{{ actions.N.output.choice }}`."""
    if not config.by:
        raise FatalError("PICK_BY_NOTHING", f"there is nothing to pick by in action {run.position}")
    number = int.from_bytes(sha256(config.by.encode()).digest()[:8]) % len(config.choices)
    return ActionResult({"choice": config.choices[number], "number": number})


PICK_ONE: Final = Plugin(PickOne, pick_one)
