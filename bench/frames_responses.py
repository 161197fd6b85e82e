"""OpenAI responses, written as its server writes them."""

import json
from typing import Any

_USAGE = {
    "input_tokens": 321,
    "input_tokens_details": {"cached_tokens": 128},
    "output_tokens": 2000,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2321,
}


class _Writer:
    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, kind: str, **members: Any) -> None:
        event = {"type": kind, "sequence_number": len(self.frames), **members}
        data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        self.frames.append(f"event: {kind}\ndata: {data}\n\n".encode())

    def begin(self) -> None:
        self.write("response.created", response=_response("in_progress", [], None))
        self.write("response.in_progress", response=_response("in_progress", [], None))


def text(words: list[str]) -> list[bytes]:
    """A text answer, one word per event."""
    out = _Writer()
    out.begin()
    item: dict[str, Any] = {"id": "msg_68a1b2c3d4e5f60718", "type": "message"}
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    item |= {"status": "in_progress", "content": [], "role": "assistant"}
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    out.write("response.output_item.added", output_index=0, item=item)
    out.write("response.content_part.added", **place, part=part)
    for word in words:
        out.write(
            "response.output_text.delta", **place, delta=word, logprobs=[], obfuscation="q7Lm2Z"
        )
    said = "".join(words)
    part = part | {"text": said}
    item = item | {"status": "completed", "content": [part]}
    out.write("response.output_text.done", **place, text=said, logprobs=[])
    out.write("response.content_part.done", **place, part=part)
    out.write("response.output_item.done", output_index=0, item=item)
    out.write("response.completed", response=_response("completed", [item], _USAGE))
    return out.frames


def tools(calls: list[list[str]]) -> list[bytes]:
    """Calls one after another, one piece of arguments per event."""
    out = _Writer()
    out.begin()
    items: list[dict[str, Any]] = []
    for index, pieces in enumerate(calls):
        item: dict[str, Any] = {
            "id": f"fc_68a1b2c3d4e5f60718{index}",
            "type": "function_call",
            "status": "in_progress",
            "arguments": "",
            "call_id": f"call_{index:04d}AbCdEf",
            "name": "write_file",
        }
        place = {"item_id": item["id"], "output_index": index}
        out.write("response.output_item.added", output_index=index, item=item)
        for piece in pieces:
            out.write(
                "response.function_call_arguments.delta", **place, delta=piece, obfuscation="q7Lm"
            )
        whole = "".join(pieces)
        item = item | {"status": "completed", "arguments": whole}
        out.write(
            "response.function_call_arguments.done", **place, arguments=whole, name="write_file"
        )
        out.write("response.output_item.done", output_index=index, item=item)
        items.append(item)
    out.write("response.completed", response=_response("completed", items, _USAGE))
    return out.frames


def _response(
    status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "id": "resp_68a1b2c3d4e5f607",
        "object": "response",
        "created_at": 1750000000,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": "gpt-4.1-2025-04-14",
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage,
        "user": None,
        "metadata": {},
    }
