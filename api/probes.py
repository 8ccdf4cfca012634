"""Whether the process is up, and whether it can serve: asked by supervisors and balancers, without a key."""

import asyncio
from functools import partial
from typing import Final, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

from api.looks import Look
from shared.db.migrating import missing_migrations
from shared.redis_port import REDIS_ERRORS
from shared.services.backends import Backends

router: Final = APIRouter(tags=["probes"])

Verdict = Literal["ok", "away", "behind"]


class Looks:
    """The looks at the servers."""

    def __init__(self, backends: Backends) -> None:
        """Look at nothing yet."""
        late: tuple[Verdict, Verdict] = ("away", "away")
        self.redis: Look[Verdict] = Look(partial(_redis, backends), "away")
        self.sql = Look(partial(_sql, backends), late)


class Health(BaseModel):
    """The process is up."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """What is needed to serve, and how each of it stands."""

    status: Literal["ok", "unavailable"]
    redis: Verdict
    sql: Verdict
    migrations: Verdict


@router.get("/healthz")
async def read_health() -> Health:
    """Tell that the process is up. Nothing is asked of any server."""
    return Health()


@router.get("/readyz", responses={503: {"model": Readiness, "description": "Something is away."}})
async def read_readiness(request: Request, response: Response) -> Readiness:
    """Tell whether Redis and SQL answer and the tables have their newest shape."""
    looks: Looks = request.app.state.looks
    redis, (sql, migrations) = await asyncio.gather(looks.redis.ask(), looks.sql.ask())
    is_ready = (redis, sql, migrations) == ("ok", "ok", "ok")
    if not is_ready:
        response.status_code = 503
    return Readiness(status="ok" if is_ready else "unavailable", redis=redis, sql=sql, migrations=migrations)


def _redis(backends: Backends) -> Verdict:
    try:
        backends.redis.ping()
    except REDIS_ERRORS:
        return "away"
    return "ok"


def _sql(backends: Backends) -> tuple[Verdict, Verdict]:
    try:
        missing = missing_migrations(backends.database)
    except SQLAlchemyError:
        return "away", "away"
    return "ok", "behind" if missing else "ok"
