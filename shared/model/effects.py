"""What an action wants changed in our own tables: frozen values, applied with its checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class UpdateSubject:
    """Set fields of a subject's data; the journal emits `event_type` about it when anything changed.

    Fields that somebody else wrote after the run's trigger entry are left alone and listed in the action's
    output as `stale`, unless `force`.
    """

    subject_type: str
    subject_id: str
    fields: Mapping[str, Any]
    force: bool
    event_type: str


@dataclass(frozen=True, slots=True)
class CreateSubject:
    """Make a subject and emit `event_type` about it.

    Where a living one has this id it is refused, or left as it is if `may_exist`: its id then follows from
    the run, so it is this very action's work of an earlier time.
    """

    subject_type: str
    subject_id: str
    fields: Mapping[str, Any]
    database_id: str | None
    event_type: str
    may_exist: bool = False


@dataclass(frozen=True, slots=True)
class Notify:
    """Put one notice into the inbox of each member who has one of `roles`."""

    title: str
    body: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Emit:
    """Publish a domain event of our own; the engine stamps the context with depth + 1."""

    event_type: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ChangeLabels:
    """Put labels onto a conversation and take others off, whatever it has when this is applied."""

    conversation_id: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Say:
    """Write a message into a conversation, by the automation of the run."""

    conversation_id: str
    content: str
    private: bool


@dataclass(frozen=True, slots=True)
class Comment:
    """Write a comment about a subject."""

    subject_type: str
    subject_id: str
    author: str
    body: str


Effect = UpdateSubject | CreateSubject | Notify | Emit | ChangeLabels | Say | Comment
