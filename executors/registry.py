"""Which function does which action type."""

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, TypeVar

from executors.add_comment import add_comment
from executors.ask_ai import ask_ai
from executors.change_labels import add_label, remove_label
from executors.contract import ActionResult, Executor, RunContext, Warned
from executors.create_notification import create_notification
from executors.create_page import create_page
from executors.create_record import create_record
from executors.emit_event import emit_event
from executors.send_email import send_email
from executors.send_message import send_message
from executors.send_webhook import send_webhook
from executors.set_conversation import assign, resolve, set_status, snooze
from executors.update_record import update_record
from shared.errors import FatalError
from shared.model.actions import (
    ActionConfig,
    AddComment,
    AddLabel,
    AskAi,
    Assign,
    CreateNotification,
    CreatePage,
    CreateRecord,
    EmitEvent,
    RemoveLabel,
    Resolve,
    SendEmail,
    SendMessage,
    SendWebhook,
    SetStatus,
    Snooze,
    UpdateRecord,
)
from shared.model.effects import Effect
from shared.plugins import Plugin, installed_plugins

Config = TypeVar("Config", bound=ActionConfig)

PLUGIN_BROKEN: Final = "PLUGIN_BROKEN"


def taking(model: type[Config], execute: Callable[[Config, RunContext], ActionResult]) -> Executor:
    """Make an executor of a function that takes one kind of config; it refuses all others."""

    def executor(config: ActionConfig, run: RunContext) -> ActionResult:
        if not isinstance(config, model):
            raise FatalError("CONFIG_INVALID", f"{type(config).__name__} is not a {model.__name__}")
        return execute(config, run)

    return executor


EXECUTORS: Final[Mapping[str, Executor]] = MappingProxyType(
    {
        "CREATE_RECORD": taking(CreateRecord, create_record),
        "UPDATE_RECORD": taking(UpdateRecord, update_record),
        "CREATE_PAGE": taking(CreatePage, create_page),
        "ADD_COMMENT": taking(AddComment, add_comment),
        "SEND_WEBHOOK": taking(SendWebhook, send_webhook),
        "SEND_EMAIL": taking(SendEmail, send_email),
        "ASK_AI": taking(AskAi, ask_ai),
        "CREATE_NOTIFICATION": taking(CreateNotification, create_notification),
        "EMIT_EVENT": taking(EmitEvent, emit_event),
        "ADD_LABEL": taking(AddLabel, add_label),
        "REMOVE_LABEL": taking(RemoveLabel, remove_label),
        "SEND_MESSAGE": taking(SendMessage, send_message),
        "ASSIGN": taking(Assign, assign),
        "SET_STATUS": taking(SetStatus, set_status),
        "SNOOZE": taking(Snooze, snooze),
        "RESOLVE": taking(Resolve, resolve),
    }
)


@cache
def all_executors() -> Mapping[str, Executor]:
    """Give the executors of this process: the engine's own, and those of its plug-ins."""
    brought = {name: _brought(each.plugin) for name, each in installed_plugins().found.items()}
    return MappingProxyType({**brought, **EXECUTORS})


def executor_for(action_type: str, executors: Mapping[str, Executor] | None = None) -> Executor:
    """Find the executor of an action type, or raise FatalError UNKNOWN_ACTION; tests pass a mapping."""
    found = (all_executors() if executors is None else executors).get(action_type)
    if found is None:
        raise FatalError("UNKNOWN_ACTION", f"no executor does {action_type}")
    return found


def _brought(plugin: Plugin) -> Executor:
    """Make an executor of a plug-in; what it gives is looked at before it goes anywhere."""

    def execute(config: ActionConfig, run: RunContext) -> ActionResult:
        try:
            given = plugin.execute(config, run)
        except SystemExit as error:
            raise FatalError(PLUGIN_BROKEN, "the plug-in wanted to end the process") from error
        if not (isinstance(given, ActionResult) and isinstance(given.output, Mapping)):
            raise FatalError(PLUGIN_BROKEN, "the plug-in gave no ActionResult with an output")
        if not all(isinstance(effect, Effect) for effect in given.effects):
            raise FatalError(PLUGIN_BROKEN, "the plug-in asked for an effect that there is not")
        if not all(_is_warning(each) for each in given.warnings):
            raise FatalError(
                PLUGIN_BROKEN, "the plug-in gave a warning that is no Warned with a text and data"
            )
        return given

    return taking(plugin.config, execute)


def _is_warning(given: object) -> bool:
    match given:
        case Warned(what=str(), data=Mapping()):
            return True
    return False
