"""What arming is to do to rows, decided before anything is written. Pure."""

from dataclasses import dataclass

from matcher.delayed import Delayed
from shared.db.pending import EpisodeKey, Stand
from shared.model.events import Event
from shared.model.pending import Episode, PendingSkip
from shared.model.subjects import SubjectRef


@dataclass(frozen=True, slots=True)
class Close:
    """The row's episode is over."""

    stand: Stand
    reason: PendingSkip


@dataclass(frozen=True, slots=True)
class Arm:
    """An episode goes on that no open row stands for.

    `event` is what it waits with; None: with the event of the row `instead_of`.
    """

    delayed: Delayed
    subject: SubjectRef
    episode: Episode
    event: Event | None
    instead_of: Stand | None = None

    @property
    def key(self) -> EpisodeKey:
        """The unique key of the episode's row."""
        return self.delayed.id, self.subject.type, self.subject.id, self.episode.key


@dataclass(frozen=True, slots=True)
class Lapse:
    """A message would have begun an episode, were the conversation not resolved after it.

    Its row is over from the start. It is there for the event that may show that nothing was resolved then.
    """

    delayed: Delayed
    subject: SubjectRef
    episode: Episode
    event: Event


@dataclass(frozen=True, slots=True)
class Move:
    """The row's episode now hangs on a newer message, which an event tells of."""

    stand: Stand
    delayed: Delayed
    episode: Episode
    event: Event


@dataclass(frozen=True, slots=True)
class Rekey:
    """The episode of a row that is spent began at another moment than was known."""

    stand: Stand
    episode: Episode

    @property
    def key(self) -> EpisodeKey:
        """The unique key that the row is to have."""
        stand = self.stand
        return stand.automation_id, stand.subject_type, stand.subject_id, self.episode.key


Deed = Close | Arm | Lapse | Move | Rekey
