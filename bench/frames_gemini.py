"""Gemini's streamed answers, written as its server writes them: carriage returns and all."""

import json
from typing import Any


def text(words: list[str]) -> list[bytes]:
    """A text answer, one word per chunk."""
    frames = [_chunk({"text": word}, at) for at, word in enumerate(words)]
    return [*frames, _chunk({"text": ""}, len(words), finish=True)]


def tools(calls: list[list[str]]) -> list[bytes]:
    """Calls, each whole in a chunk of its own."""
    frames: list[bytes] = []
    for at, pieces in enumerate(calls):
        call = {"name": "write_file", "args": json.loads("".join(pieces))}
        frames.append(_chunk({"functionCall": call}, at))
    return [*frames, _chunk({"text": ""}, len(calls), finish=True)]


def _chunk(part: dict[str, Any], tokens: int, *, finish: bool = False) -> bytes:
    candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}}
    if finish:
        candidate["finishReason"] = "STOP"
    chunk = {
        "candidates": [{**candidate, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 321,
            "candidatesTokenCount": tokens,
            "totalTokenCount": 321 + tokens,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 321}],
        },
        "modelVersion": "gemini-2.5-flash",
        "responseId": "kLmNoP123456",
    }
    data = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
    return f"data: {data}\r\n\r\n".encode()
