"""What a batch of effects comes to, before it is written: subjects, notices, comments, messages, events.

A book is opened for a batch over the locked subjects. Applying an effect only changes the book; a refusal
raises before anything of that action is in it. What the book holds at the end is written as sets.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pipeline.verdicts import Record
from shared.db.comments import CommentRow
from shared.db.outbox import OutboxEntry
from shared.db.people import Notice
from shared.errors import BadEvent, FatalError
from shared.model.events import Context, EventDraft, encode_fields
from shared.model.messages import Message
from shared.model.stamps import Stamp
from shared.model.subject_events import SOURCE
from shared.model.subjects import SubjectRow, SubjectWrite, local_stamp, merge
from shared.time.clock import epoch_ms

REFERENCE_GONE: Final = "REFERENCE_GONE"
EVENT_REFUSED: Final = "EVENT_REFUSED"

SubjectKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Telling:
    """An event about to be told; `stamp` is that of the write that it tells of."""

    event_type: str
    payload: Mapping[str, Any]
    event_id: str
    stamp: Stamp | None = None


@dataclass(slots=True)
class Book:
    """What a batch of effects comes to. `subjects` are the locked rows; `changed` are those to be written."""

    subjects: dict[SubjectKey, SubjectRow]
    now: datetime
    changed: dict[SubjectKey, SubjectRow] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    comments: list[CommentRow] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    outbox: list[OutboxEntry] = field(default_factory=list)

    def copy(self) -> "Book":
        """Give the book as it stands, for `restore`."""
        return Book(
            dict(self.subjects),
            self.now,
            dict(self.changed),
            list(self.notices),
            list(self.comments),
            list(self.messages),
            list(self.outbox),
        )

    def restore(self, before: "Book") -> None:
        """Take back what was entered since the copy."""
        self.subjects, self.changed = before.subjects, before.changed
        self.notices, self.comments, self.messages = before.notices, before.comments, before.messages
        self.outbox = before.outbox

    def living(self, key: SubjectKey) -> SubjectRow:
        """Give a locked subject. Raises FatalError REFERENCE_GONE where there is none, or it was deleted."""
        row = self.subjects.get(key)
        if row is None or row.deleted is not None:
            _, type_, id_ = key
            raise FatalError(REFERENCE_GONE, f"{type_} {id_} is not there")
        return row

    def written(self, key: SubjectKey, event_id: str, fields: Mapping[str, Any]) -> SubjectRow:
        """Give a subject with these fields laid into it, under the key of the event that tells of them.

        Without fields it only notes the event, which then changes nothing when it comes back on the stream.
        """
        row = self.subjects.get(key)
        stamp = local_stamp(epoch_ms(self.now), row)
        return merge(row, SubjectWrite(*key, stamp, f"s:{SOURCE}|{event_id}", fields))

    def enter(self, key: SubjectKey, written: SubjectRow) -> None:
        """Take over a subject as it is to be written."""
        self.subjects[key] = self.changed[key] = written

    def tell(self, record: Record, telling: Telling) -> None:
        """Put an event into the outbox, one step deeper than the run's. Raises FatalError EVENT_REFUSED."""
        self.outbox.append(_entry(record, self.now, telling))


def _entry(record: Record, now: datetime, telling: Telling) -> OutboxEntry:
    run = record.run
    draft = EventDraft(
        type=telling.event_type,
        workspace_id=run.workspace_id,
        payload=telling.payload,
        id=telling.event_id,
        occurred_at=now,
        context=Context(run.automation_id, run.claim.run_id, run.root_run_id, run.depth + 1, telling.stamp),
        source=SOURCE,
    )
    try:
        fields = encode_fields(draft)
    except BadEvent as error:
        raise FatalError(EVENT_REFUSED, str(error)) from error
    return OutboxEntry(telling.event_id, run.workspace_id, run.claim.run_id, fields)
