"""A request ⇄ its body: settings here, the conversation and the tools in their own files."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from toolwire.dialects import Encoded
from toolwire.dialects.kept import shared
from toolwire.dialects.losses import Losses
from toolwire.dialects.openai_responses.conversation import decode_input, encode_input
from toolwire.dialects.openai_responses.remembering import remember, replay, words
from toolwire.dialects.openai_responses.tools import (
    decode_choice,
    decode_tools,
    encode_choice,
    encode_tools,
)
from toolwire.dialects.openai_responses.wire import NAME, NAMES
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.thinking import effort_of
from toolwire.errors import BadInput
from toolwire.messages import Kept, Message, Text
from toolwire.request import Effort, HttpRequest, ModelRequest, OutputFormat, Reasoning
from toolwire.wire.json_access import JsonObject, encode, flag, integer, number, parse, text
from toolwire.wire.names import ToolNames
from toolwire.wire.surrogates import whole_characters

_members = msgspec.json.Decoder(dict[str, Raw])
_list = msgspec.json.Decoder(list[Raw])
_EFFORTS = frozenset(Effort)


def decode_request(body: bytes, model: str = "") -> ModelRequest:
    """A client's request."""
    try:
        raws = _members.decode(whole_characters(body))
        items = _elements(raws.get("input"))
        tools = _elements(raws.get("tools"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the request is no JSON object: {error}") from error
    source: JsonObject = {
        key: parse(bytes(raw), key)
        for key, raw in raws.items()
        if not (key == "input" and items is not None) and not (key == "tools" and tools)
    }
    prompt = source.get("input")
    messages = decode_input(items or ())
    if isinstance(prompt, str):
        messages = (Message(role="user", parts=(Text(prompt),)),)
    instructions = source.get("instructions")
    request = ModelRequest(
        model=text(source.get("model"), "model") or model,
        messages=messages,
        system=(Text(instructions),) if instructions and isinstance(instructions, str) else (),
        tools=decode_tools(tools or ()),
        tool_choice=decode_choice(source.get("tool_choice")),
        parallel_calls=flag(source.get("parallel_tool_calls"), "parallel_tool_calls"),
        max_output_tokens=integer(source.get("max_output_tokens"), "max_output_tokens"),
        temperature=number(source.get("temperature"), "temperature"),
        top_p=number(source.get("top_p"), "top_p"),
        reasoning=_reasoning(source.get("reasoning")),
        output=_output(source.get("text")),
        stream=flag(source.get("stream"), "stream"),
        previous_response_id=text(source.get("previous_response_id"), "previous_response_id"),
    )
    return replace(request, kept=_kept(request, source, listed=items is not None))


def _elements(raw: Raw | None) -> Sequence[Raw] | None:
    if raw is None or bytes(raw)[:1] != b"[":
        return None
    return _list.decode(raw)


def _kept(request: ModelRequest, source: JsonObject, *, listed: bool) -> Kept:
    written = _settings(request, Losses())
    form = ["request"]
    if isinstance(source.get("input"), str):
        form.append("string")
        written["input"] = source["input"]
    elif not listed:
        written["input"] = []
    if request.tool_choice is not None:
        written["tool_choice"] = source["tool_choice"]
    if request.output is not None:
        rest = {key: value for key, value in source["text"].items() if key != "format"}
        source = {key: value for key, value in source.items() if key != "text"}
        if rest:
            source["text"] = rest
        written.pop("text")
    elif source.get("text") == {}:
        form.append("text={}")
    kept = remember(source, written, form)
    return kept or Kept(dialect=NAME)


def _reasoning(value: Any) -> Reasoning | None:
    if not isinstance(value, dict):
        return None
    source = cast(JsonObject, value)
    word, summary = source.get("effort"), source.get("summary")
    effort = Effort(word) if isinstance(word, str) and word in _EFFORTS else None
    reasoning = Reasoning(
        enabled=None if effort is None else effort is not Effort.NONE,
        effort=effort,
        visible=True if summary and isinstance(summary, str) else None,
    )
    kept = remember(source, _reasoning_body(reasoning, Losses()), ["reasoning"])
    return replace(reasoning, kept=kept)


def _output(value: Any) -> OutputFormat | None:
    if not isinstance(value, dict):
        return None
    source = cast(JsonObject, value).get("format")
    match source:
        case {"type": "text"}:
            output = OutputFormat(kind="text")
        case {"type": "json_object"}:
            output = OutputFormat(kind="json")
        case {"type": "json_schema"}:
            body = cast(JsonObject, source)
            schema, name, strict = body.get("schema"), body.get("name"), body.get("strict")
            output = OutputFormat(
                kind="json_schema",
                schema=cast(JsonObject, schema) if isinstance(schema, dict) else None,
                name=name if isinstance(name, str) else "",
                strict=strict if isinstance(strict, bool) else None,
            )
        case _:
            return None
    written = _format(output)
    return replace(output, kept=remember(cast(JsonObject, source), written, ["format"]))


def encode_request(request: ModelRequest, quirks: Quirks) -> Encoded:
    """The request as it goes over the wire, and what it could not carry."""
    own = request.kept is not None and request.kept.dialect == NAME
    losses = Losses()
    losses.foreign(request, NAME)
    names = ToolNames(request.tools, quirks.name_rule or NAMES, keep_namespaces=True)
    body = _settings(request, losses)
    body["input"] = encode_input(request, names, losses, own=own)
    tools = encode_tools(request, names, losses, quirks, own=own)
    body.update(tools)
    if tools or own:
        choice = encode_choice(request, names, losses, quirks, own=own)
        if choice is not None:
            body["tool_choice"] = choice
    else:
        _report_unused(request, body, losses)
    if own:
        body = _as_it_came(request, body)
    else:
        _fit(request, body, losses, quirks)
        # What stays the same comes first, for caches of requests as they are sent.
        body["input"] = body.pop("input")
    data = encode(body)
    return Encoded(
        http=HttpRequest(path="/responses", body=data), losses=losses.done(), names=names
    )


def _report_unused(request: ModelRequest, body: JsonObject, losses: Losses) -> None:
    """What is said of tools means nothing, and is refused, where none is left."""
    choice = request.tool_choice
    if choice is not None and choice.mode == "required":
        losses.add("tool_choice", choice.mode, "no tool is left to choose from")
    if body.pop("parallel_tool_calls", None) is False:
        losses.add("parallel_calls", "one call at a time", "no tools are sent")


def _as_it_came(request: ModelRequest, body: JsonObject) -> JsonObject:
    if "string" in words(request.kept):
        body["input"] = "".join(message.text for message in request.messages)
    result = replay(body, request.kept)
    if "text" in body and result["text"] is not body["text"]:
        result["text"] = {**result["text"], **body["text"]}
    return result


def _settings(request: ModelRequest, losses: Losses) -> JsonObject:
    body: JsonObject = {"model": request.model}
    if request.system:
        body["instructions"] = "\n\n".join(part.text for part in request.system)
    for key, value in (
        ("previous_response_id", request.previous_response_id or None),
        ("max_output_tokens", request.max_output_tokens),
        ("temperature", request.temperature),
        ("top_p", request.top_p),
        ("parallel_tool_calls", request.parallel_calls),
        ("stream", request.stream),
    ):
        if value is not None:
            body[key] = value
    if request.reasoning is not None:
        reasoning = replay(_reasoning_body(request.reasoning, losses), request.reasoning.kept)
        if reasoning or words(request.reasoning.kept):
            body["reasoning"] = reasoning
    if request.output is not None:
        body["text"] = {"format": replay(_format(request.output), request.output.kept)}
    return body


def _reasoning_body(reasoning: Reasoning, losses: Losses) -> JsonObject:
    body: JsonObject = {}
    effort = reasoning.effort
    if effort is None and reasoning.enabled is False:
        effort = Effort.NONE
        losses.add("reasoning.enabled", "thinking switch", "told by effort none")
    if reasoning.budget is not None:
        if effort is None and reasoning.budget >= 0:
            effort = effort_of(reasoning.budget)
        losses.add("reasoning.budget", "thinking budget", "this format knows only effort")
    if effort is not None:
        body["effort"] = effort.value
    elif reasoning.enabled:
        losses.add("reasoning.enabled", "thinking switch", "the model decides without an effort")
    if reasoning.visible:
        body["summary"] = "auto"
    elif reasoning.visible is False:
        losses.add("reasoning.visible", "hidden thoughts", "thoughts are hidden unless asked for")
    return body


def _format(output: OutputFormat) -> JsonObject:
    match output.kind:
        case "text":
            return {"type": "text"}
        case "json":
            return {"type": "json_object"}
        case _:
            body: JsonObject = {"type": "json_schema"}
            if output.schema is not None:
                body["schema"] = output.schema
            if output.name:
                body["name"] = output.name
            if output.strict is not None:
                body["strict"] = output.strict
            return body


def _fit(request: ModelRequest, body: JsonObject, losses: Losses, quirks: Quirks) -> None:
    """What an agent wants by default, and what a vendor does not take."""
    for number_, part in enumerate(request.system):
        if part.cache is not None:
            losses.add(f"system[{number_}].cache", "cache mark", "this format caches by itself")
    for path, value in (
        ("top_k", request.top_k),
        ("frequency_penalty", request.frequency_penalty),
        ("presence_penalty", request.presence_penalty),
        ("seed", request.seed),
        ("stop", request.stop or None),
    ):
        if value is not None:
            losses.add(path, path, "this format has no such setting")
    if not quirks.sampling:
        for path in ("temperature", "top_p"):
            if body.pop(path, None) is not None:
                losses.add(path, path, "the server rejects it")
    if not quirks.parallel_flag and body.pop("parallel_tool_calls", None) is not None:
        losses.add("parallel_calls", "parallel calls", "the server does not know the setting")
    if request.output is not None and request.output.kind == "json_schema":
        shape = body["text"]["format"]
        shape.setdefault("name", "answer")
        shape.setdefault("schema", {"type": "object"})
    said = shared(request.kept, NAME)
    verbosity = said.pop("verbosity", None)
    if verbosity is not None:
        body["text"] = {**body.get("text", {}), "verbosity": verbosity}
    body |= said
    if not body.setdefault("store", quirks.store):
        body["include"] = ["reasoning.encrypted_content"]
    elif "store" not in said:
        del body["store"]
