"""EMIT_EVENT: publish a domain event of one's own."""

from executors.contract import ActionResult, RunContext
from shared.model.actions import EmitEvent
from shared.model.effects import Emit


def emit_event(config: EmitEvent, run: RunContext) -> ActionResult:
    """Ask for the event; the journal puts it into the outbox with the checkpoint, one step deeper."""
    del run
    return ActionResult({"type": config.event_type}, (Emit(config.event_type, config.payload),))
