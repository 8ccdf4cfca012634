"""What the runbook and the pages beside it tell to type exists: commands, metrics, settings."""

import re
from typing import Any

import pytest
import typer.main

from knockon.cli.app import make_app
from shared.metrics.samples import METRICS
from shared.settings import Settings
from tests.pages import page

PAGES = ("runbook.md", "metrics.md", "operations.md")
SETTINGS = {name.upper() for name in Settings.model_json_schema(by_alias=True)["properties"]}
COMMAND: Any = typer.main.get_command(make_app())
SYMPTOMS = {
    "Nothing runs",
    "Runs pile up",
    "Dead letters flood",
    "Redis is full or away",
    "SQL is slow or away",
    "A disk is full",
    "A poisonous automation",
    "A clock is off",
    "The key of the secrets is lost",
    "Restore from a backup",
}


def test_the_runbook_has_what_people_look_for() -> None:
    assert set(page("runbook.md").headings()) >= SYMPTOMS


@pytest.mark.parametrize("name", PAGES)
def test_each_command_that_is_named_is_one(name: str) -> None:
    told = re.findall(r"`knockon ([a-z][a-z ]*)", page(name).text)
    assert told
    for words in told:
        found = COMMAND
        for word in words.split():
            below = getattr(found, "commands", None)
            if not below:
                break
            assert word in below, words
            found = below[word]


@pytest.mark.parametrize("name", PAGES)
def test_each_metric_that_is_named_is_one(name: str) -> None:
    assert set(re.findall(r"`(knockon_\w+)", page(name).text)) <= set(METRICS)


@pytest.mark.parametrize("name", PAGES)
def test_each_setting_that_is_named_is_one(name: str) -> None:
    ours = re.compile(
        r"`((?:KNOCKON|REDIS|DATABASE|EVENTS|AUTOMATIONS?|AUTO|RUN|WATCHDOG|SCHEDULE|METRICS|API|RETENTION|SECRETS)"
        r"_[A-Z_]+)\b"
    )
    others = {"KNOCKON_WORKSPACE", "RUN_ID"}
    assert set(ours.findall(page(name).text)) - others <= SETTINGS
