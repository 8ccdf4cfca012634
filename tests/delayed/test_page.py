"""The stories of docs/delayed.md as they stand on the page: applied, told, fired when their hour comes."""

from datetime import timedelta

import pytest

from shared.model.automation import Definition, load_yaml
from shared.services.automations import apply_changes
from shared.services.definitions import Leftovers
from tests.delayed.day import DAY, Day, sent
from tests.field.road import W1
from tests.pages import ROOT, page

STORIES = [each for block in page("delayed.md").blocks("yaml") for each in load_yaml(block.text)]
KEYS = ["stale-pending", "check-in", "sla-risk", "unpaid-order"]


@pytest.fixture
def told(day: Day) -> Day:
    """Apply all four, as the page has them, on Monday at nine."""
    apply_changes(day.road.post.backends, W1, STORIES, Leftovers.KEEP)
    return day.at("9:00")


def titles(day: Day) -> list[str]:
    rows = day.road.room.all("SELECT DISTINCT title FROM notifications ORDER BY title")
    return [row.title for row in rows]


def as_json(definitions: list[Definition]) -> list[str]:
    return [each.model_dump_json() for each in definitions]


def test_the_examples_are_the_stories_of_the_page() -> None:
    assert [each.key for each in STORIES] == KEYS
    examples = load_yaml((ROOT / "examples" / "delayed.yaml").read_text(encoding="utf-8"))
    assert as_json(examples) == as_json(STORIES)


def test_what_stays_pending_is_labelled_and_what_is_left_is_not(told: Day) -> None:
    for name in ("stays", "leaves"):
        told.conversation("updated", name, status="pending")
    told.after(timedelta(hours=1)).conversation("resolved", "leaves", status="resolved")
    told.after(timedelta(hours=3)).sweep()
    assert (told.labels("stays"), told.labels("leaves")) == (["stale-pending"], [])


def test_a_customer_who_is_quiet_for_a_day_is_asked_once(told: Day) -> None:
    told.message("incoming")
    told.message("outgoing")
    told.message("outgoing", "answers")
    told.after(timedelta(hours=2)).message("incoming", "answers")
    told.after(DAY).sweep()
    told.after(DAY).sweep()
    assert sent(told) == ["Just checking in: did that solve it for you?"]


def test_what_is_open_for_two_days_is_marked(told: Day) -> None:
    for name in ("stays", "resolved"):
        told.conversation("created", name, status="open")
    told.after(DAY).conversation("resolved", "resolved", status="resolved")
    told.after(DAY).sweep()
    assert (told.labels("stays"), told.labels("resolved")) == (["sla-risk"], [])


def test_an_order_that_nobody_pays_for_a_day_is_told_of(told: Day) -> None:
    for name in ("o1", "o2"):
        told.tell("order.placed", {"subject": {"type": "order", "id": name, "state": {"paid": False}}})
    told.after(timedelta(hours=1))
    told.tell("order.updated", {"subject": {"type": "order", "id": "o2", "state": {"paid": True}}})
    told.after(timedelta(hours=22)).sweep()
    assert titles(told) == []
    told.after(timedelta(hours=1)).sweep()
    assert titles(told) == ["Order o1 has been unpaid for a day"]
