"""`knockon tail --api`: the log of runs over HTTP, without a way to the database."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2

from knockon.cli.log_printing import print_log_line
from knockon.cli.output import Form, print_note
from knockon.log_following import Api, ApiRefused, Follower, Trouble, check_answer
from shared.process import StopFlag

PAGE: Final = 200
LIST: Final = "/v1/logs"


@dataclass(frozen=True, slots=True)
class Tailing:
    """What is printed: the lines that `asked` names; of those that are there already, all or the last few."""

    asked: Mapping[str, str]
    last: int | None
    output: Form


def print_backlog(api: Api, wanted: Tailing) -> str | None:
    """Print what is there already; give the place to go on from. Raises ApiRefused."""
    place = None
    try:
        with api.client() as client:
            for page in _pages(client, wanted):
                rows = page["items"] if wanted.last is None else page["items"][::-1]
                _print(rows, wanted.output)
                place = page["as_of"]
    except httpx2.HTTPError as error:
        raise ApiRefused(f"{api.url} does not answer: {error}") from error
    return place


def follow(api: Api, wanted: Tailing, place: str | None, stop: StopFlag) -> None:
    """Print each line behind a place until the stop, through all absences of the API. Raises ApiRefused.

    Without a place it begins where the API says: at `from`, or with the first line of `run`.
    """
    for found in Follower(api, wanted.asked, place, stop).lines():
        if isinstance(found, Trouble):
            print_note(f"{api.url}: {found.reason}; asking again in {found.pause_s:g} s")
            continue
        _print([found], wanted.output)


def _pages(client: httpx2.Client, wanted: Tailing) -> Iterator[Mapping[str, Any]]:
    """Give pages of the log: upward as far as there is one, or the one that holds the last lines."""
    if wanted.last is not None:
        yield _ask(client, {**wanted.asked, "limit": str(wanted.last)})
        return
    asked = {**wanted.asked, "order": "asc", "limit": str(PAGE)}
    while True:
        page = _ask(client, asked)
        yield page
        if page["next"] is None:
            return
        asked["cursor"] = page["next"]


def _ask(client: httpx2.Client, asked: Mapping[str, str]) -> Mapping[str, Any]:
    answer = client.get(LIST, params=dict(asked))
    check_answer(answer)
    page: Mapping[str, Any] = answer.json()
    return page


def _print(rows: list[Mapping[str, Any]], output: Form) -> None:
    for row in rows:
        print_log_line(row, output)
    sys.stdout.flush()
