"""What a log line says of the conditions that did not hold. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from shared.rules.conditions import LeafVerdict

LEAVES_SHOWN: Final = 10


def shown_leaves(blamed: Sequence[LeafVerdict]) -> dict[str, Any]:
    """Give the first of the leaves to blame, in JSON types."""
    return {
        "failed": [
            {
                "path": leaf.path,
                "field": leaf.field,
                "op": leaf.op,
                "wanted": leaf.wanted,
                "found": leaf.found,
                "reason": leaf.reason,
            }
            for leaf in blamed[:LEAVES_SHOWN]
        ]
    }
