"""The OpenAPI description of the console's API, made from the table of its routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from toolwire import __version__
from toolwire.gateway.console.calls import ApiRoute, Query
from toolwire.request import JsonObject

_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"message": {"type": "string"}, "hint": {"type": "string"}},
            "required": ["message", "hint"],
        }
    },
    "required": ["error"],
}


def described(routes: Iterable[ApiRoute]) -> JsonObject:
    """The document."""
    routes = tuple(routes)
    kinds = tuple(
        dict.fromkeys(
            kind for route in routes for kind in (route.takes, route.returns) if kind is not None
        )
    )
    template = "#/components/schemas/{name}"
    schemas, components = msgspec.json.schema_components(
        kinds, ref_template=template, schema_hook=_schema
    )
    by_kind = dict(zip(kinds, schemas, strict=True))
    paths: JsonObject = {}
    for route in routes:
        operation = _operation(route, by_kind)
        paths.setdefault(f"/api{route.path}", {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "toolwire console", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": _ERROR},
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "tw_session"},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _schema(kind: type[Any]) -> JsonObject:
    if kind is msgspec.Raw:
        return {"type": "object"}
    return {"type": "string"}


def _operation(route: ApiRoute, by_kind: dict[Any, JsonObject]) -> JsonObject:
    named = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    content: JsonObject = {}
    if route.returns is not None:
        content = {"content": {route.media: {"schema": by_kind[route.returns]}}}
    elif route.status != 204:
        content = {"content": {route.media: {}}}
    error = {"$ref": "#/components/schemas/Error"}
    found: JsonObject = {
        "summary": route.about,
        "operationId": _name(route),
        "parameters": [*named, *map(_parameter, route.query)],
        "responses": {
            str(route.status): {"description": "The answer.", **content},
            "default": {
                "description": "An error.",
                "content": {"application/json": {"schema": error}},
            },
        },
        "security": [] if route.open else _security(route),
    }
    if route.takes is not None:
        schema = by_kind[route.takes]
        found["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return found


def _security(route: ApiRoute) -> list[JsonObject]:
    ways: list[JsonObject] = [{"session": []}]
    return ways if route.session else [*ways, {"token": []}]


def _parameter(query: Query) -> JsonObject:
    schema = {"type": query.type}
    return {"name": query.name, "in": "query", "description": query.about, "schema": schema}


def _name(route: ApiRoute) -> str:
    words = [word.strip("{}") for word in route.path.split("/") if word]
    return "_".join((route.method.lower(), *words)).replace(".", "_")


if __name__ == "__main__":
    from toolwire.gateway.console.api import table

    print(msgspec.json.format(msgspec.json.encode(described(table())), indent=1).decode())
