"""What an event says that it changed.

An event names what it changed in `changedProperties` and gives the earlier values in `before`, both by the
property's own name (`status`). A condition may name the same property by where it stands in the event
(`properties.status`, `conversation.status`) or by its own name (`status`). Both are brought to the property's
own name by dropping what merely holds it: `payload`, `properties`, `record`, `page`, `conversation`,
`contact` and the event's `subject.type`, each only at the front and never as the last step.
"""

from collections.abc import Mapping
from typing import Final

from shared.rules.values import Absence, look_up

_HOLDERS: Final = frozenset({"payload", "properties", "record", "page", "conversation", "contact"})

Steps = tuple[str, ...]


def is_changed(data: Mapping[str, object], field: Steps) -> bool:
    """Tell whether the event lists the field, by either of its names, among its changed properties."""
    names = data.get("changedProperties")
    if not isinstance(names, list | tuple):
        return False
    wanted = _own_name(data, field)
    return any(_own_name(data, tuple(name.split("."))) == wanted for name in names if isinstance(name, str))


def value_before(data: Mapping[str, object], field: Steps) -> object:
    """Give the field's earlier value: null if `before` lacks it, ABSENT if there is no `before`."""
    before = data.get("before")
    if not isinstance(before, Mapping):
        return Absence.ABSENT
    found = _first_found(before, data, field)
    return None if found is Absence.ABSENT else found


def value_after(data: Mapping[str, object], field: Steps) -> object:
    """Give the field's value in the event, by the name asked for or its own; ABSENT if there is none."""
    return _first_found(data, data, field)


def _first_found(tree: Mapping[str, object], data: Mapping[str, object], field: Steps) -> object:
    own = _own_name(data, field)
    for steps in (field, own, ("properties", *own)):
        found = look_up(tree, steps)
        if found is not Absence.ABSENT:
            return found
    return Absence.ABSENT


def _own_name(data: Mapping[str, object], steps: Steps) -> Steps:
    subject_type = look_up(data, ("subject", "type"))
    while len(steps) > 1 and (steps[0] in _HOLDERS or steps[0] == subject_type):
        steps = steps[1:]
    return steps
