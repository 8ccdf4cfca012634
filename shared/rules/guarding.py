"""What keeps a run from acting, as far as event and definition tell (docs/automations.md, "Guards"). Pure."""

from shared.model.automation import MAX_ACTIONS
from shared.model.events import Event


def is_own_event(event: Event, automation_id: str | None) -> bool:
    """Tell whether a run of this automation emitted the event; what has no automation has no own events."""
    if automation_id is None or event.context is None:
        return False
    return event.context.automation_id == automation_id


def is_too_deep(depth: int, depth_max: int) -> bool:
    """Tell whether so many automations stand before the event that the chain ends here."""
    return depth >= depth_max


def may_have_actions(count: int) -> bool:
    """Tell whether an automation may have so many actions."""
    return 1 <= count <= MAX_ACTIONS
