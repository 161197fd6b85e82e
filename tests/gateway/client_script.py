"""A scripted model for real command-line clients, in the words of each client's own tools."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from toolwire.errors import BadInput
from toolwire.messages import CallKind
from toolwire.request import AnyTool, FreeformTool, ModelRequest, ServerTool
from toolwire.simulator import Call, Fault, Question, Reply, Think, refused, reply

SCENARIOS = ("one-call", "parallel", "signed", "limited", "cut", "mcp", "patch", "unknown")
PROMPT = "Read the notes and tell me what they say."
ANSWER = "All is read, and the answer is 42."
MISSING = "The notes did not arrive."
NOTES = {"alpha.txt": "alpha holds 1701", "beta.txt": "beta holds 2049"}
PATCHED = "made.txt"
_PATCH = f"*** Begin Patch\n*** Add File: {PATCHED}\n+hello\n*** End Patch\n"
SECRET_TOOL = "read_secret"
SECRET = "the secret is 31337"


class ToolUse(msgspec.Struct, frozen=True):
    """How a client reads a file: its tool, and the arguments for a path."""

    name: str
    arguments: Callable[[Path], dict[str, Any]]

    def call(self, path: Path) -> Call:
        """Returns the call that reads the file."""
        return Call.of(self.name, **self.arguments(path))


class ClientScript:
    """One per run."""

    def __init__(self, scenario: str, tool: ToolUse, folder: Path) -> None:
        self._scenario = scenario
        self._tool = tool
        self._folder = folder
        self._broken = False

    def __call__(self, question: Question) -> Reply:
        request = question.request
        if not self.is_main(request):
            # A title, a summary, a check of the connection.
            return reply("Notes")
        if not self._broken and self._scenario in ("limited", "cut"):
            self._broken = True
            return self._first_fault(question)
        pieces = self._pieces(request)
        if not isinstance(pieces[0], Think):
            # Anthropic accepts no call without it where the client turned thinking on.
            pieces = (Think("Hm."), *pieces)
        return reply(*pieces, delta=8)

    def is_main(self, request: ModelRequest) -> bool:
        """Returns whether the request is one of the conversation itself."""
        return any(_name(tool) == self._tool.name for tool in request.tools)

    def _first_fault(self, question: Question) -> Reply:
        if self._scenario == "limited":
            return Reply(fault=refused(429, retry_after="0.1"))
        fault = Fault(cut_events=12) if question.dialect != "gemini" else Fault(cut_bytes=600)
        pieces = (Think("Hm."), "Let me look at the notes.", self._read("alpha.txt"))
        return reply(*pieces, delta=3, fault=fault)

    def _pieces(self, request: ModelRequest) -> tuple[str | Think | Call, ...]:
        results = [part.text for message in request.messages for part in message.results]
        match self._scenario, len(results):
            case "parallel", 0:
                return ("Let me look.", self._read("alpha.txt"), self._read("beta.txt"))
            case "signed", 0:
                return (Think("First alpha."), self._read("alpha.txt"))
            case "signed", 1:
                return (Think("Then beta."), self._read("beta.txt"))
            case "signed", _:
                return (Think("That is all."), self._verdict(results, *NOTES.values()))
            case "parallel", _:
                return (self._verdict(results, *NOTES.values()),)
            case "mcp", 0:
                return (_secret_call(request),)
            case "mcp", _:
                return (self._verdict(results, SECRET),)
            case "patch", 0:
                return (_patch_call(request),)
            case "patch", _:
                made = (self._folder / PATCHED).is_file()
                return (ANSWER if made else MISSING,)
            case _, 0:
                return ("Let me look.", self._read("alpha.txt"))
            case _:
                return (self._verdict(results, NOTES["alpha.txt"]),)

    def _read(self, name: str) -> Call:
        return self._tool.call(self._folder / name)

    def _verdict(self, results: list[str], *contents: str) -> str:
        there = all(any(text in result for result in results) for text in contents)
        return ANSWER if there else MISSING


def _name(tool: AnyTool) -> str:
    return "" if isinstance(tool, ServerTool) else tool.name


def _secret_call(request: ModelRequest) -> Call:
    for tool in request.tools:
        if not isinstance(tool, ServerTool) and tool.name.endswith(SECRET_TOOL):
            return Call(name=tool.name, namespace=tool.namespace)
    raise BadInput(f"no MCP tool among {[_name(tool) for tool in request.tools]}")


def _patch_call(request: ModelRequest) -> Call:
    for tool in request.tools:
        if _name(tool) != "apply_patch":
            continue
        if isinstance(tool, FreeformTool):
            return Call(name="apply_patch", arguments=_PATCH, kind=CallKind.FREEFORM)
        assert not isinstance(tool, ServerTool)
        (member,) = tool.parameters["properties"]
        return Call.of("apply_patch", **{member: _PATCH})
    raise BadInput(f"no apply_patch among {[_name(tool) for tool in request.tools]}")
