"""ADD_LABEL and REMOVE_LABEL: the labels of a conversation, beside or without those that are there."""

from executors.contract import ActionResult, RunContext
from executors.conversation import conversation_of, reference
from shared.model.actions import AddLabel, RemoveLabel
from shared.model.effects import ChangeLabels


def add_label(config: AddLabel, run: RunContext) -> ActionResult:
    """Ask for the labels; the journal adds them to what is there then, and tells only of a change."""
    found = conversation_of(config, run)
    return ActionResult(reference(found), (ChangeLabels(found, add=config.labels),))


def remove_label(config: RemoveLabel, run: RunContext) -> ActionResult:
    """Ask for the labels to go; the journal takes them from what is there then."""
    found = conversation_of(config, run)
    return ActionResult(reference(found), (ChangeLabels(found, remove=config.labels),))
