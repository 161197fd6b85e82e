"""Decoded answers, reduced to what the tests compare."""

import json
from typing import Any, NamedTuple

from toolwire.cli.decode import described
from toolwire.codec import read_answer

Json = dict[str, Any]
A, B = '{"p":"a"}', '{"p":"b"}'
IS_A, IS_B = {"p": "a"}, {"p": "b"}


class Summary(NamedTuple):
    """Calls are (id, name, arguments or raw text, status); an id we made is "made"."""

    text: str = ""
    calls: tuple[tuple[str, str, Any, str], ...] = ()
    stop: str | None = "tool_calls"
    error: str | None = None
    reasoning: str = ""


def called(*calls: tuple[str, str, Any], text: str = "") -> Summary:
    """Whole calls, and the end that belongs to them."""
    return Summary(text, tuple((*call, "complete") for call in calls))


def sse(*frames: Json | str, line: str = "\n") -> bytes:
    texts = [frame if isinstance(frame, str) else json.dumps(frame) for frame in frames]
    return "".join(f"data: {text}{line}{line}" for text in texts).encode()


def read(dialect: str, body: bytes | Json, *, whole: bool = False) -> tuple[Summary, Json]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    numbers = iter(range(1, 100))
    said = described(
        read_answer(dialect, data, whole=whole, make_id=lambda: f"made_{next(numbers)}")
    )
    assert len({call["id"] for call in said["tool_calls"]}) == len(said["tool_calls"])
    calls = tuple(
        (
            "made" if call["id"].startswith("made_") else call["id"],
            call["name"],
            call["raw"] if call["arguments"] is None else call["arguments"],
            call["status"],
        )
        for call in said["tool_calls"]
    )
    kind = said["error"]["kind"] if said["error"] else None
    return Summary(said["text"], calls, said["stop_reason"], kind, said["reasoning"]), said
