"""The job that is measured: automations that listen, and events of which each starts exactly one of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

from knockon.client import EventDraft
from shared.db.automations import INSERT
from shared.db.engine import Database
from shared.db.types import write_instant
from shared.ids import new_id
from shared.model.automation import parse_definition

CHUNK: Final = 2_000
CONDITIONS: Final = {
    "all": [
        {"field": "total", "op": "gt", "value": 10},
        {"field": "status", "op": "eq", "value": "paid"},
    ]
}


@dataclass(frozen=True, slots=True)
class Mix:
    """So many workspaces, each with one automation for each of so many event types."""

    workspaces: int
    types: int

    @property
    def automations(self) -> int:
        """Count them all."""
        return self.workspaces * self.types

    def places(self) -> Iterator[tuple[str, str]]:
        """Give the workspace and the event type of each automation."""
        for workspace in range(self.workspaces):
            for kind in range(self.types):
                yield f"ws_{workspace}", f"order.step_{kind}"


TWO_HUNDRED: Final = Mix(workspaces=10, types=20)


def definition(event_type: str) -> dict[str, Any]:
    """Give an automation's definition: two conditions, one action that only writes to our own tables."""
    return {
        "key": event_type.replace(".", "-"),
        "name": f"On {event_type}",
        "status": "ACTIVE",
        "trigger": {"type": "EVENT", "config": {"eventType": event_type}},
        "conditions": CONDITIONS,
        "actions": [
            {
                "type": "CREATE_NOTIFICATION",
                "config": {"title": "Order {{ orderId }}", "body": "It is paid."},
            }
        ],
    }


def events(mix: Mix, count: int) -> Iterator[EventDraft]:
    """Give so many events, in turn for each automation of the mix."""
    places = list(mix.places())
    for number in range(count):
        workspace, kind = places[number % len(places)]
        yield EventDraft(kind, workspace, payload(number))


def payload(number: int) -> dict[str, Any]:
    """Give what an order's event carries, about 300 bytes."""
    return {
        "orderId": number,
        "status": "paid",
        "total": 20 + number % 500,
        "currency": "EUR",
        "customer": {"id": f"cus_{number % 977}", "name": "Ada Lovelace", "email": "ada@example.test"},
        "lines": [{"sku": f"sku-{line}", "quantity": line + 1, "price": 9.5} for line in range(3)],
    }


def store(database: Database, mix: Mix) -> None:
    """Write the automations of a mix, as old as if they had been there for a day."""
    definitions = {f"order.step_{kind}": definition(f"order.step_{kind}") for kind in range(mix.types)}
    for each in definitions.values():
        parse_definition(each)
    now = write_instant(datetime.now(UTC) - timedelta(days=1))
    rows = (
        {
            "id": new_id(),
            "workspace_id": workspace,
            "key": definitions[kind]["key"],
            "name": definitions[kind]["name"],
            "status": "ACTIVE",
            "version": 1,
            "definition": definitions[kind],
            "activated_ms": 0,
        }
        for workspace, kind in mix.places()
    )
    while chunk := list(islice(rows, CHUNK)):
        with database.begin() as conn:
            INSERT.run_set(conn, chunk, now=now)
