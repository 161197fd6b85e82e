"""Tool style of small models: shortened requests, and short calls translated to real ones."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from pkgutil import get_data
from types import MappingProxyType
from typing import cast

import msgspec

from toolwire.embedded.small.past import KindQuestion, Past, RequestKind, likely
from toolwire.embedded.small.tools import (
    MOST_CHOICES,
    TOOLS,
    KnownFiles,
    Refused,
    refusal,
    shown_tools,
    to_real,
    with_file,
    with_lines,
)
from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import Message, Text
from toolwire.model import Model, reading
from toolwire.prompted import json as json_style
from toolwire.request import JsonObject, ModelRequest, ToolChoice, ToolSpec
from toolwire.tools.files.paths import locate, open_file, real
from toolwire.tools.files.protection import Protection
from toolwire.tools.search.ignore import NEVER_SEARCHED, rules_for
from toolwire.tools.search.walk import breadth_first
from toolwire.tools.spec import ToolFailed, Workspace
from toolwire.wire.json_access import dump, object_in

_MOST_WRITTEN = 600
"""Tokens of one answer: a minute on two slow cores; longer answers are loops."""
_LONGEST_REPLY = 400
"""Characters of a reply, after which it ends with the current sentence."""
_MOST_TRIES = 2
"""Consecutive changes that are refused before one is passed to the user."""
_WRITING = frozenset({"write_file", "replace", "append"})

_sentence_end = re.compile(r"[.!?](?=\s)").search
_calls = re.compile(r'^\{"tool": "([^"]+)"', re.MULTILINE).findall


def wrap(model: Model, new_id: Callable[[], str], project: Callable[[], KnownFiles]) -> Model:
    """The model with tools in short form; `project` is called for every request."""
    conversation = _Conversation(model, new_id)

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        plain = json_style.wrap(model, new_id)
        answer = conversation.ask(request, project()) if request.tools else plain(request)
        async with reading(answer) as events:
            async for event in events:
                yield event

    return ask


class _Conversation:
    """One conversation: its first file list, and the kinds of its requests."""

    def __init__(self, model: Model, new_id: Callable[[], str]) -> None:
        self._model = model
        self._new_id = new_id
        self._listed: KnownFiles | None = None
        self._kinds: dict[str, RequestKind | None] = {}

    async def ask(self, request: ModelRequest, project: KnownFiles) -> AsyncIterator[ModelEvent]:
        if self._listed is None:
            self._listed = project
        written = 0
        words, upto = _newest(request.messages)
        if words and words not in self._kinds:
            asking = self._asking(request, upto, project, self._listed)
            async with reading(asking.events()) as events:
                async for event in events:
                    yield event
            self._kinds[words] = likely(words, asking.kind)
            written += asking.usage.output or 0
        fitted = fit(request, project, listed=self._listed, kinds=self._kinds)
        for notice in fitted.notices:
            yield notice
        without: list[Refused] = []
        while True:
            calls = _CallTranslator(project, refusing=len(without) < _MOST_TRIES)
            inner = json_style.wrap(self._model, self._new_id, instructions=fitted.instructions)
            async with reading(inner(fitted.request)) as events:
                async for event in events:
                    for out in calls.read(event):
                        yield _with_usage(out, written) if isinstance(out, Finished) else out
                    if calls.complete:
                        break
            if calls.refused is None:
                break
            without.append(calls.refused)
            written += calls.usage.output or 0
            fitted = fit(request, project, listed=self._listed, kinds=self._kinds, without=without)

    def _asking(
        self, request: ModelRequest, upto: int, project: KnownFiles, listed: KnownFiles
    ) -> KindQuestion:
        before = msgspec.structs.replace(request, messages=request.messages[:upto])
        fitted = fit(before, project, listed=listed, kinds=self._kinds)
        prepared = json_style.prepare(fitted.request, instructions=fitted.instructions)
        return KindQuestion(
            self._model, prepared.request if prepared is not None else fitted.request
        )


class Fitted(msgspec.Struct, frozen=True):
    """A request shortened for a small model, and notices of what was left out."""

    request: ModelRequest
    instructions: str
    """The system prompt. It describes all tools even if only a reply is allowed, so that the cached
    prefix stays valid.
    """
    notices: tuple[Notice, ...] = ()


def fit(
    request: ModelRequest,
    project: KnownFiles,
    *,
    listed: KnownFiles,
    kinds: Mapping[str, RequestKind | None] = MappingProxyType({}),
    without: Sequence[Refused] = (),
) -> Fitted:
    """The request with short instructions, short tools and short results.

    `listed` are the files named in the first message: they stay the same while the project
    changes, so that the cached prefix stays valid. `without` are calls that are not offered.
    """
    past = Past(project, listed, kinds)
    messages = tuple(past.message(message) for message in request.messages)
    tools = shown_tools(request.tools, project)
    choice = request.tool_choice
    if past.must_reply:
        choice = ToolChoice(mode="none")
    elif past.must_act:
        choice = ToolChoice(mode="required")
    fitted = msgspec.structs.replace(
        request,
        system=(),
        messages=messages,
        tools=_useful(tools, past, project, without),
        tool_choice=choice,
        parallel_calls=None,
        max_output_tokens=min(request.max_output_tokens or _MOST_WRITTEN, _MOST_WRITTEN),
    )
    return Fitted(fitted, _instructions(tools), tuple(past.notices))


def _useful(
    tools: Sequence[ToolSpec], past: Past, project: KnownFiles, without: Sequence[Refused]
) -> tuple[ToolSpec, ...]:
    """The tools that are useful now."""
    if past.named and (looks := [tool for tool in tools if tool.name == "read_file"]):
        return tuple(with_file(tool, past.named) for tool in looks)
    found: list[ToolSpec] = []
    for tool in tools:
        # A call with the same result twice is not offered a third time.
        if tool.name in past.repeated:
            continue
        if past.kind is RequestKind.QUESTION and tool.name in _WRITING:
            continue
        if any(it.name == tool.name and not it.line for it in without):
            continue
        offered: ToolSpec | None = tool
        if tool.name == "replace":
            offered = with_lines(tool, project, past.seen, without)
        if offered is not None:
            found.append(offered)
    return tuple(found)


def _newest(messages: Sequence[Message]) -> tuple[str, int]:
    """The text of the newest request, and the number of messages up to it."""
    for at in range(len(messages), 0, -1):
        message = messages[at - 1]
        words = [part.text for part in message.parts if isinstance(part, Text)]
        if message.role == "user" and words:
            return words[-1], at
    return "", 0


def _with_usage(event: Finished, written: int) -> Finished:
    """Adds the output tokens of the question about the kind; input is that of the answer."""
    usage = event.usage
    if written:
        usage = msgspec.structs.replace(usage, output=(usage.output or 0) + written)
    return msgspec.structs.replace(event, usage=usage)


def _instructions(tools: Sequence[ToolSpec]) -> str:
    offered = {tool.name for tool in tools}
    examples = [block for block in _examples() if set(_calls(block)) <= offered]
    return (
        _text("prompt.md")
        .replace("{tools}", "\n".join(map(_line, tools)))
        .replace("{examples}", "\n\n".join(examples))
        .rstrip()
    )


@cache
def _text(name: str) -> str:
    return (get_data("toolwire.embedded.small", name) or b"").decode()


@cache
def _examples() -> tuple[str, ...]:
    return tuple(re.split(r"\n\n(?=Request: )", _text("examples.md").strip()))


def _line(tool: ToolSpec) -> str:
    members = cast(JsonObject, tool.parameters.get("properties") or {})
    about = tool.description.strip().partition("\n")[0][:160]
    return f"{tool.name}({', '.join(members)}): {about}"


class _CallTranslator:
    """Translates the short calls of one answer to real ones; refuses harmful calls."""

    def __init__(self, project: KnownFiles, *, refusing: bool) -> None:
        self._project = project
        self._refusing = refusing
        self._open: dict[str, tuple[ToolCallStarted, list[str]]] = {}
        self.refused: Refused | None = None
        self.usage = Usage()
        self._reply = ""
        self.complete = False

    def read(self, event: ModelEvent) -> Sequence[ModelEvent]:
        match event:
            case ToolCallStarted() if event.name in TOOLS:
                self._open[event.id] = (event, [])
                return ()
            case ToolCallDelta() if event.id in self._open:
                self._open[event.id][1].append(event.arguments)
                return ()
            case ToolCallEnded() if event.id in self._open:
                return self._call(event)
            case TextDelta():
                return self._text_event(event.text)
            case Finished() if self.refused is not None:
                self.usage = event.usage
                return ()
            case _:
                return (event,)

    def _text_event(self, text: str) -> Sequence[ModelEvent]:
        """The reply, up to the end of the sentence that exceeds the limit."""
        before = self._reply
        self._reply += text
        end = _sentence_end(self._reply, _LONGEST_REPLY)
        if end is None:
            return (TextDelta(text),)
        self.complete = True
        notice = Notice("reply_cut", "the small model's reply was too long and was cut off")
        words = TextDelta(self._reply[len(before) : end.end()])
        return (words, notice, Finished(reason=StopReason.END))

    def _call(self, event: ToolCallEnded) -> Sequence[ModelEvent]:
        started, pieces = self._open.pop(event.id)
        text = "".join(pieces)
        arguments = object_in(text) if event.complete else None
        if arguments is not None:
            if self._refusing:
                self.refused = refusal(started.name, arguments, self._project)
            if self.refused is not None:
                return ()
            text = dump(to_real(started.name, arguments, self._project))
        name = TOOLS[started.name].real or started.name
        started = msgspec.structs.replace(started, name=name)
        return (started, ToolCallDelta(event.id, text), event)


_MOST_TEXT = 100_000
"""Largest file whose lines are offered to a small model, in bytes."""


def known_files(workspace: Workspace, environ: Mapping[str, str] = {}) -> KnownFiles:
    """The files of the first root, nearest first, without ignored and hidden ones."""
    root = real(workspace.roots[0]) or workspace.roots[0]
    files: list[str] = []
    folders: list[str] = []
    more = False
    try:
        for listing in breadth_first(root, workspace, rules_for(root, workspace)):
            before = f"{listing.path}/" if listing.path else ""
            files += [before + it.name for it in listing.files if not it.ignored]
            folders += [
                before + it.name
                for it in listing.folders
                if not it.ignored and it.name not in NEVER_SEARCHED
            ]
            if len(files) > MOST_CHOICES or len(folders) >= MOST_CHOICES:
                more = True
                break
    except (OSError, ToolFailed):
        more = True
    return KnownFiles(
        root=str(workspace.roots[0]).rstrip("/"),
        files=tuple(files[:MOST_CHOICES]),
        folders=tuple(folders[: MOST_CHOICES - 1]),
        more=more,
        text=lambda path: _small_text(root / path, workspace, environ),
    )


def _small_text(path: Path, workspace: Workspace, environ: Mapping[str, str]) -> str | None:
    """The text of a small file that may be read without approval; None for any other."""
    found = locate(path, workspace)
    protection = Protection(workspace, environ)
    if found is None or protection.hides(path) or protection.hides(found):
        return None
    try:
        with open(open_file(found, workspace), "rb") as file:  # noqa: PTH123 - a descriptor
            data = file.read(_MOST_TEXT + 1)
        return data.decode() if len(data) <= _MOST_TEXT else None
    except (OSError, UnicodeError, ToolFailed):
        return None
