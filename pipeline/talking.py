"""What an automation says: comments about subjects, messages in conversations.

Each is a row and an event. The subject notes the event's id under its lock, so that the event changes nothing
on it when it comes back on the stream, and carries the stamp of that note, which orders messages.
"""

from collections.abc import Mapping
from typing import Any

from pipeline.book import Book, Telling
from pipeline.verdicts import Mark, Record
from shared.db.comments import CommentRow
from shared.ids import new_id
from shared.model.effects import Comment, Say
from shared.model.messages import Direction, Message, SenderType, message_payload
from shared.model.subject_events import payload_of
from shared.model.subjects import local_stamp
from shared.time.clock import epoch_ms


def say(effect: Say, record: Record, book: Book) -> Mapping[str, Any]:
    """Enter a message into the book. Raises FatalError REFERENCE_GONE where its conversation is not there."""
    run = record.run
    key = (run.workspace_id, "conversation", effect.conversation_id)
    book.living(key)
    event_id = new_id()
    conversation = book.written(key, event_id, {})
    message = Message(
        workspace_id=run.workspace_id,
        id=new_id(),
        conversation_id=effect.conversation_id,
        direction=Direction.OUTGOING,
        sender_type=SenderType.AUTOMATION,
        sender_id=run.automation_id,
        agent_id=None,
        content=effect.content,
        private=effect.private,
        auto_submitted=True,
        stamp=conversation.newest,
        run_id=run.claim.run_id,
        created_at=book.now,
        parameters=record.mark.parameters if record.mark else None,
    )
    payload = {"message": message_payload(message), **payload_of(conversation)}
    book.tell(record, Telling("message.created", payload, event_id, message.stamp))
    book.enter(key, conversation)
    book.messages.append(message)
    return {"messageId": message.id, "event_id": event_id}


def leave_mark(mark: Mark, record: Record, book: Book) -> Mapping[str, Any]:
    """Enter a silent message that carries the mark, unless the act has said something that does.

    It has the stamp of what the act has changed. Raises FatalError REFERENCE_GONE where its conversation is
    not there.
    """
    run = record.run
    if any(message.run_id == run.claim.run_id for message in book.messages):
        return {}
    conversation = book.living((run.workspace_id, "conversation", mark.conversation_id))
    message = Message(
        workspace_id=run.workspace_id,
        id=new_id(),
        conversation_id=mark.conversation_id,
        direction=Direction.OUTGOING,
        sender_type=SenderType.AUTOMATION,
        sender_id=None,
        agent_id=None,
        content="",
        private=True,
        auto_submitted=True,
        stamp=max(conversation.newest, local_stamp(epoch_ms(book.now), conversation)),
        run_id=run.claim.run_id,
        created_at=book.now,
        parameters=mark.parameters,
    )
    book.messages.append(message)
    return {"messageId": message.id}


def comment(effect: Comment, record: Record, book: Book) -> Mapping[str, Any]:
    """Enter a comment into the book. Raises FatalError REFERENCE_GONE where its subject is not there."""
    run = record.run
    key = (run.workspace_id, effect.subject_type, effect.subject_id)
    book.living(key)
    event_id, comment_id = new_id(), new_id()
    subject = book.written(key, event_id, {})
    payload = {
        "comment": {"id": comment_id, "body": effect.body, "author": effect.author},
        "subject": {"type": effect.subject_type, "id": effect.subject_id},
    }
    book.tell(record, Telling("comment.created", payload, event_id, subject.newest))
    book.enter(key, subject)
    book.comments.append(CommentRow(comment_id, *key, effect.author, effect.body, run.claim.run_id))
    return {"commentId": comment_id, "event_id": event_id}
