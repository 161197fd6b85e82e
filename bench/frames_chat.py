"""OpenAI chat completions, written as its server writes them."""

import json
from typing import Any

_USAGE = {
    "prompt_tokens": 321,
    "completion_tokens": 2000,
    "total_tokens": 2321,
    "prompt_tokens_details": {"cached_tokens": 128, "audio_tokens": 0},
    "completion_tokens_details": {
        "reasoning_tokens": 0,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    },
}
_DONE = b"data: [DONE]\n\n"


def text(words: list[str]) -> list[bytes]:
    """A text answer, one word per chunk."""
    frames = [_chunk({"role": "assistant", "content": "", "refusal": None})]
    frames += [_chunk({"content": word}) for word in words]
    return [*frames, *_end("stop")]


def tools(calls: list[list[str]]) -> list[bytes]:
    """Calls one after another, one piece of arguments per chunk."""
    frames = [_chunk({"role": "assistant", "content": None, "refusal": None})]
    for index, pieces in enumerate(calls):
        opening = {
            "index": index,
            "id": f"call_{index:04d}AbCdEfGhIjKlMnOpQrSt",
            "type": "function",
            "function": {"name": "write_file", "arguments": ""},
        }
        frames.append(_chunk({"tool_calls": [opening]}))
        for piece in pieces:
            more = {"index": index, "function": {"arguments": piece}}
            frames.append(_chunk({"tool_calls": [more]}))
    return [*frames, *_end("tool_calls")]


def _end(reason: str) -> list[bytes]:
    return [_chunk({}, finish_reason=reason), _frame([], _USAGE), _DONE]


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _frame([choice], None)


def _frame(choices: list[dict[str, Any]], usage: dict[str, Any] | None) -> bytes:
    chunk = {
        "id": "chatcmpl-CdEfGhIjKlMnOpQrStUvWxYz01234",
        "object": "chat.completion.chunk",
        "created": 1750000000,
        "model": "gpt-4.1-2025-04-14",
        "service_tier": "default",
        "system_fingerprint": "fp_51e1070cf2",
        "choices": choices,
        "usage": usage,
        "obfuscation": "q7Lm2Z",
    }
    data = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
    return f"data: {data}\n\n".encode()
