"""What kinds of things audit entries are about (docs/security.md, "Audit")."""

from enum import StrEnum


class AuditKind(StrEnum):
    """The kind of a thing, as it stands before the id of a resource."""

    WORKSPACE = "workspace"
    MEMBER = "member"
    API_KEY = "api_key"
    SECRET = "secret"  # noqa: S105  # the name of a kind
    FLAG = "flag"
    AUTOMATION = "automation"
    AUTOMATION_RUN = "automation_run"
    PENDING_EXECUTION = "pending_execution"
    EVENT = "event"
    ALERT_GROUP = "alert_group"
    ALERT_CHANNEL = "alert_channel"
    AI_AGENT = "ai_agent"
    CHANNEL = "channel"
    IDLE_STEP = "idle_step"
    BULK_OPERATION = "bulk_operation"
