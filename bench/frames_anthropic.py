"""Anthropic messages, written as its server writes them."""

import json
from typing import Any


def text(words: list[str]) -> list[bytes]:
    """A text answer, one word per event."""
    block = {"type": "text", "text": ""}
    frames = [_start(), _frame("content_block_start", index=0, content_block=block), _frame("ping")]
    for word in words:
        delta = {"type": "text_delta", "text": word}
        frames.append(_frame("content_block_delta", index=0, delta=delta))
    return [*frames, _frame("content_block_stop", index=0), *_end("end_turn")]


def tools(calls: list[list[str]]) -> list[bytes]:
    """Calls one after another, one piece of arguments per event."""
    frames = [_start()]
    for index, pieces in enumerate(calls):
        block = {"type": "tool_use", "id": f"toolu_01Ab{index:04d}", "name": "write_file"}
        frames.append(
            _frame("content_block_start", index=index, content_block={**block, "input": {}})
        )
        for piece in pieces:
            delta = {"type": "input_json_delta", "partial_json": piece}
            frames.append(_frame("content_block_delta", index=index, delta=delta))
        frames.append(_frame("content_block_stop", index=index))
    return [*frames, *_end("tool_use")]


def _start() -> bytes:
    usage = {
        "input_tokens": 321,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 128,
        "output_tokens": 1,
        "service_tier": "standard",
    }
    message = {
        "id": "msg_01CdEfGhIjKlMnOpQrStUvWx",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-20250514",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return _frame("message_start", message=message)


def _end(reason: str) -> list[bytes]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        _frame("message_delta", delta=delta, usage={"output_tokens": 2000}),
        _frame("message_stop"),
    ]


def _frame(kind: str, **members: Any) -> bytes:
    data = json.dumps({"type": kind, **members}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()
