"""Calls as an editor shows them: title, kind, locations, contents."""

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

import msgspec

from toolwire.agent.events import ToolFinished
from toolwire.errors import ToolwireError
from toolwire.messages import Media, MediaKind, Outcome, Text, ToolCall
from toolwire.request import JsonObject
from toolwire.tools.files.paths import shown
from toolwire.tools.proposals import DiffStat, Proposal
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Tool, ToolContext
from toolwire.wire.repair import parse_arguments

SHELL = "run_shell_command"
PLAN = "todo"
_KINDS = {
    "read_file": "read",
    "read_many_files": "read",
    "list_directory": "read",
    "glob": "search",
    "search_file_content": "search",
    "replace": "edit",
    "write_file": "edit",
    "apply_patch": "edit",
    SHELL: "execute",
    "background": "execute",
    "web_fetch": "fetch",
    "google_web_search": "fetch",
    "activate_skill": "think",
    "skill": "think",
}
_LONGEST_TITLE = 200
_MOST_TEXT = 100_000
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)", re.MULTILINE)
_EXIT = re.compile(r"^Exit Code: (\d+)$", re.MULTILINE)
_SIGNAL = re.compile(r"^Signal: (\w+)$", re.MULTILINE)


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """A call as the protocol names its parts."""

    title: str
    kind: str
    input: JsonObject
    locations: tuple[JsonObject, ...] = ()
    paths: tuple[Path, ...] = ()


def describe(call: ToolCall, registry: Registry, context: ToolContext) -> Described:
    """The call's title, kind and locations; also for one that cannot run."""
    arguments = parse_arguments(call.arguments).value
    given = {"arguments": call.arguments} if arguments is None else arguments
    tool = registry.get(call.name)
    paths = _touched(tool, given, context)
    return Described(
        title=_title(call.name, tool, given, paths, context),
        kind=_kind(call.name, tool),
        input=given,
        locations=tuple(_location(path, given) for path in paths),
        paths=paths,
    )


def _kind(name: str, tool: Tool | None) -> str:
    if tool is not None and tool.delegates:
        return "think"
    return _KINDS.get(tool.name if tool is not None and not tool.server else name, "other")


def _touched(tool: Tool | None, given: JsonObject, context: ToolContext) -> tuple[Path, ...]:
    if tool is None or tool.name == SHELL:
        return ()
    try:
        return tool.touches(given, context)
    except (ToolwireError, KeyError, TypeError, ValueError, AttributeError):
        # The call is not valid: the scheduler says why.
        return ()


def _title(
    name: str, tool: Tool | None, given: JsonObject, paths: tuple[Path, ...], context: ToolContext
) -> str:
    command = given.get("command")
    if name == SHELL and isinstance(command, str) and command.strip():
        return _cut(command.strip())
    head = tool.title or tool.name if tool is not None else name
    if paths:
        named = ", ".join(shown(path, context.workspace) for path in paths[:3])
        return _cut(f"{head} {named}{', …' if len(paths) > 3 else ''}")
    first = next((one for one in given.values() if isinstance(one, str) and one.strip()), "")
    return _cut(f"{head} {' '.join(first.split())}".strip())


def _cut(title: str) -> str:
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"


def _location(path: Path, given: JsonObject) -> JsonObject:
    offset = given.get("offset")
    if isinstance(offset, int | float) and not isinstance(offset, bool) and offset >= 0:
        return {"path": str(path), "line": int(offset) + 1}
    return {"path": str(path)}


def text_block(text: str) -> JsonObject:
    """Text as a content block."""
    return {"type": "text", "text": text}


def media_block(media: Media) -> JsonObject:
    """A picture or a recording as a content block; other media as the resource that it is."""
    if media.kind is MediaKind.IMAGE and media.base64:
        return {"type": "image", "mimeType": media.mime, "data": media.base64}
    if media.kind is MediaKind.AUDIO and media.base64:
        return {"type": "audio", "mimeType": media.mime, "data": media.base64}
    uri = media.url or f"attachment:{quote(media.name or media.kind)}"
    if media.base64:
        resource = {"uri": uri, "mimeType": media.mime, "blob": media.base64}
        return {"type": "resource", "resource": resource}
    return text_block(media.placeholder)


def content(block: JsonObject) -> JsonObject:
    """A block as the content of a call."""
    return {"type": "content", "content": block}


def diffs(proposals: Iterable[Proposal]) -> list[JsonObject]:
    """One diff for each file of an edit."""
    return [
        {
            "type": "diff",
            "path": str(one.path),
            "oldText": None if one.new_file else one.before,
            "newText": one.after,
        }
        for one in proposals
    ]


def stored_diffs(finished: ToolFinished, paths: tuple[Path, ...]) -> list[JsonObject]:
    """The diff of an edit of the past, from its arguments: what it replaced, or wrote."""
    given = parse_arguments(finished.arguments).value or {}
    old, new = given.get("old_string"), given.get("new_string", given.get("content"))
    if not paths or not isinstance(new, str):
        return []
    before = old if isinstance(old, str) and old else None
    return [{"type": "diff", "path": str(paths[0]), "oldText": before, "newText": new}]


def result_content(finished: ToolFinished, edited: list[JsonObject]) -> list[JsonObject]:
    """The contents of a call that has ended: diffs, pictures, or its text."""
    if finished.success and edited:
        return edited
    media = [part for part in (*finished.result.parts, *finished.beside) if isinstance(part, Media)]
    words = finished.display or finished.result.text
    blocks = [text_block(clipped(words))] if words.strip() else []
    if finished.success and finished.diff and not edited:
        blocks = [text_block(f"```diff\n{clipped(finished.diff)}\n```")]
    return [content(block) for block in (*blocks, *map(media_block, media))]


def raw_output(finished: ToolFinished) -> JsonObject:
    """The result as the model reads it."""
    texts = [part.text for part in finished.result.parts if isinstance(part, Text)]
    words = clipped("\n".join(texts))
    return {"output": words} if finished.success else {"error": words}


def clipped(text: str) -> str:
    """The text, or its ends if an editor would suffer from it."""
    if len(text) <= _MOST_TEXT:
        return text
    half = _MOST_TEXT // 2
    return f"{text[:half]}\n… {len(text) - _MOST_TEXT} characters left out …\n{text[-half:]}"


def changed_locations(finished: ToolFinished, paths: tuple[Path, ...]) -> list[JsonObject]:
    """Where an edit changed its only file first; empty if that is not known."""
    found = _HUNK.search(finished.diff)
    if not finished.success or found is None or len(paths) != 1:
        return []
    line = max(int(found[1]), 1)
    for each in finished.diff[found.end() :].split("\n")[1:]:
        if not each.startswith(" "):
            break
        line += 1
    return [{"path": str(paths[0]), "line": line}]


def exit_of(finished: ToolFinished) -> JsonObject:
    """The exit code and the signal of a command, as far as they are known."""
    facts = finished.result.text[-2000:]
    code, signal = _EXIT.search(facts), _SIGNAL.search(facts)
    ended = finished.outcome in (Outcome.DONE, Outcome.FAILED)
    return {
        "exit_code": int(code[1]) if ended and code else None,
        "signal": signal[1] if ended and signal else None if ended else "cancelled",
    }


def stat_meta(stat: DiffStat | None) -> JsonObject:
    """The line counts of an edit, the model's and the user's apart."""
    return {} if stat is None else {"toolwire/stat": msgspec.to_builtins(stat)}
