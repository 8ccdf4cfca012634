"""The OpenAPI document: what FastAPI makes of the routes, and what all of them have in common."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.auth import GUARDED
from api.bodies import WITH_BODY
from api.envelope import MEANINGS, Refusal
from api.idempotency import HEADER

VERSION: Final = "3.1.0"
READ: Final = (400, 401, 403, 404, 422, 429, 503)
WRITE: Final = (400, 401, 403, 404, 408, 409, 412, 413, 415, 422, 429, 503)
SCHEMA: Final = "#/components/schemas/Refusal"
SUPERSEDED: Final = ("HTTPValidationError", "ValidationError")

_KEY: Final[dict[str, Any]] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
    "description": "A name for this request: sent again within 24 hours it is done once and answered alike.",
}


def describe(app: FastAPI) -> dict[str, Any]:
    """Make the document, once for an application."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            openapi_version=VERSION,
            summary=app.summary,
            description=app.description,
            routes=app.routes,
        )
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                _complete(path, method.upper(), operation)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in SUPERSEDED:
            schemas.pop(name, None)
        schemas["Refusal"] = Refusal.model_json_schema()
        app.openapi_schema = document
    return app.openapi_schema


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    """Add to an operation what it may be refused with, and the header that a write may have."""
    responses: dict[str, Any] = operation["responses"]
    if _is_superseded(responses.get("422", {})):
        del responses["422"]
    if not path.startswith(GUARDED):
        return
    for status in WRITE if method in WITH_BODY else READ:
        responses.setdefault(str(status), _refusal(status))
    operation["responses"] = dict(sorted(responses.items()))
    if method in WITH_BODY:
        operation.setdefault("parameters", []).append(_KEY)


def _is_superseded(response: Mapping[str, Any]) -> bool:
    content = response.get("content", {}).get("application/json", {})
    return str(content.get("schema", {}).get("$ref", "")).endswith(SUPERSEDED)


def _refusal(status: int) -> dict[str, Any]:
    return {
        "description": MEANINGS[status],
        "content": {"application/json": {"schema": {"$ref": SCHEMA}}},
    }
