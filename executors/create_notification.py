"""CREATE_NOTIFICATION: a notice in the inbox of the members who have one of the roles."""

from executors.contract import ActionResult, RunContext
from shared.model.actions import CreateNotification
from shared.model.effects import Notify


def create_notification(config: CreateNotification, run: RunContext) -> ActionResult:
    """Ask for the notice; the journal writes it with the checkpoint, hence once."""
    del run
    roles = tuple(role.value for role in config.roles)
    output = {"title": config.title, "roles": list(roles)}
    return ActionResult(output, (Notify(config.title, config.body, roles),))
