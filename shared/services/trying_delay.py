"""When an automation that waits would be due, if an event happened now (docs/automations.md, "Dry run")."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from shared.db.subjects import find_subject
from shared.db.talk_facts import TalkAsk, read_talk
from shared.model.automation import Automation
from shared.model.events import Event
from shared.model.messages import MESSAGE_CREATED, message_of
from shared.model.pending import Episode
from shared.model.subjects import SubjectRow, merge, project, subject_of
from shared.rules.arming import due_at
from shared.rules.episodes import compile_standing, state_episode
from shared.rules.examining import Known
from shared.rules.talk import message_episode, resolved_at
from shared.rules.triggering import covers, is_delayed


@dataclass(frozen=True, slots=True)
class Wait:
    """Since when an episode goes on, and when it would be due."""

    started_at: datetime
    due_at: datetime


def subject_after(conn: Connection, automation: Automation, event: Event) -> SubjectRow | None:
    """Give the subject as it would be after the event; None for an automation that does not wait."""
    ref, change = subject_of(event), project(event)
    if ref is None or change is None or not is_delayed(automation.definition):
        return None
    return merge(find_subject(conn, automation.workspace_id, ref.type, ref.id), change)


def would_wait(conn: Connection, automation: Automation, event: Event, known: Known) -> Wait | None:
    """Say since when the episode goes on that the event would arm; None where it would arm none."""
    if known.subject is None:
        return None
    episode = _episode(conn, automation, event, known.subject, known.at)
    return None if episode is None else Wait(episode.started_at, due_at(automation, episode.started_at))


def _episode(
    conn: Connection, automation: Automation, event: Event, subject: SubjectRow, at: datetime
) -> Episode | None:
    message, standing = message_of(event), compile_standing(automation.definition.conditions)
    if message is not None and covers(automation.definition.trigger, MESSAGE_CREATED):
        if not standing.hears(message):
            return None
        ask = TalkAsk(event.workspace_id, message.conversation_id, message.stamp, resolved_at(subject))
        return message_episode(message, read_talk(conn, [ask])[ask])
    start = standing.start(event, subject, at)
    return None if start is None else state_episode(start.stamp)
