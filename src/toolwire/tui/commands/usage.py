"""Commands about tokens: what was used, what fills the model's window, shortening it."""

from typing import TYPE_CHECKING, Any

from toolwire.app.system_prompt import notes_in_use
from toolwire.compaction.tokens import of_part, of_text, of_tools
from toolwire.context.mentions import BEGINS
from toolwire.messages import Message, Text, ToolCall, ToolResult
from toolwire.request import ModelRequest, ToolSpec
from toolwire.terminal_text import one_line

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_BAR = 30
_MOST_BREAKS = 5


async def usage(app: "TerminalApp", argument: str) -> None:
    """Shows tokens, cost and time so far: per model and per tool."""
    del argument
    for line in usage_lines(app.statistics()):
        app.say(line)


def usage_lines(body: dict[str, Any]) -> list[str]:
    """The statistics as lines."""
    rows: list[tuple[str, ...]] = []
    for name, model in body["models"].items():
        tokens, api = model["tokens"], model["api"]
        cost = "no price" if model["cost"] is None else f"${model['cost']:.4f}"
        share = _share(tokens["cached"], tokens["prompt"])
        rows.append((
            name, f"{api['totalRequests']} requests", f"{tokens['prompt']:,} in",
            f"{share} cached", f"{tokens['total'] - tokens['prompt']:,} out", cost,
            f"{api['totalLatencyMs'] / 1000:.1f} s",
        ))  # fmt: skip
    calls: list[tuple[str, ...]] = []
    for name, tool in body["tools"]["byName"].items():
        failed = f"{tool['fail']} failed" if tool["fail"] else ""
        calls.append((name, f"{tool['count']} calls", f"{tool['durationMs'] / 1000:.1f} s", failed))
    files = body["files"]
    lines = [*_table(rows), *_table(calls)]
    if files["totalLinesAdded"] or files["totalLinesRemoved"]:
        lines.append(f"lines: +{files['totalLinesAdded']} −{files['totalLinesRemoved']}")
    return lines or ["nothing was used yet"]


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _share(part: int, whole: int) -> str:
    return f"{part * 100 // whole}%" if whole else "0%"


async def compact(app: "TerminalApp", argument: str) -> None:
    """Shortens the conversation now; words say what the summary keeps."""
    if await app.session.compress(argument) is None:
        app.say("nothing to shorten", "dim")


async def context(app: "TerminalApp", argument: str) -> None:
    """Shows what fills the model's window, what the cache reused, and why a prefix broke."""
    del argument
    session = app.session
    info = session.opened.info
    window = (info.context or 0) if info is not None else 0
    notes = of_text(notes_in_use(app.start.settings, session.toolbox).text)
    parts = _parts(session.request, session.toolbox.specs(), notes)
    total = sum(parts.values())
    for name, tokens in parts.items():
        bar = "█" * (tokens * _BAR // max(total, 1))
        app.say(f"{name:<16} {tokens:>9,}  {_share(tokens, total):>4}  {bar}".rstrip())
    of = f", {_share(total, window)} of {window:,}" if window else ""
    app.say(f"about {total:,} tokens{of}; the last request had {app.drawing.state.tokens:,}")
    share = app.start.settings.compression.threshold
    if window and share:
        app.say(f"it is shortened from {int(window * share):,} tokens on", "dim")
    cache = app.statistics()["cache"]
    app.say(
        f"cache: {cache['cached']:,} of {cache['input']:,} input tokens were reused "
        f"({_share(cache['cached'], cache['input'])})"
    )
    for words in cache["changes"][-_MOST_BREAKS:]:
        app.say(f"  {one_line(words)}", "dim")


def _parts(request: ModelRequest, tools: tuple[ToolSpec, ...], notes: int) -> dict[str, int]:
    """Estimated tokens by what they are."""
    system = sum(map(of_part, request.system))
    found = {
        "system prompt": max(system - notes, 0),
        "notes": min(notes, system),
        "tools": of_tools(tools),
        "your messages": 0,
        "files": 0,
        "answers": 0,
        "calls": 0,
        "results": 0,
    }
    for message in request.messages:
        _add(found, message)
    return found


def _add(found: dict[str, int], message: Message) -> None:
    mentioned = False
    for part in message.parts:
        match part:
            case ToolCall():
                name = "calls"
            case ToolResult():
                name = "results"
            case Text(text=text) if message.role == "user":
                before, begins, _ = text.partition(BEGINS)
                name = "files" if mentioned else "your messages"
                if begins:
                    found[name] += of_text(before)
                    found["files"] += of_text(text) - of_text(before)
                    mentioned = True
                    continue
            case _:
                name = "your messages" if message.role == "user" else "answers"
        found[name] += of_part(part)
