"""Requests about models, not to them: token counts and lists."""

from collections.abc import Iterable, Sequence

from toolwire import dialects
from toolwire.config import Settings
from toolwire.errors import ErrorKind
from toolwire.gateway.admission import KeyCaller
from toolwire.gateway.counting import HEADER, count_answer, estimate
from toolwire.gateway.keys import may_use
from toolwire.gateway.listing import (
    ListedModel,
    described,
    for_shape,
    listed,
    shape_of,
    without_picker_prefix,
)
from toolwire.gateway.parts import Caller, GatewayParts, GatewayRefusal
from toolwire.gateway.paths import Destination
from toolwire.http_server.exchange import Asked
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelFacts
from toolwire.request import JsonObject, ModelRequest
from toolwire.wire.json_access import encode, object_or_empty, parse_object

_PATTERN = frozenset("*?[")


async def count(
    parts: GatewayParts, address: Destination, body: bytes
) -> tuple[JsonObject, tuple[tuple[str, str], ...]]:
    """The tokens of a request, in the client's format, and whether they are exact."""
    request = _counted(address, body)
    route = await parts.routes.find(without_picker_prefix(address.route or request.model))
    exact = None
    if parts.settings.count == "exact":
        endpoint = route.order("", None)[0].opened.endpoint
        exact = None if endpoint is None else await endpoint.count(request)
    tokens = exact
    if tokens is None:
        tokens = parts.calibration.tokens(route.name, estimate(request))
    how = "estimated" if exact is None else "exact"
    return count_answer(address.dialect, tokens), ((HEADER, how),)


def _counted(address: Destination, body: bytes) -> ModelRequest:
    """The request whose tokens are asked for; Gemini's may be wrapped once more."""
    if address.dialect == "gemini":
        whole = object_or_empty(parse_object(body, "request").get("generateContentRequest"))
        body = encode(whole) if whole else body
    return dialects.get(address.dialect).decode_request(body, address.model)


async def models(
    parts: GatewayParts, asked: Asked, address: Destination, caller: Caller
) -> JsonObject:
    """The list of models, or one of them, in the shape that the caller reads."""
    shape = shape_of(asked.head)
    entries = for_shape(_allowed(parts.listed, caller), shape)
    if address.does == "models":
        return listed(entries, shape, asked.query)
    for entry in entries:
        if entry.id == address.model:
            return described(entry, shape)
    # Not every name that is answered is listed: a pattern, or a model that answers all names.
    found = _allowed([await _answered(parts, address.model)], caller)
    for entry in found:
        return described(entry, shape)
    raise GatewayRefusal(
        ErrorKind.NOT_FOUND, f'there is no model "{address.model[:200]}"; GET /v1/models lists them'
    )


async def _answered(parts: GatewayParts, name: str) -> ListedModel:
    """The model that answers requests for a name; GatewayRefusal if none does."""
    route = await parts.routes.find(without_picker_prefix(name))
    opened = route.all[0].opened
    return ListedModel(
        id=name, owner=opened.provider.name, model=opened.name, facts=_facts(opened.name)
    )


def _allowed(entries: Sequence[ListedModel], caller: Caller) -> Iterable[ListedModel]:
    if not isinstance(caller, KeyCaller):
        return entries
    rules = caller.stored.rules
    return [entry for entry in entries if may_use(rules, entry.id, entry.model or entry.id)]


def listed_models(settings: Settings, ready: Iterable[str]) -> tuple[ListedModel, ...]:
    """The routes of the settings, then the models of providers that have credentials."""
    found: list[ListedModel] = []
    for name, table in settings.gateway.routes.items():
        if not _PATTERN & set(name) and table.targets:
            model = table.targets[0].model
            found.append(ListedModel(id=name, owner="toolwire", model=model, facts=_facts(model)))
    for provider in ready:
        for info in catalogue.models(provider, settings.models):
            name = f"{provider}/{info.id}"
            found.append(ListedModel(id=name, owner=provider, model=name, facts=_of(info)))
    return tuple(found)


def _facts(model: str) -> ModelFacts:
    provider, _, name = model.partition("/")
    return _of(catalogue.find(provider, name) or ModelFacts())


def _of(info: ModelFacts) -> ModelFacts:
    return ModelFacts(context=info.context, output=info.output)


def one_model(provider: str, model: str) -> tuple[ListedModel, ...]:
    """The only model of a gateway whose flags name it."""
    name = f"{provider}/{model}"
    return (ListedModel(id=model, owner=provider, model=name, facts=_facts(name)),)
