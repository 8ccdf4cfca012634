"""The page of the API: its routes, codes and scopes are those that there are, and its first steps work."""

import re
import shlex
from typing import Any

import pytest

from api.errors import CODES
from shared.services.workspaces import Scope
from tests.api.test_openapi import operations
from tests.calling import Api
from tests.pages import ROOT, names, page

PAGE = page("api.md")


def test_every_route_is_told_with_its_scopes() -> None:
    documented = {row[0].strip("`"): set(names(row[1])) for row in PAGE.table("Routes")}
    found = {
        f"{method.upper()} {path}": {
            scope for needed in operation.get("security", ()) for scope in needed["key"]
        }
        for method, path, operation in operations()
    }
    assert documented == found


def test_every_code_is_told_with_its_status() -> None:
    told = {(int(row[0]), row[1].strip("`")) for row in PAGE.table("Errors")}
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "api").glob("*.py")]
    coded = {found for text in sources for found in re.findall(r'\.coded\("(\w+)"\)', text)}
    assert {code for _, code in told} == {*CODES.values(), *coded}
    assert {(status, code) for status, code in told if code not in coded} == set(CODES.items())


def test_every_scope_is_told() -> None:
    assert {names(row[0])[0] for row in PAGE.table("Keys")} == {*Scope}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_first_steps_work_as_they_are_written(api: Api) -> None:
    (block,) = [block for block in PAGE.blocks("sh") if block.section == "Quick start"]
    key = api.key()
    lines = block.text.replace("\\\n", " ").replace("$KEY", key).splitlines()
    answers = [curl(api, line) for line in lines if line.startswith("curl ")]
    assert [answer.status_code for answer in answers] == [202, 200, 200]
    (entry,) = answers[0].json()["entries"]
    assert entry["id"] == "order-7"
    assert answers[1].json()["items"][0]["entry_id"] == entry["entry_id"]


def curl(api: Api, line: str) -> Any:
    """Do what a line with curl does."""
    _, *words = shlex.split(line)
    method, url, body = "GET", "", None
    headers: dict[str, str] = {}
    given = iter(words)
    for word in given:
        match word:
            case "-X":
                method = next(given)
            case "-d":
                body = next(given)
            case "-H":
                name, _, value = next(given).partition(": ")
                headers[name] = value
            case _:
                url = word
    path = url.removeprefix("http://127.0.0.1:8420")
    return api(method, path, headers=headers, content=body)
