"""`/docs`: the OpenAPI document as a page to read, made here, so that nothing is fetched from elsewhere."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router: Final = APIRouter(include_in_schema=False)

_TOP: Final = (
    '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title} API</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1"></head><body><main>'
    '<h1>{title} API</h1><p>{summary} As data: <a href="/openapi.json">/openapi.json</a>.</p>'
)
_END: Final = "</main></body></html>"


@router.get("/docs")
async def read_reference(request: Request) -> HTMLResponse:
    """Show every route: what it does, what it needs, takes and gives."""
    return HTMLResponse("".join(_page(request.app.openapi())))


def _page(document: Mapping[str, Any]) -> Iterator[str]:
    told = document["info"]
    yield _TOP.format(title=escape(told["title"]), summary=escape(told.get("summary", "")))
    for path, operations in sorted(document["paths"].items()):
        for method, operation in operations.items():
            yield from _operation(f"{method.upper()} {path}", operation)
    yield "<h2>Shapes</h2>"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield f'<details id="{escape(name)}"><summary>{escape(name)}</summary>{_json(schema)}</details>'
    yield _END


def _operation(name: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{escape(name)}</code></h2><p>{escape(operation.get('description', ''))}</p>"
    scopes = [scope for needed in operation.get("security", ()) for scope in needed["key"]]
    yield f"<p>Needs: {escape(', '.join(scopes))}</p>" if scopes else "<p>Needs no key.</p>"
    given = operation.get("parameters", ())
    if given:
        yield "<ul>"
        yield from map(_parameter, given)
        yield "</ul>"
    if "requestBody" in operation:
        yield f"<details><summary>Body</summary>{_json(operation['requestBody'])}</details>"
    yield f"<details><summary>Answers</summary>{_json(operation['responses'])}</details>"


def _parameter(given: Mapping[str, Any]) -> str:
    need = "required" if given.get("required") else "optional"
    words = escape(given.get("description") or given.get("schema", {}).get("description", ""))
    return f"<li><code>{escape(given['name'])}</code> ({given['in']}, {need}) {words}</li>"


def _json(value: Any) -> str:
    return f"<pre>{escape(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())}</pre>"
