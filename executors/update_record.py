"""UPDATE_RECORD: set fields of a record or of another kind of subject."""

from typing import Final

from executors.contract import ActionResult, RunContext
from shared.errors import FatalError
from shared.model.actions import UpdateRecord
from shared.model.effects import UpdateSubject
from shared.model.events import id_text

RECORD: Final = "record"
NO_SUBJECT: Final = "NO_SUBJECT"


def update_record(config: UpdateRecord, run: RunContext) -> ActionResult:
    """Ask for the change; the journal applies it with the checkpoint and lists fields left alone as `stale`.

    Raises FatalError NO_SUBJECT if neither the action nor the event names a record.
    """
    subject_type, subject_id = _subject(config, run)
    effect = UpdateSubject(
        subject_type=subject_type,
        subject_id=subject_id,
        fields=config.properties,
        force=config.force,
        event_type=f"{subject_type}.updated",
    )
    return ActionResult({"subject": {"type": subject_type, "id": subject_id}}, (effect,))


def _subject(config: UpdateRecord, run: RunContext) -> tuple[str, str]:
    if config.subject is not None:
        return config.subject.type, config.subject.id
    if config.record_id is not None:
        return RECORD, config.record_id
    own = id_text(run.event.get("recordId"))
    if own is not None:
        return RECORD, own
    raise FatalError(NO_SUBJECT, "the event is about no record; name one by record_id or subject")
