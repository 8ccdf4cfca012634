"""Which function does which action type."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from executors.contract import ActionResult, Executor, RunContext
from executors.create_notification import create_notification
from executors.create_record import create_record
from executors.emit_event import emit_event
from executors.send_webhook import send_webhook
from executors.update_record import update_record
from shared.errors import FatalError
from shared.model.actions import (
    ActionConfig,
    CreateNotification,
    CreateRecord,
    EmitEvent,
    SendWebhook,
    UpdateRecord,
)

Config = TypeVar("Config", bound=ActionConfig)


def taking(model: type[Config], execute: Callable[[Config, RunContext], ActionResult]) -> Executor:
    """Make an executor of a function that takes one kind of config; it refuses all others."""

    def executor(config: ActionConfig, run: RunContext) -> ActionResult:
        if not isinstance(config, model):
            raise FatalError("CONFIG_INVALID", f"{type(config).__name__} is not a {model.__name__}")
        return execute(config, run)

    return executor


EXECUTORS: Final[Mapping[str, Executor]] = MappingProxyType(
    {
        "SEND_WEBHOOK": taking(SendWebhook, send_webhook),
        "CREATE_NOTIFICATION": taking(CreateNotification, create_notification),
        "UPDATE_RECORD": taking(UpdateRecord, update_record),
        "CREATE_RECORD": taking(CreateRecord, create_record),
        "EMIT_EVENT": taking(EmitEvent, emit_event),
    }
)


def executor_for(action_type: str, executors: Mapping[str, Executor] = EXECUTORS) -> Executor:
    """Find the executor of an action type, or raise FatalError UNKNOWN_ACTION; tests pass a mapping."""
    found = executors.get(action_type)
    if found is None:
        raise FatalError("UNKNOWN_ACTION", f"no executor does {action_type}")
    return found
