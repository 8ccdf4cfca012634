"""Logs and counts what became of delayed executions. It is counted with the acknowledgement of its events."""

from collections.abc import Iterable

from matcher.performing import Armed, Noted
from matcher.tally import Tally
from shared.logs import get_logger

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


def _shown(noted: Noted) -> dict[str, str | None]:
    return {
        "automation_id": noted.automation_id,
        "subject_type": noted.subject_type,
        "subject_id": noted.subject_id,
        "episode_key": noted.episode_key,
        "reason": noted.reason,
    }
