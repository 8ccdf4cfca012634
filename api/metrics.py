"""`/metrics` for Prometheus (docs/metrics.md): of the whole deployment, so no key of one workspace opens it.

It is served on a port of its own where METRICS_PORT is set. Else it stands on the API's port, as long as that
one is this machine's alone: nothing that came through a proxy is answered.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Final

from fastapi import APIRouter, Request, Response
from prometheus_client import start_http_server

from api.errors import Refused
from api.looks import Look
from shared.errors import SettingsError
from shared.logs import get_logger
from shared.metrics.exposition import CONTENT_TYPE, Metrics
from shared.ports import url_of
from shared.settings import Settings

ENDED_IN_S: Final = 2.0
LOOKED_S: Final = 10
FORWARDED: Final = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
HOW: Final = "the metrics are not served here; METRICS_PORT gives them a port of their own"

router: Final = APIRouter(tags=["probes"])
log: Final = get_logger("api")


@router.get("/metrics", responses={404: {"description": "They are not served here."}})
async def read_metrics(request: Request) -> Response:
    """Give the deployment's metrics in the text form of Prometheus, without a key, to this machine alone."""
    settings: Settings = request.app.state.settings
    is_proxied = any(name in request.headers for name in FORWARDED)
    if settings.metrics_port is not None or is_proxied or not _is_loopback(settings.api_host):
        raise Refused(404, HOW)
    look: Look[bytes | None] = request.app.state.metrics_look
    text = await look.ask()
    if text is None:
        raise Refused(503, "a server that is looked at does not answer").retry_after(LOOKED_S)
    return Response(text, headers={"Content-Type": CONTENT_TYPE})


def look_at(metrics: Metrics) -> Look[bytes | None]:
    """Make the look that gives all metrics; None where it takes too long."""
    return Look(metrics.text, None, LOOKED_S)


@contextmanager
def served_apart(settings: Settings, metrics: Metrics) -> Iterator[None]:
    """Serve the metrics on METRICS_PORT for the length of the block, if it is set. Raises SettingsError."""
    if settings.metrics_port is None:
        yield
        return
    host, port = settings.metrics_host, settings.metrics_port
    try:
        server, thread = start_http_server(port, host, metrics.registry)
    except OSError as error:
        why = error.strerror or str(error)
        raise SettingsError(f"METRICS_PORT: cannot listen on {host}, port {port}: {why}") from None
    log.info("metrics_started", url=url_of(host, port))
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(ENDED_IN_S)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
