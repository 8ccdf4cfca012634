"""What a plug-in is made of: the one module of Knockon that plug-ins import (`docs/plugins.md`).

    class Greeting(ActionConfig):
        name: Text

    def greet(config: Greeting, run: RunContext) -> ActionResult:
        return ActionResult({"text": f"Hello {config.name}"})

    GREET = Plugin(Greeting, greet)

Named as the entry point `GREET` in the group `knockon.executors`, it is an action type.
"""

from executors.contract import ActionResult, RunContext, Warned
from shared.errors import FatalError, RetryableError
from shared.model.action_config import ActionConfig
from shared.model.parts import Text
from shared.plugins import Plugin

__all__ = [
    "ActionConfig",
    "ActionResult",
    "FatalError",
    "Plugin",
    "RetryableError",
    "RunContext",
    "Text",
    "Warned",
]
