"""Plans: an automation as a run needs it, always as it stands, however few of them are kept."""

import json

from pipeline.plans import Plans
from tests.rooms import Room


def test_more_automations_than_plans_are_kept_are_all_served(room: Room) -> None:
    wanted = [room.automation(name=f"A{n}").id for n in range(5)]
    plans = Plans(room.parts.settings, kept=2)
    for _ in range(3):
        with room.database.read() as conn:
            found = plans.current(conn, wanted)
        assert {plan.name for plan in found.values()} == {f"A{n}" for n in range(5)}


def test_a_plan_follows_its_automations_version_status_and_end(room: Room) -> None:
    automation = room.automation(name="Before")
    plans = Plans(room.parts.settings)

    def name_and_end() -> tuple[str, bool]:
        with room.database.read() as conn:
            plan = plans.current(conn, [automation.id])[automation.id]
        return plan.name, plan.state.is_deleted

    assert name_and_end() == ("Before", False)
    room.change(
        "UPDATE automations SET version = 2, definition = :new WHERE id = :id",
        new=json.dumps({**automation.definition, "name": "After"}),
        id=automation.id,
    )
    assert name_and_end() == ("After", False)
    room.change("UPDATE automations SET deleted_at = updated_at WHERE id = :id", id=automation.id)
    assert name_and_end() == ("After", True)
    room.change("DELETE FROM automations WHERE id = :id", id=automation.id)
    assert name_and_end() == ("", True)
