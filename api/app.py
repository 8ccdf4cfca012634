"""The application: resources behind what every request passes.

From the outside in: an id and an answer for everything (`requests`), methods (`methods`), the key and what it
may call (`auth`), the body (`bodies`), its turn (`shares`), repeats (`idempotency`), then the route.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

from anyio import to_thread
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from api import (
    ai_agents,
    audit,
    automations,
    bulk,
    channels,
    events,
    flags,
    keys,
    logs,
    members,
    metrics,
    notifications,
    pending,
    probes,
    recorded,
    reference,
    runs,
    secrets,
    sequences,
    subjects,
    turning,
    why,
    workspace,
)
from api.auth import Guarding
from api.bodies import Bodies
from api.doors import Doors
from api.errors import Answer, answer_for, failure
from api.idempotency import Repeating
from api.log_feed import LogFeeds
from api.methods import Methods, allowed_methods
from api.openapi import describe
from api.requests import Answering
from api.shares import Sharing
from shared.metrics.exposition import Metrics
from shared.services.backends import Backends
from shared.settings import Settings

THREADS: Final = 30
TITLE: Final = "Knockon"

ROUTERS: Final[tuple[APIRouter, ...]] = (
    ai_agents.router,
    audit.router,
    automations.router,
    bulk.router,
    channels.router,
    events.router,
    flags.router,
    keys.router,
    logs.router,
    members.router,
    metrics.router,
    notifications.router,
    pending.router,
    probes.router,
    recorded.router,
    runs.router,
    secrets.router,
    sequences.router,
    subjects.router,
    turning.router,
    why.router,
    workspace.router,
    reference.router,
)


def make_app(settings: Settings, backends: Backends) -> FastAPI:
    """Put the application together. Whoever opened the servers closes them after it."""
    app = FastAPI(
        title=TITLE,
        summary="Domain events in, automations that run with full account of every step.",
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        middleware=[
            Middleware(Answering, clock=backends.clock),
            Middleware(Methods),
            Middleware(Guarding, backends=backends, doors=Doors(ROUTERS)),
            Middleware(Bodies),
            Middleware(Sharing),
            Middleware(Repeating, settings=settings, backends=backends),
        ],
        exception_handlers={HTTPException: _render, RequestValidationError: _render},
    )
    app.state.settings = settings
    app.state.backends = backends
    app.state.metrics = Metrics(backends)
    app.state.metrics_look = metrics.look_at(app.state.metrics)
    app.state.looks = probes.Looks(backends)
    app.state.log_feeds = LogFeeds(backends.database)
    for router in ROUTERS:
        app.include_router(router)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]  # as FastAPI has it be extended
    return app


def end_answers(app: FastAPI) -> None:
    """End the answers that would not end by themselves. A second call changes nothing."""
    app.state.log_feeds.close()


@asynccontextmanager
async def _lifespan(_app: FastAPI) -> AsyncIterator[None]:
    """Have as many threads for routes as there are connections for them."""
    to_thread.current_default_thread_limiter().total_tokens = THREADS
    yield


async def _render(request: Request, error: Exception) -> Any:
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        error = HTTPException(error.status_code, headers={"Allow": allowed_methods(request.scope)})
    answer: Answer = answer_for(error) or failure()
    return answer.response()
