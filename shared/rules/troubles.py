"""What a dead letter is one case of: its fingerprint, and what people are shown of it. Pure.

The same for its run, its alert and its group, so that each finds the others (docs/operations.md, "Alerts").
"""

from dataclasses import dataclass
from typing import Final

from shared.masking import mask_urls
from shared.model.sizes import cut_text
from shared.rules.fingerprints import fingerprint, target_of

SHOWN_BYTES: Final = 1_000
READ_BYTES: Final = 4 * SHOWN_BYTES  # masked before it is cut, so that no cut bares a password


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a run is a dead letter; `target` is a host or the automation's id, `message` may be shown."""

    fingerprint: str
    code: str
    target: str
    message: str


def trouble_of(code: str, message: str, automation_id: str) -> Trouble:
    """Tell the trouble of a run of this automation whose last error was this one."""
    said = mask_urls(cut_text(message, READ_BYTES))
    target = target_of(code, said, automation_id)
    return Trouble(fingerprint(code, said, target), code, target, cut_text(said, SHOWN_BYTES))
