"""When an automation that waits would be due, if an event happened now (docs/automations.md, "Dry run")."""

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from shared.db.pending_reads import PendingSummary, find_pending_of_subject
from shared.db.subjects import find_subject
from shared.db.talk_facts import TalkAsk, read_talk
from shared.model.automation import Automation
from shared.model.events import Event
from shared.model.messages import MESSAGE_CREATED, Message, message_of
from shared.model.pending import Episode
from shared.model.subjects import merge, project, subject_of
from shared.rules.arming import due_at
from shared.rules.episodes import compile_standing, state_episode
from shared.rules.examining import Known
from shared.rules.talk import message_episode, resolved_at
from shared.rules.triggering import covers, is_delayed


@dataclass(frozen=True, slots=True)
class Wait:
    """Since when an episode goes on, and when it would be due; `already` is what waits, or waited, for it."""

    started_at: datetime
    due_at: datetime
    already: PendingSummary | None = None


def known_after(conn: Connection, automation: Automation, event: Event, known: Known) -> Known:
    """Add the subject as it would be after the event, and how its conversation stands around its message.

    Of an automation that does not wait nothing is added.
    """
    ref, change = subject_of(event), project(event)
    if ref is None or change is None or not is_delayed(automation.definition):
        return known
    subject = merge(find_subject(conn, automation.workspace_id, ref.type, ref.id), change)
    message = _message(automation, event)
    if message is None:
        return replace(known, subject=subject)
    ask = TalkAsk(event.workspace_id, message.conversation_id, message.stamp, resolved_at(subject))
    return replace(known, subject=subject, talk=read_talk(conn, [ask])[ask])


def would_wait(conn: Connection, automation: Automation, event: Event, known: Known) -> Wait | None:
    """Say since when the episode goes on that the event would arm; None where it would arm none."""
    ref, episode = subject_of(event), _episode(automation, event, known)
    if ref is None or episode is None:
        return None
    kept = find_pending_of_subject(conn, automation.workspace_id, ref, [automation.id])
    stands = (row for row in kept.get(automation.id, ()) if row.ended_at is None)
    already = next((row for row in stands if row.episode_key == episode.key), None)
    return Wait(episode.started_at, due_at(automation, episode.started_at), already)


def _episode(automation: Automation, event: Event, known: Known) -> Episode | None:
    if known.subject is None:
        return None
    message = _message(automation, event)
    if message is not None:
        return None if known.talk is None else message_episode(message, known.talk)
    standing = compile_standing(automation.definition.conditions)
    start = standing.start(event, known.subject, known.at)
    return None if start is None else state_episode(start.stamp)


def _message(automation: Automation, event: Event) -> Message | None:
    """Give the event's message, where it is messages that the automation waits after."""
    return message_of(event) if covers(automation.definition.trigger, MESSAGE_CREATED) else None
