"""Whether the API serves, as the doctor asks it: GET /readyz."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import httpx2

from knockon.findings import Finding, Level
from knockon.keeping import is_up
from shared.ports import url_of
from shared.settings import Settings

SUBJECT: Final = "api"
ASKED_S: Final = 5.0

# Where a process listens on every address, this machine's own is asked.
_ASKED: Final[Mapping[str, str]] = MappingProxyType({"0.0.0.0": "127.0.0.1", "::": "::1"})  # noqa: S104


def examine_api(settings: Settings) -> Iterator[Finding]:
    """Ask the API of this machine; that none runs is a failure only under an `up`."""
    if settings.api_port == 0:
        yield Finding(Level.OK, SUBJECT, "API_PORT is 0: its log says where it listens")
        return
    url = url_of(_ASKED.get(settings.api_host, settings.api_host), settings.api_port)
    try:
        answer = httpx2.get(f"{url}/readyz", timeout=ASKED_S, trust_env=False)
        lacking = [name for name, verdict in answer.json().items() if verdict not in ("ok", "unavailable")]
    except (httpx2.HTTPError, ValueError, AttributeError):
        is_kept = is_up(settings.data_dir)
        fix = "see what knockon up prints" if is_kept else "knockon up, or knockon run api"
        yield Finding(Level.FAIL if is_kept else Level.WARN, SUBJECT, f"does not answer at {url}", fix)
        return
    if answer.status_code == 200:
        yield Finding(Level.OK, SUBJECT, f"serves at {url}")
    else:
        text = f"at {url} cannot serve: {', '.join(lacking)} not ok"
        yield Finding(Level.FAIL, SUBJECT, text, "see to what it lacks; its log says more")
