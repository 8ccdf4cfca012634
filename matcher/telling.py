"""Logs and counts what became of what waits. It is counted with the acknowledgement of its events."""

from collections.abc import Iterable

from matcher.idling import Idled
from matcher.performing import Armed, Noted
from matcher.tally import Tally
from shared.logs import get_logger
from shared.model.idle_steps import IdleResult, IdleStop, shown_idle

log = get_logger("matcher")


def tell_homeless(homeless: Iterable[tuple[str, str]]) -> None:
    """Log each entry that named an automation which cannot wait, since the entry is about no subject."""
    for entry_id, automation_id in homeless:
        log.info("no_subject", entry_id=entry_id, automation_id=automation_id)


def tell_armed(armed: Armed, tally: Tally) -> None:
    """Log and count what was written."""
    for name, noted in (("armed", armed.armed), ("moved", armed.moved), ("closed", armed.closed)):
        tally.delayed(name, len(noted))
        for each in noted:
            log.debug("delayed_changed", what=name, **_shown(each))
    for each in armed.closed:
        if each.reason is not None:
            tally.delayed(f"skipped:{each.reason}")


def tell_idled(idled: Idled, tally: Tally) -> None:
    """Log and count what became of idle steps; a reset is one that the customer's answer ended."""
    for row in idled.armed:
        log.debug("idle_step_armed", **shown_idle(row))
    for row, stop in idled.stopped:
        log.debug("idle_step_stopped", reason=stop, **shown_idle(row))
        if stop is IdleStop.CUSTOMER_REPLIED:
            tally.idle(IdleResult.RESET)
    for (workspace_id, kind, id_), reason in idled.malformed.items():
        log.warning("idle_rule_malformed", workspace_id=workspace_id, rule=kind, id=id_, reason=reason)


def _shown(noted: Noted) -> dict[str, str | None]:
    return {
        "automation_id": noted.automation_id,
        "subject_type": noted.subject_type,
        "subject_id": noted.subject_id,
        "episode_key": noted.episode_key,
        "reason": noted.reason,
    }
