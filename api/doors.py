"""Which route a request is for, and what that route asks of it: known before the body is read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from api.errors import refused_at
from api.methods import allowed_methods

NAME_CHARS_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Door:
    """What a route asks: the scopes that a key must have, and the parameters that a query may have."""

    scopes: tuple[str, ...]
    parameters: frozenset[str]

    def check_query(self, query: bytes) -> None:
        """Let a query pass that the route reads whole. Raises Refused, 422, with the parameter at fault."""
        found = [name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)]
        for name in found:
            if name not in self.parameters:
                raise refused_at(_shown(name), f"is unknown; known are {_listed(self.parameters)}")
            if found.count(name) > 1:
                raise refused_at(name, "is there more than once")


class Doors:
    """The routes of the application, each with what it asks."""

    def __init__(self, routers: Sequence[APIRouter]) -> None:
        """Look at every route once."""
        self._doors = [
            (route, _door_of(route))
            for router in routers
            for route in router.routes
            if isinstance(route, APIRoute)
        ]

    def find(self, scope: Scope) -> Door | None:
        """Give what the route of a request asks; None where another than these may serve it.

        Raises HTTPException, 404 or 405.
        """
        for route, door in self._doors:
            if route.matches(scope)[0] is Match.FULL:
                return door
        allowed = allowed_methods(scope)
        if not allowed:
            raise HTTPException(404)
        if scope["method"] not in allowed.split(", "):
            raise HTTPException(405, headers={"Allow": allowed})
        return None


def _door_of(route: APIRoute) -> Door:
    parts = list(_parts(route.dependant))
    scopes = dict.fromkeys(scope for part in parts for scope in part.own_oauth_scopes or ())
    names = frozenset(field.alias for part in parts for field in part.query_params)
    return Door(tuple(scopes), names)


def _parts(dependant: Dependant) -> Iterator[Dependant]:
    """Give a route's declarations, and those of all that it depends on."""
    yield dependant
    for each in dependant.dependencies:
        yield from _parts(each)


def _shown(name: str) -> str:
    return name[:NAME_CHARS_SHOWN] or "query"


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "none"
