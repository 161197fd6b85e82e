"""Draws docs/session.svg from a real run of the commands: `python docs/session.py`."""

import json
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.json import JSON
from rich.text import Text

PROGRAM = str(Path(sys.executable).with_name("toolwire"))


def _chunk(delta: dict[str, object], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]})}\n\n"


def _call(key: str, path: str) -> dict[str, object]:
    function = {"name": "read", "arguments": json.dumps({"path": path})}
    return {"tool_calls": [{"index": 0, "id": key, "function": function}]}


STREAM = "".join(
    [
        _chunk({"content": "Let me look."}),
        _chunk(_call("call_a", "a.py")),
        _chunk(_call("call_b", "b.py")),
        _chunk({}, "stop"),
    ]
)
REQUEST = {
    "model": "gpt-5",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is in a.py?"},
    ],
    "seed": 7,
}
SCHEMA = {"type": "object", "properties": {"n": {"type": ["integer", "null"], "minimum": 1}}}


def _show(console: Console, shown: str, arguments: list[str], given: str, keys: list[str]) -> None:
    console.print(Text("$ ", style="bold green") + Text(shown, style="bold"))
    done = subprocess.run(  # noqa: S603 - our own program
        [PROGRAM, *arguments], input=given, capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout)
    console.print(JSON(json.dumps({key: said[key] for key in keys}), indent=1))
    console.print()


def main() -> None:
    """Run the commands and write the picture."""
    console = Console(record=True, width=92, force_terminal=True)
    _show(
        console,
        "toolwire decode openai-chat < answer.sse | jq '{text, tool_calls, stop_reason}'",
        ["decode", "openai-chat"],
        STREAM,
        ["text", "tool_calls", "stop_reason"],
    )
    _show(
        console,
        "toolwire convert --from openai-chat --to anthropic-messages < request.json",
        ["convert", "--from", "openai-chat", "--to", "anthropic-messages"],
        json.dumps(REQUEST),
        ["request", "losses"],
    )
    _show(
        console,
        "toolwire schema --to gemini < schema.json",
        ["schema", "--to", "gemini"],
        json.dumps(SCHEMA),
        ["schema", "losses"],
    )
    target = Path(__file__).with_name("session.svg")
    target.write_text(console.export_svg(title="toolwire"), encoding="utf-8")


if __name__ == "__main__":
    main()
