"""What decides about idle steps, read as sets (docs/idle-sequences.md, "Firing")."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import Connection

from shared.db.idle_facts import newest_counting
from shared.db.idle_steps import ConversationKey
from shared.db.subjects import find_subjects
from shared.model.idle_steps import IdleStepRow
from shared.model.subjects import SubjectRow
from shared.rules.idling import IdleFacts, rule_ask
from shared.services.idle_rules import read_rules

CONVERSATION: Final = "conversation"


def read_idle_facts(conn: Connection, rows: Sequence[IdleStepRow]) -> IdleFacts:
    """Read what decides about steps: a few statements, however many they are."""
    keys = {(row.workspace_id, row.conversation_id) for row in rows}
    return IdleFacts(
        subjects=find_conversations(conn, keys),
        newest=newest_counting(conn, keys),
        rules=read_rules(conn, map(rule_ask, rows)),
    )


def find_conversations(
    conn: Connection, keys: Iterable[ConversationKey]
) -> dict[ConversationKey, SubjectRow]:
    """Give those of the conversations that are there, without locking them."""
    found = find_subjects(conn, ((at, CONVERSATION, id_) for at, id_ in keys))
    return {(at, id_): row for (at, _, id_), row in found.items()}
