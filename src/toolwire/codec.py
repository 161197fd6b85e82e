"""Whole answers and requests: decode a recorded answer, convert a request between formats."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from toolwire import dialects
from toolwire.acceptance import violations
from toolwire.acceptance.fit import fitted
from toolwire.acceptance.limits import demands, facts
from toolwire.collect import Collector
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import ToolwireError
from toolwire.events import Finished, Notice, Usage
from toolwire.history import repair
from toolwire.ids import new_id
from toolwire.messages import Message, Origin, ToolCall
from toolwire.providers import catalogue
from toolwire.request import HttpRequest, Loss, ModelRequest, ServerTool
from toolwire.wire.json_access import parse_object
from toolwire.wire.names import ToolNames


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded answer. `error` says where it broke; `finished` is then None."""

    message: Message
    finished: Finished | None = None
    usage: Usage | None = None
    """What the answer used, also one that broke off after the vendor reported it."""
    notices: tuple[Notice, ...] = ()
    error: ToolwireError | None = None


def read_answer(
    dialect: str,
    body: bytes | Iterable[bytes],
    *,
    whole: bool = False,
    make_id: Callable[[], str] = new_id,
) -> Answer:
    """Decodes a response body, streamed or `whole`; a bad body sets `error`."""
    codec = dialects.get(dialect)
    reading = dialects.DecodeOptions(new_id=make_id, origin=Origin(codec.family))
    chunks = (body,) if isinstance(body, bytes) else body
    collector = Collector()
    error: ToolwireError | None = None
    try:
        if whole:
            collector.add_all(codec.decode_whole(b"".join(chunks), reading))
        else:
            collector.add_all(dialects.decode_stream(codec, chunks, reading))
    except ToolwireError as broken:
        error = broken
    finished = collector.finished
    return Answer(
        message=collector.message(),
        finished=finished,
        usage=finished.usage if finished is not None else error and error.usage,
        notices=tuple(collector.notices),
        error=error,
    )


class Translated(msgspec.Struct, frozen=True, kw_only=True):
    """A converted request and its losses."""

    http: HttpRequest
    losses: tuple[Loss, ...]
    names: dict[str, str]
    """Tool names that had to change: the name sent → the tool's own."""


def translate(
    body: bytes, source: str, target: str, *, model: str = "", quirks: Quirks | None = None
) -> Translated:
    """Converts a request body; within one format only the model changes, and what the server's
    quirks require.

    Without `quirks`, those of the vendor apply whose model is named. What the vendor would still
    reject is among the losses.
    """
    codec = dialects.get(target)
    request = dialects.get(source).decode_request(body)
    if model:
        request = msgspec.structs.replace(request, model=model)
    vendor = catalogue.vendor(target, request.model)
    changes: tuple[Loss, ...] = ()
    if quirks is None:
        quirks = DEFAULT
        if vendor is not None and (source != target or model):
            quirks = catalogue.quirks_of(vendor, request.model)
            request, changes = fitted(request, facts(target, request.model))
    adapted = source != target or quirks != DEFAULT
    if adapted:
        repaired = repair(request.messages, Origin(codec.family), quirks.history or codec.history)
        request = msgspec.structs.replace(request, messages=repaired.messages)
        changes = (*changes, *repaired.changes)
    encoded = codec.encode_request(request, quirks)
    names, renamed = _renamed(request, encoded.names) if adapted else ({}, [])
    rejected = _rejected(encoded.http, target, request, vendor.name if vendor else "")
    losses = (*changes, *encoded.losses, *renamed, *rejected)
    return Translated(http=encoded.http, losses=losses, names=names)


def _rejected(http: HttpRequest, target: str, request: ModelRequest, vendor: str) -> Iterator[Loss]:
    """Yields what was put in for a required member, and what the vendor would reject."""
    body = parse_object(http.body, "request")
    if target == "anthropic-messages" and request.max_output_tokens is None:
        limit = body.get("max_tokens")
        if limit is not None:
            why = f"put in as {limit}: the format requires it and the request has none"
            yield Loss("max_tokens", "max_tokens", why)
    server = demands(vendor, request.model)
    for found in violations(target, body, request.model, demands=server):
        what = found.path.rpartition(".")[2]
        yield Loss(found.path, what, f"the vendor rejects it: {found.message}")


def _renamed(request: ModelRequest, names: ToolNames) -> tuple[dict[str, str], list[Loss]]:
    changed: dict[str, str] = {}
    losses: list[Loss] = []
    for path, name, namespace in _named(request):
        sent = names.wire_name(name, namespace)
        if sent != name and sent not in changed:
            changed[sent] = name
            losses.append(Loss(f"{path}.name", name, f'sent as "{sent}"'))
    return changed, losses


def _named(request: ModelRequest) -> Iterator[tuple[str, str, str]]:
    """Returns every tool, offered or only called, with its namespace."""
    for number, tool in enumerate(request.tools):
        if not isinstance(tool, ServerTool):
            yield f"tools[{number}]", tool.name, tool.namespace
    for number, message in enumerate(request.messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                yield f"messages[{number}].parts[{place}]", part.name, part.namespace
