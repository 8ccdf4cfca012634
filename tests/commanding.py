"""The command, run inside the process of a test: what it is told and what it answers."""

from collections.abc import Callable
from typing import Any

import orjson
from typer.testing import Result

AUTOMATIONS = """
- key: welcome
  name: Welcome
  trigger: {type: EVENT, config: {eventType: order.placed}}
  actions: [{type: CREATE_NOTIFICATION, config: {title: Hello}}]
- key: second
  name: Second
  status: DRAFT
  trigger: {type: MANUAL}
  actions: [{type: CREATE_NOTIFICATION, config: {title: Hello}}]
"""

Knockon = Callable[..., Result]


def document(result: Result) -> Any:
    """Read the JSON that a command printed."""
    return orjson.loads(result.stdout)


def start(knockon: Knockon, number: int = 1) -> list[str]:
    """Apply the file and start runs by hand; give their ids."""
    knockon("apply", "-f", "automations.yaml")
    return [knockon("automations", "run", "welcome").stdout.strip() for _ in range(number)]
