"""Which webhooks of a definition call an address that none may reach: refused when it is saved. Pure."""

from collections.abc import Sequence

from shared.errors import DefinitionError, Fault
from shared.model.automation import Definition
from shared.model.webhook_config import SendWebhook
from shared.rules.url_hosts import blocked_host


def check_targets(definitions: Sequence[Definition]) -> None:
    """Raise DefinitionError with the path of each URL whose host is forbidden by its text (docs/security.md).

    The paths begin with the automation's key where there are several.
    """
    several = len(definitions) > 1
    faults = [
        Fault(f"{definition.key}.{fault.path}" if several else fault.path, fault.message)
        for definition in definitions
        for fault in _faults(definition)
    ]
    if faults:
        raise DefinitionError(faults)


def _faults(definition: Definition) -> list[Fault]:
    rules = {
        position: blocked_host(action.config.url)
        for position, action in enumerate(definition.actions)
        if isinstance(action.config, SendWebhook)
    }
    return [
        Fault(
            f"actions[{position}].config.url",
            f"no webhook may reach this host ({rule}); WEBHOOK_ALLOW_PRIVATE=true would allow it",
        )
        for position, rule in rules.items()
        if rule is not None
    ]
