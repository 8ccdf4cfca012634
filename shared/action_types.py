"""The one place to look an action type up: the engine's own, and those that plug-ins bring."""

from shared.model.action_config import ActionConfig
from shared.model.actions import ACTION_CONFIGS
from shared.plugins import installed_plugins


def config_model(action_type: str) -> type[ActionConfig] | None:
    """Give what an action type takes; None if nobody here knows it."""
    own = ACTION_CONFIGS.get(action_type)
    if own is not None:
        return own
    brought = installed_plugins().found.get(action_type)
    return None if brought is None else brought.plugin.config


def action_types() -> tuple[str, ...]:
    """Name every action type that can be written here."""
    return (*ACTION_CONFIGS, *installed_plugins().found)
