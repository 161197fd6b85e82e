"""Our request as a `generateContent` body."""

from typing import NamedTuple

from toolwire.dialects.gemini.config_out import generation_config, tool_config
from toolwire.dialects.gemini.contents_out import (
    ContentsWriter,
    exact_contents,
    split_system,
    system_instruction,
)
from toolwire.dialects.gemini.parts_out import PartWriter
from toolwire.dialects.gemini.spelling import NAME, Spelled
from toolwire.dialects.gemini.tools_out import offered_tools
from toolwire.dialects.kept import own_seal
from toolwire.dialects.losses import Losses
from toolwire.dialects.quirks import Quirks
from toolwire.messages import ToolCall
from toolwire.request import JsonObject, ModelRequest
from toolwire.wire.names import NameRule, ToolNames

NAME_RULE = NameRule(63, "a-zA-Z0-9_.:-", "a-zA-Z_")
_ANY_NAME = NameRule(2**31, r"\s\S", r"\s\S")
ENVELOPE = "codeAssist."
"""Before kept members that belong to Code Assist's envelope and not to the request inside."""


class Body(NamedTuple):
    """A request body, and what is needed beside it."""

    body: JsonObject
    names: ToolNames
    losses: Losses
    envelope: Spelled


def is_own(request: ModelRequest) -> bool:
    """Whether the request came in this format, in the envelope or out of it."""
    return request.kept is not None and request.kept.dialect == NAME


def write_request(request: ModelRequest, quirks: Quirks, *, exact: bool) -> Body:
    """The body. `exact`: just what was read, adding and repairing nothing."""
    losses = Losses()
    losses.foreign(request, NAME)
    spelled = Spelled(request.kept, exact=exact)
    envelope = _envelope(spelled)
    rule = _ANY_NAME if exact else quirks.name_rule or NAME_RULE
    names = ToolNames(request.tools, rule, wrap_freeform=True)
    writer = PartWriter(
        losses,
        exact=exact,
        wire_name=lambda call: names.wire_name(call.name, call.namespace),
        sends_id=lambda call: _sends_id(call, spelled, quirks),
        media_in_results=quirks.media_in_results,
    )
    _tell_unsendable(request, losses)
    body: JsonObject = {}
    if "model" in spelled.form and exact:
        unchanged = spelled.form["model_read"] == request.model
        body["model"] = spelled.form["model"] if unchanged else request.model
    if exact:
        texts = [(f"system[{number}]", part) for number, part in enumerate(request.system)]
        if not spelled.absent("contents") or request.messages:
            body["contents"] = exact_contents(request, spelled, writer)
    else:
        texts, messages = split_system(request, losses)
        contents = ContentsWriter(writer, losses, quirks.signature_sentinel)
        body["contents"] = contents.write(messages)
    for member, value in (
        ("systemInstruction", system_instruction(texts, spelled, writer)),
        ("tools", offered_tools(request, spelled, names, quirks, losses)),
        ("toolConfig", tool_config(request, spelled, names, losses)),
        ("generationConfig", generation_config(request, spelled, quirks, losses)),
    ):
        if value is not None:
            body[member] = value
    if not exact:
        # What stays the same comes first, for caches of requests as they are sent.
        body["contents"] = body.pop("contents")
    return Body(spelled.write("", body), names, losses, envelope)


def _envelope(spelled: Spelled) -> Spelled:
    """The members of the envelope, taken out of the request's own."""
    outer = Spelled(None, exact=spelled.exact)
    outer.form = spelled.form
    for key in [key for key in spelled.fields if key.startswith(ENVELOPE)]:
        outer.fields[key] = spelled.fields.pop(key)
    return outer


def _sends_id(call: ToolCall, request: Spelled, quirks: Quirks) -> bool:
    if quirks.send_made_ids and not request.exact:
        return True
    from_here = (
        request.own
        or (call.kept is not None and call.kept.dialect == NAME)
        or bool(own_seal(call.seal, NAME))
    )
    return from_here and not call.made_id


def _tell_unsendable(request: ModelRequest, losses: Losses) -> None:
    if request.parallel_calls is False:
        losses.add("parallel_calls", "one call at a time", "Gemini has no such switch")
    if request.previous_response_id:
        losses.add("previous_response_id", "earlier answer", "Gemini remembers none")


def path_of(model: str, verb: str) -> str:
    """Where the model answers."""
    return f"/{model}:{verb}" if "/" in model else f"/models/{model}:{verb}"
