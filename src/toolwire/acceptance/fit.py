"""Settings that a model is known to reject, left out of a request before it is encoded."""

import msgspec

from toolwire.acceptance.limits import Facts
from toolwire.messages import Media, Message, ToolResult
from toolwire.request import Loss, ModelRequest, ServerTool

_NO_REASONING = "the model does not reason"
_REFUSED = (
    ("stop", "stop"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
)
"""Fields, and the members of the body that the model's server rejects."""


def fitted(request: ModelRequest, facts: Facts) -> tuple[ModelRequest, tuple[Loss, ...]]:
    """Returns the request as the model takes it, and what was left out or lowered."""
    if not facts.refused and not facts.output and facts.thinking is not False:
        return request, ()
    losses: list[Loss] = []
    changes: dict[str, object] = {}
    most = request.max_output_tokens
    if facts.output and most is not None and most > facts.output:
        changes["max_output_tokens"] = facts.output
        why = f"lowered to {facts.output}, the most that the model writes"
        losses.append(Loss("max_output_tokens", f"limit of {most} tokens", why))
    reasoning = request.reasoning
    if facts.thinking is False and reasoning is not None:
        changes["reasoning"] = None
        if reasoning.enabled is not False and reasoning.effort != "none":
            losses.append(Loss("reasoning", "reasoning", _NO_REASONING))
    for field, member in _REFUSED:
        if member in facts.refused and getattr(request, field):
            changes[field] = () if field == "stop" else None
            losses.append(Loss(field, field, "the model rejects it"))
    if "temperature+top_p" in facts.refused and None not in (request.temperature, request.top_p):
        changes["top_p"] = None
        losses.append(Loss("top_p", "top_p", "the model takes it only without temperature"))
    if "tools+json" in facts.refused and _is_json(request) and _has_functions(request):
        changes["output"] = None
        losses.append(Loss("output", "JSON output", "the model takes it only without functions"))
    if "media" in facts.refused and request.source.dialect:
        # Values that are not the decoded ones are encoded anew, with media beside the response.
        messages = tuple(_renewed(message) for message in request.messages)
        if any(new is not old for new, old in zip(messages, request.messages, strict=True)):
            changes["messages"] = messages
    if not changes:
        return request, ()
    return msgspec.structs.replace(request, **changes), tuple(losses)


def _renewed(message: Message) -> Message:
    """A message equal to this one, but another value, if it has media in a result."""
    if not any(isinstance(part, ToolResult) and _has_media(part) for part in message.parts):
        return message
    parts = (
        msgspec.structs.replace(part) if isinstance(part, ToolResult) else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=tuple(parts))


def _has_media(result: ToolResult) -> bool:
    return any(isinstance(part, Media) for part in result.parts)


def _is_json(request: ModelRequest) -> bool:
    return request.output is not None and request.output.kind != "text"


def _has_functions(request: ModelRequest) -> bool:
    return any(not isinstance(tool, ServerTool) for tool in request.tools)
