"""What applying a set of definitions changes. Pure: the service reads and writes around it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from typing import Any

import yaml

from shared.db.automations import AutomationRow
from shared.masking import mask_definition
from shared.model.automation import Definition, definition_to_json
from shared.rules.values import is_same_json


class ChangeKind(StrEnum):
    """What happens to one automation."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


class Leftovers(StrEnum):
    """What becomes of automations that no definition names."""

    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of the automation `key`: its definition before and after, None where there is none."""

    kind: ChangeKind
    key: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None

    def diff(self) -> list[str]:
        """Give the lines that differ as `+` and `-`, with a little around them; secrets are masked."""
        old, new = _lines(self.before), _lines(self.after)
        lines = [line.rstrip("\n") for line in list(unified_diff(old, new, n=2))[2:]]
        return lines or (["  only masked values differ"] if self.before != self.after else [])

    def shown(self) -> dict[str, Any]:
        """Give the change in JSON types, as it may be shown."""
        return {
            "kind": self.kind,
            "key": self.key,
            "before": mask_definition(self.before),
            "after": mask_definition(self.after),
        }


def plan_changes(
    rows: Sequence[AutomationRow], definitions: Sequence[Definition], leftovers: Leftovers
) -> list[Change]:
    """Compare what is stored with what is wanted, in the order of the definitions, then what is left over.

    A definition without a status leaves that of an automation that exists as it is.
    """
    stored = {row.key: row for row in rows}
    changes = [_compare(stored.pop(wanted.key, None), wanted) for wanted in definitions]
    if leftovers is Leftovers.DELETE:
        changes += [Change(ChangeKind.DELETED, row.key, row.definition, None) for row in stored.values()]
    return changes


def _compare(row: AutomationRow | None, wanted: Definition) -> Change:
    after = definition_to_json(wanted)
    if row is None:
        after["status"] = wanted.status.value
        return Change(ChangeKind.CREATED, wanted.key, None, after)
    after.setdefault("status", row.status.value)
    kind = ChangeKind.UNCHANGED if is_same_json(row.definition, after) else ChangeKind.UPDATED
    return Change(kind, wanted.key, row.definition, after)


def _lines(definition: Mapping[str, Any] | None) -> list[str]:
    if definition is None:
        return []
    text = yaml.safe_dump(mask_definition(definition), sort_keys=True, allow_unicode=True, width=100)
    return text.splitlines(keepends=True)
