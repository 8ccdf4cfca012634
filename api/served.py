"""What every route is handed: the servers to work on, and the settings."""

from collections.abc import MutableMapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Request

from shared.services.backends import Backends
from shared.services.idempotency import bound_to
from shared.settings import Settings

State = MutableMapping[str, Any]


async def read_backends(request: Request) -> Backends:
    """Give the servers; under an Idempotency-Key nothing is written to SQL once its claim is lost."""
    backends: Backends = request.app.state.backends
    claim = getattr(request.state, "claim", None)
    if claim is None:
        return backends
    return replace(backends, database=bound_to(backends.database, backends.clock, claim))


async def tell_once(request: Request) -> None:
    """Note that the answer holds what is shown once, so that no repeat gets it."""
    request.state.shown_once = True


async def read_settings(request: Request) -> Settings:
    """Give the settings of this process."""
    settings: Settings = request.app.state.settings
    return settings


async def read_body(request: Request) -> bytes:
    """Give the body as it came, within its limit."""
    body: bytes = request.state.body
    return body


Served = Annotated[Backends, Depends(read_backends)]
Configured = Annotated[Settings, Depends(read_settings)]
RawBody = Annotated[bytes, Depends(read_body)]
