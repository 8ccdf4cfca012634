"""Which action types there are: one frozen model a type, which is its table in `docs/actions.md`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from shared.model.action_config import ActionConfig, SubjectRef
from shared.model.ai_config import AskAi
from shared.model.conversation_configs import (
    AddLabel,
    Assign,
    RemoveLabel,
    Resolve,
    SendMessage,
    SetStatus,
    Snooze,
)
from shared.model.mail_config import SendEmail
from shared.model.notice_configs import CreateNotification, EmitEvent
from shared.model.record_configs import AddComment, CreatePage, CreateRecord, UpdateRecord
from shared.model.webhook_config import SendWebhook

__all__ = [
    "ACTION_CONFIGS",
    "ActionConfig",
    "AddComment",
    "AddLabel",
    "AskAi",
    "Assign",
    "CreateNotification",
    "CreatePage",
    "CreateRecord",
    "EmitEvent",
    "RemoveLabel",
    "Resolve",
    "SendEmail",
    "SendMessage",
    "SendWebhook",
    "SetStatus",
    "Snooze",
    "SubjectRef",
    "UpdateRecord",
]

ACTION_CONFIGS: Final[Mapping[str, type[ActionConfig]]] = MappingProxyType(
    {
        "CREATE_RECORD": CreateRecord,
        "UPDATE_RECORD": UpdateRecord,
        "CREATE_PAGE": CreatePage,
        "ADD_COMMENT": AddComment,
        "SEND_WEBHOOK": SendWebhook,
        "SEND_EMAIL": SendEmail,
        "ASK_AI": AskAi,
        "CREATE_NOTIFICATION": CreateNotification,
        "EMIT_EVENT": EmitEvent,
        "ADD_LABEL": AddLabel,
        "REMOVE_LABEL": RemoveLabel,
        "SEND_MESSAGE": SendMessage,
        "ASSIGN": Assign,
        "SET_STATUS": SetStatus,
        "SNOOZE": Snooze,
        "RESOLVE": Resolve,
    }
)
