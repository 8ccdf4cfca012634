"""Events of a little while ago, for processes that keep real time: what waits a minute is due in seconds.

The stream has to be fresh: an entry's id tells its moment, and ids only rise.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from shared.model.automation import parse_definition
from shared.model.events import EventDraft, encode_fields
from shared.services.automations import apply_changes
from shared.services.definitions import Leftovers
from tests.system.deployment import CALLER, KEYS, WORKSPACE, Deployment

DUE_IN_S = 3
AGO_S = 60 - DUE_IN_S  # of what begins so long ago, a minute is over in DUE_IN_S


def apply_waiting(site: Deployment, trigger: Mapping[str, Any], *actions: Any, **given: Any) -> str:
    """Apply an automation that waits a minute, and was there before anything that is told; give its id."""
    key = given.pop("key", "waiting")
    wanted = {"key": key, "name": key, "trigger": trigger, "actions": list(actions), "execution_delay": 1}
    apply_changes(site.backends, CALLER, [parse_definition({**wanted, **given})], Leftovers.KEEP)
    with site.backends.database.begin() as conn:
        conn.execute(text("UPDATE automations SET activated_ms = 0"))
    return str(site.one("SELECT id FROM automations WHERE key = :key", key=key).id)


def tell_past(site: Deployment, *told: tuple[float, str, Mapping[str, Any]]) -> None:
    """Publish events of so many seconds ago, the oldest first."""
    client: Any = site.backends.redis
    now = datetime.now(UTC)
    for number, (ago_s, type_, payload) in enumerate(told):
        ms = int((now - timedelta(seconds=ago_s)).timestamp() * 1_000)
        fields = encode_fields(EventDraft(type_, WORKSPACE, payload))
        client.xadd(KEYS.stream, fields, id=f"{ms}-{number}")


def stands(site: Deployment) -> dict[str, tuple[str, str | None]]:
    """Give status and reason of what waits and has waited, by the subject's id."""
    rows = site.all("SELECT subject_id, status, skip_reason FROM pending_executions")
    return {row.subject_id: (row.status, row.skip_reason) for row in rows}
