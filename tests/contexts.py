"""Contexts for executors, naming only what a test is about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from executors.ai_service import AiService
from executors.contract import RunContext
from executors.deadline import Deadline
from executors.outbound import Network, Outbound, OutboundPolicy
from executors.smtp import Mailer
from shared.model.subjects import SubjectRef
from shared.time.clock import SystemClock

EVENT: Mapping[str, Any] = {"type": "order.placed", "payload": {"total": 3}, "total": 3}
OCCURRED_AT = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Trip:
    """What differs between two contexts."""

    http: Outbound
    timeout_s: float = 10.0
    run_id: str = "0190-run"
    position: int = 1
    attempt: int = 1
    event: Mapping[str, Any] = field(default_factory=lambda: EVENT)
    subject: SubjectRef | None = None
    mail: Mailer = field(default_factory=lambda: Mailer(None))
    ai: AiService = field(default_factory=AiService)

    def context(self) -> RunContext:
        """Make the context; the deadline starts now."""
        return RunContext(
            run_id=self.run_id,
            position=self.position,
            attempt=self.attempt,
            workspace_id="w1",
            automation_id="a1",
            automation_name="Tell the shop",
            event=self.event,
            subject=self.subject,
            entry_id="1700000000000-3",
            occurred_at=OCCURRED_AT,
            deadline=Deadline.after(SystemClock(), timedelta(seconds=self.timeout_s)),
            http=self.http,
            mail=self.mail,
            ai=self.ai,
            now=datetime.now(UTC),
        )


def open_way_out(secret: str | None = None) -> Outbound:
    """Make an Outbound that may reach loopback."""
    return Outbound(OutboundPolicy(allow_private=True, webhook_secret=secret), SystemClock())


def guarded_way_out(network: Network | None = None) -> Outbound:
    """Make an Outbound that reaches public addresses only."""
    return Outbound(OutboundPolicy(), SystemClock(), network)
