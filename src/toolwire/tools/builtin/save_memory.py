"""`save_memory`: a fact stored for every later session."""

import asyncio
import re
from pathlib import Path
from typing import Annotated

import msgspec

from toolwire.request import JsonObject
from toolwire.storage.private_files import replace_file
from toolwire.tools.spec import Effect, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool, words
from toolwire.wire.json_access import dump

HEADER = "## Gemini Added Memories"
"""In gemini-cli's own file, if the setting names it."""
OWN_HEADER = "## Saved notes"
_FILE = Path(".gemini") / "GEMINI.md"
"""gemini-cli's, for a context without the setting; sessions of toolwire always have it."""


class SaveMemory(msgspec.Struct, frozen=True):
    """Arguments of `save_memory`."""

    fact: Annotated[
        str,
        msgspec.Meta(
            description="The specific fact or piece of information to remember. "
            "Should be a clear, self-contained statement."
        ),
    ]


def memory_file(context: ToolContext) -> Path:
    """The file with the facts: the user's own notes, or what the setting `memory_file` names."""
    return context.workspace.home / (context.settings.memory_file or _FILE)


def _check(arguments: JsonObject, context: ToolContext) -> str:
    del context
    if not str(arguments.get("fact", "")).strip():
        return 'Parameter "fact" must be a non-empty string.'
    return ""


# The model does not choose the file, so there is no path for the policy to rule on.
@tool("save_memory", Effect.OTHER, words("save_memory"), title="SaveMemory", check=_check)
async def save_memory(args: SaveMemory, context: ToolContext) -> ToolOutput:
    """Write the fact below its heading."""
    try:
        await asyncio.to_thread(_store, memory_file(context), args.fact)
    except OSError as error:
        answer = {"success": False, "error": f"Failed to save memory. Detail: {error.strerror}"}
        raise ToolFailed(dump(answer), type="memory_tool_execution_error") from error
    message = f'Okay, I\'ve remembered that: "{args.fact}"'
    return ToolOutput(text=dump({"success": True, "message": message}), display=message)


def _store(file: Path, fact: str) -> None:
    file.resolve().parent.mkdir(parents=True, exist_ok=True)
    old, mode = (file.read_bytes(), file.stat().st_mode) if file.exists() else (b"", None)
    header = HEADER if file.name == "GEMINI.md" else OWN_HEADER
    new = with_fact(old.decode("utf-8", "surrogateescape"), fact, header)
    replace_file(file, new.encode("utf-8", "surrogateescape"), mode)


def with_fact(text: str, fact: str, header: str = HEADER) -> str:
    """The file's text with one more fact at the end of the section with this heading."""
    bare = re.sub(r"^-[-\s]*", "", fact.strip()).strip()
    line = f"- {bare}"
    start = text.find(header)
    if start < 0:
        gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{header}\n{line}\n"
    body = start + len(header)
    end = text.find("\n## ", body)
    end = len(text) if end < 0 else end
    section = f"{text[body:end].rstrip()}\n{line}"
    return f"{text[:body].rstrip()}{section}\n{text[end:]}".rstrip() + "\n"


TOOL = save_memory
