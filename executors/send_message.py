"""SEND_MESSAGE: something said in a conversation by the automation."""

from executors.contract import ActionResult, RunContext
from executors.conversation import conversation_of, reference
from shared.model.actions import SendMessage
from shared.model.effects import Say


def send_message(config: SendMessage, run: RunContext) -> ActionResult:
    """Ask for the message; the journal writes its row and its event with the checkpoint, hence once."""
    found = conversation_of(config, run)
    return ActionResult(reference(found), (Say(found, config.content, config.private),))
