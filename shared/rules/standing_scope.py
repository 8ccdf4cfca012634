"""What the conditions of a delayed automation see, and which fields of the subject they read there. Pure.

They see the event that armed it, with the subject's own state in the place of what the event told of it,
under the names that events have for it and, like all of a payload, under `payload` too (docs/delayed.md). So
one set of conditions reads the same when it arms and when it fires.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from shared.model.events import Event, flatten, id_text
from shared.model.messages import message_of
from shared.model.subjects import DATABASE_FIELD, NOT_FIELDS_OF_A_PAGE, SubjectRow, data

_TOLD_OF: Final = frozenset({"record", "page", "conversation", "contact"})
_NO_FIELDS_OF_A_PAGE: Final = NOT_FIELDS_OF_A_PAGE | {"page", "now"}


@dataclass(frozen=True, slots=True)
class Reads:
    """Which fields of a subject are read: those of these names, or every one."""

    names: frozenset[str] = frozenset()
    is_whole: bool = False

    def __bool__(self) -> bool:
        return self.is_whole or bool(self.names)

    def of(self, subject: SubjectRow) -> frozenset[str]:
        """Give those fields that the subject has ever had."""
        known = subject.fields.keys() - {DATABASE_FIELD}
        return frozenset(known if self.is_whole else known & self.names)


WHOLE: Final = Reads(is_whole=True)
_NOTHING: Final = Reads()


def standing_scope(
    event: Event, subject: SubjectRow, message: Mapping[str, Any] | None, now: datetime
) -> dict[str, Any]:
    """Give what conditions see of a subject as it is now, and of the message that an episode hangs on.

    A message that the event tells of itself stays as it was told.
    """
    if message is not None and not _tells_of(event, message):
        event = replace(event, payload={**event.payload, "message": message})
    return scope_in(data(subject), event, subject, now)


def scope_in(state: Mapping[str, Any], event: Event, subject: SubjectRow, now: datetime) -> dict[str, Any]:
    """Give what conditions see of a subject in the state of one moment; `now` stays the present one."""
    shown = replace(event, payload={**_without_its_fields(event), **_shown(state, event, subject)})
    return {**flatten(shown), "now": now}


def reads_at(steps: tuple[str, ...], subject_type: str) -> Reads:
    """Name the fields that a path leads to. It may name one too many, where names of events collide."""
    found = _reads_below(steps, subject_type)
    if steps[0] != "payload":
        return found
    return join_reads((found, _reads_below(steps[1:], subject_type) if steps[1:] else WHOLE))


def join_reads(parts: Iterable[Reads]) -> Reads:
    """Read what any of them reads."""
    found = tuple(parts)
    return Reads(frozenset().union(*(part.names for part in found)), any(part.is_whole for part in found))


def _tells_of(event: Event, message: Mapping[str, Any]) -> bool:
    told = message_of(event)
    return told is not None and told.id == id_text(message.get("id"))


def _without_its_fields(event: Event) -> Mapping[str, Any]:
    if not event.type.startswith("page."):
        return event.payload
    return {name: value for name, value in event.payload.items() if name in NOT_FIELDS_OF_A_PAGE}


def _shown(state: Mapping[str, Any], event: Event, subject: SubjectRow) -> dict[str, Any]:
    whole = {**state, "id": subject.id}
    match subject.type:
        case "record":
            shown: dict[str, Any] = {"properties": dict(state), "record": whole}
        case "page":
            shown = {**state, "page": whole}
        case _:
            shown = {subject.type: whole}
    told = event.payload.get("subject")
    if subject.type in _TOLD_OF and not _names(told, subject):
        return shown
    named = {"type": subject.type, "id": subject.id, "state": _in_the_form_of(told, state)}
    return {**shown, "subject": named}


def _names(told: object, subject: SubjectRow) -> bool:
    if not isinstance(told, Mapping):
        return False
    return (told.get("type"), id_text(told.get("id"))) == (subject.type, subject.id)


def _in_the_form_of(told: object, state: Mapping[str, Any]) -> object:
    """Give a state that the event tells as no object in that form: it is the field `state`."""
    is_told_bare = isinstance(told, Mapping) and "state" in told and not isinstance(told["state"], Mapping)
    return state.get("state") if is_told_bare else dict(state)


def _reads_below(steps: tuple[str, ...], type_: str) -> Reads:
    head, below = steps[0], steps[1:]
    found = _NOTHING
    if head == "subject" and (below[:1] == ("state",) or type_ not in _TOLD_OF):
        found = _reads_named(below)
    match type_:
        case "record" if head == "properties":
            return Reads(frozenset(below[:1])) if below else WHOLE
        case "page" if head not in _NO_FIELDS_OF_A_PAGE:
            return join_reads((found, Reads(frozenset({head}))))
        case _ if head == type_:
            return join_reads((found, _reads_object(below)))
    return found


def _reads_named(below: tuple[str, ...]) -> Reads:
    if not below or below == ("state",):
        return WHOLE
    return Reads(frozenset(below[1:2])) if below[0] == "state" else _NOTHING


def _reads_object(below: tuple[str, ...]) -> Reads:
    if not below:
        return WHOLE
    return _NOTHING if below[0] == "id" else Reads(frozenset(below[:1]))
