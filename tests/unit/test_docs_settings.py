"""The tables of operations are what the settings, the constants and the log lines are."""

import re
from collections.abc import Mapping
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest

from shared.settings import Settings
from tests.pages import ROOT, names, page

PAGE = page("operations.md")
SCHEMA = Settings.model_json_schema(by_alias=True)
FORMATS = {"path": "path", "password": "secret"}
ROOMS = ("shared", "matcher", "pipeline", "executors", "timers", "watchdog", "worker", "api")


def test_every_setting_is_told_with_its_default_and_values() -> None:
    documented = {row[0]: (row[1], row[2]) for row in PAGE.table("Settings")}
    assert documented == {
        f"`{name.upper()}`": (default_text(told), values_text(told))
        for name, told in SCHEMA["properties"].items()
    }


def default_text(told: Mapping[str, Any]) -> str:
    match told["default"]:
        case None:
            return "not set"
        case "":
            return "empty"
        case bool() as flag:
            return f"`{str(flag).lower()}`"
        case float() as number:
            return f"`{number:g}`"
        case other:
            return f"`{other}`"


def values_text(told: Mapping[str, Any]) -> str:
    plain = next((choice for choice in told.get("anyOf", ()) if choice["type"] != "null"), told)
    if "$ref" in plain:
        return ", ".join(f"`{each}`" for each in SCHEMA["$defs"][plain["$ref"].rpartition("/")[2]]["enum"])
    if "maxLength" in plain:
        return f"at most {plain['maxLength']} characters"
    if "exclusiveMinimum" in plain:
        return f"above {plain['exclusiveMinimum']} to {plain['maximum']:,}"
    if "maximum" in plain:
        return f"{plain['minimum']:,} to {plain['maximum']:,}"
    return "true or false" if plain["type"] == "boolean" else FORMATS.get(plain.get("format", ""), "text")


@pytest.mark.parametrize(("what", "limit", "where"), PAGE.table("Limits"))
def test_each_limit_is_the_constant_that_it_names(what: str, limit: str, where: str) -> None:
    module, _, constant = where.strip("`").rpartition(".")
    value = getattr(import_module(module), constant)
    number = value.total_seconds() if isinstance(value, timedelta) else value
    assert float(limit.replace(",", "")) == number, what


def test_the_log_lines_to_watch_are_written() -> None:
    written = {
        found
        for text in sources()
        for found in re.findall(r'log\.(?:warning|error|exception)\(\s*"(\w+)"', text)
    }
    assert {names(row[0])[0] for row in PAGE.table("What to watch")} <= written


def sources() -> list[str]:
    return [file.read_text(encoding="utf-8") for room in ROOMS for file in (ROOT / room).rglob("*.py")]
