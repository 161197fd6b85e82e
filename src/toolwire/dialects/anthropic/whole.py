"""An answer that is not streamed, on its way out."""

from collections.abc import Callable

from toolwire.dialects.anthropic.encode_blocks import call_input, text_block, thinking_block
from toolwire.dialects.anthropic.encode_stream import message_id, placeholder
from toolwire.dialects.anthropic.finish import kept_members, stop_members, usage_members
from toolwire.dialects.anthropic.wire import NAME, raw_members
from toolwire.dialects.kept import restore
from toolwire.dialects.losses import Losses
from toolwire.events import Finished
from toolwire.messages import (
    Media,
    Message,
    Part,
    Refusal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import encode


def encode_whole(
    message: Message, finished: Finished, model: str, new_id: Callable[[], str]
) -> bytes:
    """The body of a whole answer."""
    blocks = (_block(part) for part in message.parts)
    kept = kept_members(finished)
    body: JsonObject = {
        "id": finished.response_id or message_id(new_id),
        "type": "message",
        "role": "assistant",
        "model": model or finished.model,
        "content": [block for block in blocks if block is not None],
        **stop_members(finished),
        **kept,
        "usage": {**kept.get("usage", {}), **usage_members(finished)},
    }
    return encode(body)


def _block(part: Part) -> JsonObject | None:
    unheard = Losses()
    match part:
        case Text():
            return text_block(part, "", unheard) if part.text or part.citations else None
        case Refusal():
            return {"type": "text", "text": part.text} if part.text else None
        case Thinking():
            block = thinking_block(part)
            if block is None and part.text:
                # Made elsewhere: shown to the client, and never accepted back.
                block = {"type": "thinking", "thinking": part.text, "signature": ""}
            return restore(block, part.kept, NAME) if block else None
        case ToolCall():
            return _call(part, unheard)
        case Media():
            return {"type": "text", "text": placeholder(part)}
        case ServerBlock():
            return raw_members(part.data) if part.origin.dialect == NAME else None
        case ToolResult():
            return None


def _call(call: ToolCall, losses: Losses) -> JsonObject:
    block: JsonObject = {
        "type": "tool_use",
        "id": call.id,
        "name": f"{call.namespace}__{call.name}" if call.namespace else call.name,
        "input": call_input(call, "", losses),
    }
    return restore(block, call.kept, NAME)
