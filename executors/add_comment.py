"""ADD_COMMENT: something said about a record or another kind of subject."""

from executors.contract import ActionResult, RunContext
from executors.update_record import NO_SUBJECT, RECORD
from shared.errors import FatalError
from shared.model.actions import AddComment
from shared.model.effects import Comment
from shared.model.events import id_text


def add_comment(config: AddComment, run: RunContext) -> ActionResult:
    """Ask for the comment; the journal writes its row and its event with the checkpoint, hence once.

    Raises FatalError NO_SUBJECT if neither the action nor the event names what it is about.
    """
    subject_type, subject_id = _subject(config, run)
    effect = Comment(subject_type, subject_id, config.author or run.automation_name, config.body)
    return ActionResult({"subject": {"type": subject_type, "id": subject_id}}, (effect,))


def _subject(config: AddComment, run: RunContext) -> tuple[str, str]:
    if config.subject is not None:
        return config.subject.type, config.subject.id
    if config.record_id is not None:
        return RECORD, config.record_id
    if run.subject is not None:
        return run.subject.type, run.subject.id
    own = id_text(run.event.get("recordId"))
    if own is None:
        raise FatalError(NO_SUBJECT, "the event is about nothing; name it by record_id or subject")
    return RECORD, own
