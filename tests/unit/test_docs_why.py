"""What the page says of explanations is what they say."""

from dataclasses import fields

from shared.rules.examining import CheckName
from shared.rules.previewing import PreviewedAction
from shared.services.verdicts import Verdict
from tests.pages import names, page

PAGE = page("automations.md")
SECTION = "Why did it not run?"


def test_the_verdicts_are_told() -> None:
    assert [names(row[0])[0] for row in PAGE.table(SECTION, 0)] == list(Verdict)


def test_the_checks_are_told_in_their_order() -> None:
    assert [names(row[0])[0] for row in PAGE.table(SECTION, 1)] == list(CheckName)


def test_what_a_previewed_action_has_is_told() -> None:
    told = {names(row[0])[0] for row in PAGE.table("Dry run")}
    assert told == {field.name for field in fields(PreviewedAction)} - {"position", "type"}
