"""A chat request, written."""

from toolwire.dialects import Encoded
from toolwire.dialects.kept import form, restore
from toolwire.dialects.losses import Losses
from toolwire.dialects.openai_chat.encode_messages import encode_messages
from toolwire.dialects.openai_chat.leftovers import scatter
from toolwire.dialects.openai_chat.wire import NAME
from toolwire.dialects.openai_chat.write_tools import write_tools
from toolwire.dialects.openai_chat.writing import Writing
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.thinking import effort_of
from toolwire.request import (
    Effort,
    HttpRequest,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
)
from toolwire.wire.json_access import encode
from toolwire.wire.names import ToolNames

_PATH = "/chat/completions"


def encode_request(request: ModelRequest, quirks: Quirks) -> Encoded:
    """The request as it goes over the wire, and what it could not carry."""
    verbatim = request.kept is not None and request.kept.dialect == NAME
    names = ToolNames() if verbatim else ToolNames(request.tools, quirks.name_rule)
    losses = Losses()
    losses.foreign(request, NAME)
    to = Writing(quirks, names, losses, verbatim)
    body: JsonObject = {} if verbatim and not request.model else {"model": request.model}
    body["messages"] = encode_messages(request, to)
    write_tools(body, request, to)
    if verbatim:
        _verbatim_settings(body, request)
    else:
        _settings(body, request, to)
        # What stays the same comes first, for caches of requests as they are sent.
        body["messages"] = body.pop("messages")
    if request.previous_response_id:
        losses.add("previous_response_id", "earlier answer", "chat keeps no conversation")
    body = restore(body, request.kept, NAME)
    http = HttpRequest(path=_PATH, body=encode(body))
    return Encoded(http=http, losses=losses.done(), names=names)


def _settings(body: JsonObject, request: ModelRequest, to: Writing) -> None:
    quirks = to.quirks
    if request.max_output_tokens is not None:
        body[quirks.max_tokens_field] = request.max_output_tokens
    for name in ("temperature", "top_p", "frequency_penalty", "presence_penalty"):
        value = getattr(request, name)
        if value is None:
            continue
        if quirks.sampling:
            body[name] = value
        else:
            to.losses.add(name, name, "the model rejects sampling settings")
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    if request.top_k is not None:
        to.losses.add("top_k", "top_k", "chat has no such member")
    _reasoning(body, request.reasoning, to)
    if request.output is not None and request.output.kind != "text":
        body["response_format"] = _output(request.output, to.verbatim)
    if request.stream is not None:
        body["stream"] = request.stream
        if request.stream and quirks.stream_usage:
            body["stream_options"] = {"include_usage": True}


def _reasoning(body: JsonObject, wanted: Reasoning | None, to: Writing) -> None:
    if wanted is None:
        return
    effort = wanted.effort
    if effort is None and wanted.enabled is False:
        effort = Effort.NONE
    if effort is None and wanted.budget is not None and wanted.budget >= 0:
        effort = effort_of(wanted.budget)
    if wanted.budget is not None:
        why = f"sent as effort {effort}" if effort else "left to the model"
        to.losses.add("reasoning.budget", "thinking budget", why)
    if effort is not None:
        body["reasoning_effort"] = effort.value
    if wanted.enabled is not None:
        why = f"told by effort {effort}" if effort else "chat only has an effort"
        to.losses.add("reasoning.enabled", "thinking on or off", why)
    if wanted.visible is not None:
        to.losses.add("reasoning.visible", "visible thoughts", "the server decides")


def _output(output: OutputFormat, verbatim: bool) -> JsonObject:
    if output.kind == "text":
        return {"type": "text"}
    if output.kind == "json":
        return {"type": "json_object"}
    schema: JsonObject = dict(scatter(output.kept).outer)
    if output.name or not verbatim:
        schema["name"] = output.name or "output"
    if output.schema is not None:
        schema["schema"] = output.schema
    if output.strict is not None:
        schema["strict"] = output.strict
    return {"type": "json_schema", "json_schema": schema}


def _verbatim_settings(body: JsonObject, request: ModelRequest) -> None:
    words = form(request.kept, NAME).split()
    if request.max_output_tokens is not None:
        field = "max_completion_tokens" if "max_completion_tokens" in words else "max_tokens"
        body[field] = request.max_output_tokens
    if request.seed is not None:
        body["random_seed" if "random_seed" in words else "seed"] = request.seed
    if request.stop:
        body["stop"] = request.stop[0] if "stop" in words else list(request.stop)
    for name in (
        "temperature",
        "top_p",
        "top_k",
        "frequency_penalty",
        "presence_penalty",
        "stream",
    ):
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    if request.output is not None:
        body["response_format"] = _output(request.output, True)
    if request.reasoning is not None:
        _verbatim_reasoning(body, request.reasoning)


def _verbatim_reasoning(body: JsonObject, wanted: Reasoning) -> None:
    left = scatter(wanted.kept)
    if "thinking" in left.words:
        state = "enabled" if wanted.enabled else "disabled"
        body["thinking"] = {**left.outer, "type": state}
    elif "enable_thinking" in left.words:
        body["enable_thinking"] = wanted.enabled
    elif "reasoning" in left.words:
        asked = {
            "effort": wanted.effort,
            "max_tokens": wanted.budget,
            "enabled": wanted.enabled,
            "exclude": None if wanted.visible is None else not wanted.visible,
        }
        said = {key: value for key, value in asked.items() if value is not None}
        body["reasoning"] = left.outer | said
    elif wanted.effort is not None:
        body["reasoning_effort"] = wanted.effort.value
