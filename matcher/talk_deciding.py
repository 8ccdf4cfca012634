"""What an event means for a delayed automation that waits for an answer (docs/delayed.md). Pure.

The newest message that names the automation decides. Which episode it hangs on follows from what is known of
the conversation, so each event that may answer asks again.
"""

from dataclasses import dataclass
from typing import Final

from matcher.concerns import Projected
from matcher.deeds import Arm, Close, Deed, Lapse, Move, Rekey
from matcher.delayed import Delayed
from shared.db.pending import Stand
from shared.db.talk_facts import TalkAsk
from shared.model.messages import Direction, Message
from shared.model.pending import Anchor, Episode, PendingSkip, PendingStatus
from shared.model.subjects import SubjectRef
from shared.rules.talk import Talk, message_episode, resolved_at

ANCHORS: Final = {Direction.INCOMING: Anchor.AWAITING_AGENT, Direction.OUTGOING: Anchor.REPLY_CHASE}

NOTHING_SAID: Final = Talk(None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class TalkCase:
    """An event after its change, one automation, its open row, and the newest message that names it.

    `is_new`: that message is the event's own, and no older one that a row knows. `lapsed` is a row that is
    over, where there is no open one, and what it ended for may be so no longer.
    """

    at: Projected
    delayed: Delayed
    stand: Stand | None
    lapsed: Stand | None
    newest: Message
    is_new: bool

    @property
    def ask(self) -> TalkAsk:
        """What has to be known of the conversation."""
        message = self.newest
        resolved = resolved_at(self.at.row)
        return TalkAsk(message.workspace_id, message.conversation_id, message.stamp, resolved)


def decide_talk(case: TalkCase, talk: Talk) -> list[Deed]:
    """Say what is to become of the automation's episode, as the talk stands around the newest message."""
    stand = case.stand
    episode = message_episode(case.newest, talk)
    if _is_gone(case):
        return [] if stand is None else [Close(stand, PendingSkip.SUBJECT_GONE)]
    if stand is None:
        return _begun(case, talk, episode)
    if episode is None:
        return [Close(stand, PendingSkip.EPISODE_MOVED)]
    if episode.key == stand.episode.key:
        is_free = case.is_new and stand.status is PendingStatus.PENDING
        return [Move(stand, case.delayed, episode, case.at.concern.event)] if is_free else []
    if not stand.is_waiting and _began_earlier(case, stand, episode):
        return [Rekey(stand, episode)]
    return [Close(stand, PendingSkip.EPISODE_MOVED), _armed(case, episode)]


def _begun(case: TalkCase, talk: Talk, episode: Episode | None) -> list[Deed]:
    lapsed = case.lapsed
    if episode is None:
        was_resolved = talk.cleared is not None and talk.cleared == case.ask.resolved
        return _lapsing(case) if case.is_new and was_resolved else []
    if lapsed is not None and not case.is_new and lapsed.is_spent and lapsed.episode.key != episode.key:
        return []
    return [_armed(case, episode)]


def _lapsing(case: TalkCase) -> list[Deed]:
    """Keep what a message would have begun: what was resolved after it may have been so before."""
    episode = message_episode(case.newest, NOTHING_SAID)
    if episode is None or episode.anchor is not Anchor.AWAITING_AGENT:
        return []
    subject = SubjectRef(case.at.row.type, case.at.row.id)
    return [Lapse(case.delayed, subject, episode, case.at.concern.event)]


def _is_gone(case: TalkCase) -> bool:
    """Tell whether the conversation in which the message was written has been deleted."""
    row = case.at.row
    return row.deleted is not None or (row.born_after is not None and case.newest.stamp < row.born_after)


def _armed(case: TalkCase, episode: Episode) -> Deed:
    subject = SubjectRef(case.at.row.type, case.at.row.id)
    if case.is_new:
        return Arm(case.delayed, subject, episode, case.at.concern.event)
    return Arm(case.delayed, subject, episode, None, case.stand or case.lapsed)


def _began_earlier(case: TalkCase, stand: Stand, episode: Episode) -> bool:
    """Tell whether the episode is the row's own, of which more is known now, and no later one."""
    if episode.anchor is Anchor.AWAITING_AGENT:
        return episode.started_at < stand.episode.started_at
    return not case.is_new
