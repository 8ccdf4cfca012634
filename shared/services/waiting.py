"""Since when a conversation's contact waits for an answer (docs/delayed.md, "Anchors")."""

from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from shared.db.talk_facts import TalkAsk, read_talk
from shared.model.subjects import SubjectRow
from shared.rules.talk import resolved_at

CONVERSATION: Final = "conversation"
_NO_MESSAGE: Final = (0, 0)


def waiting_since(conn: Connection, row: SubjectRow) -> datetime | None:
    """Give when the first message came that nobody has answered; None if none, or of another type."""
    if row.type != CONVERSATION:
        return None
    ask = TalkAsk(row.workspace_id, row.id, _NO_MESSAGE, resolved_at(row))
    return read_talk(conn, [ask])[ask].waiting_since
