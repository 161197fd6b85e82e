"""A message → a whole response object, for clients that do not stream."""

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from toolwire.dialects.openai_responses.answers import response_body
from toolwire.dialects.openai_responses.items import (
    answered_call,
    image_item,
    message_groups,
    message_item,
    reasoning_item,
)
from toolwire.dialects.openai_responses.stream_writing import response_id
from toolwire.dialects.openai_responses.wire import NAME
from toolwire.events import Finished
from toolwire.messages import (
    Media,
    MediaKind,
    Message,
    Part,
    Refusal,
    ServerBlock,
    Thinking,
    ToolCall,
)
from toolwire.wire.json_access import encode


def whole_answer(
    message: Message, finished: Finished, model: str, new_id: Callable[[], str]
) -> bytes:
    """A response object with everything in it."""
    name = response_id(new_id)
    output: list[object] = []
    refused = False
    for group in message_groups(message.parts):
        tail = f"{name.removeprefix('resp_')}_{len(output)}"
        if isinstance(group, list):
            refused = refused or any(isinstance(part, Refusal) for part in group)
            item = message_item(group)
            output.append({"id": f"msg_{tail}", **item})
            continue
        found = _whole_item(group, tail)
        if found is not None:
            output.append(found)
    end = replace(finished, model=finished.model or model)
    body = response_body(finished.response_id or name, end.model, output, end, refused=refused)
    return encode(body)


def _whole_item(part: Part, tail: str) -> object | None:
    match part:
        case Thinking():
            return {"id": f"rs_{tail}", **reasoning_item(part)}
        case ToolCall():
            return {"id": f"fc_{tail}", **answered_call(part)}
        case Media() if part.kind is MediaKind.IMAGE and part.base64:
            return {"id": f"ig_{tail}", **image_item(part)}
        case ServerBlock() if part.origin.dialect == NAME:
            return msgspec.Raw(part.data.encode())
        case _:
            return None
