"""Where the example files lie: beside the rooms, in a checkout as in an installation."""

from pathlib import Path
from typing import Final

import shared.errors

FOLDER: Final = Path(shared.errors.__file__).resolve().parents[1] / "examples"
AUTOMATIONS: Final = FOLDER / "automations.yaml"
EVENTS: Final = FOLDER / "events.jsonl"
ENDPOINT: Final = "https://hooks.example"  # what the demo replaces by the address of its own endpoint
