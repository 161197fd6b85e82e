"""The conversation in short form for a small model, and the options that remain."""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from toolwire.embedded.small.tools import TOOLS, KnownFiles, to_shown
from toolwire.events import Finished, ModelEvent, Notice, TextDelta, TextEnded, Usage
from toolwire.messages import Message, Outcome, Part, Text, ToolCall, ToolResult
from toolwire.model import Model, reading
from toolwire.request import ModelRequest, OutputFormat
from toolwire.wire.json_access import dump, object_in

QUESTION = "\n\nOf which kind is this request?"
"""Follows the request; the system prompt contains examples."""


class RequestKind(StrEnum):
    """Kind of a request."""

    QUESTION = "question"
    CHANGE = "change"
    COMMAND = "command"
    TALK = "talk"


class _Answer(msgspec.Struct):
    kind: RequestKind


_read = msgspec.json.Decoder(_Answer).decode
_asks = re.compile(
    r"(?:(?:at|by|for|from|in|of|on|to|under|with) )?"
    r"(?:who|whom|whose|which|what|where|when|how (?:many|much|long|old|often))\b[^.!]*\?",
    re.IGNORECASE,
).match
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": [kind.value for kind in RequestKind]}},
    "required": ["kind"],
    "additionalProperties": False,
}


class KindQuestion:
    """One question about the kind; `kind` and `usage` are set after its events."""

    def __init__(self, model: Model, request: ModelRequest) -> None:
        self._model = model
        self._request = msgspec.structs.replace(
            request,
            messages=(*request.messages[:-1], _with_question(request.messages[-1])),
            output=OutputFormat(kind="json_schema", schema=_SCHEMA, name="kind"),
        )
        self.kind: RequestKind | None = None
        self.usage = Usage()

    async def events(self) -> AsyncIterator[ModelEvent]:
        """Progress events of the question."""
        pieces: list[str] = []
        async with reading(self._model(self._request)) as events:
            async for event in events:
                match event:
                    case TextDelta():
                        pieces.append(event.text)
                    case Finished():
                        self.usage = event.usage
                    case TextEnded():
                        pass
                    case _:
                        yield event
        try:
            self.kind = _read("".join(pieces)).kind
        except (msgspec.DecodeError, UnicodeError):
            self.kind = None


def likely(words: str, answered: RequestKind | None) -> RequestKind | None:
    """The kind, or None where the model classifies a question as a change."""
    return None if answered is RequestKind.CHANGE and _asks(words.strip()) else answered


def _with_question(message: Message) -> Message:
    *before, last = message.parts
    text = last.text if isinstance(last, Text) else ""
    return Message(role=message.role, parts=(*before, Text(text + QUESTION)))


_MOST_FOLDERS = 20
"""A folder is expanded as long as there are no more entries than this."""
_MOST_TOLD = 8
"""With more files, a small model only repeats their names."""
_MOST_ABOUT = 60
"""Characters of a folder's description."""
_NAMED = 3
"""File names shown for a folder without a description."""
_TELLING = ("__init__.py", "README.md", "lib.rs", "mod.rs", "doc.go", "index.ts", "index.js")
"""Files whose first words describe their folder."""
_TOP = "the top folder"

_first_words = re.compile(
    r"""\s*(?:[rR]?(?:\"{3}|'{3})|/\*+!?|//[/!]?|<!--|\#+(?!!))[ \t]*\n?[ \t*]*(\w.*)"""
).match
_no_description = re.compile(r"copyright|license|licence|spdx|coding[:=]|eslint", re.I).search


def by_folder(text: str, read: Callable[[str], str | None], limit: int) -> str:
    """The result of a file search, grouped by folder; `read` returns the text of a file."""
    head, *paths = text.splitlines()
    lines = [f"{head.partition(' within ')[0]}, by folder:"]
    size = len(lines[0])
    folders = sorted(_folders([*filter(None, paths)]).items(), key=lambda it: (-len(it[1]), it[0]))
    for folder, inside in folders[:_MOST_TOLD]:
        about = _about(folder, read) or f"such as {', '.join(sorted(inside)[:_NAMED])}"
        line = f"{folder} ({len(inside)}): {about}"
        size += len(line) + 1
        if size > limit:
            break
        lines.append(line)
    left = len(folders) - len(lines) + 1
    return "\n".join([*lines, f"and {left} other folders"] if left else lines)


def _folders(paths: list[str]) -> Mapping[str, list[str]]:
    """Files grouped by folder; the largest folders are expanded as long as all fit."""
    found: dict[str, list[str]] = {"": paths}
    closed: set[str] = set()
    while openable := found.keys() - closed:
        fullest = max(openable, key=lambda folder: (len(found[folder]), folder))
        opened = _opened(fullest, found[fullest])
        if len(found) - 1 + len(opened) > _MOST_FOLDERS:
            closed.add(fullest)
            continue
        del found[fullest]
        found.update(opened)
        # The remaining entries are the folder's direct files.
        closed.add(fullest)
    return {folder or _TOP: inside for folder, inside in found.items()}


def _opened(folder: str, inside: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in inside:
        first, deeper, rest = name.partition("/")
        under = f"{folder}{first}/" if deeper else folder
        found.setdefault(under, []).append(rest or name)
    return found


def _about(folder: str, read: Callable[[str], str | None]) -> str:
    for name in _TELLING if folder != _TOP else ():
        found = _first_words(read(folder + name) or "")
        if found is not None and not _no_description(found[1]):
            words = re.split(r"\"{3}|'{3}|\*/|-->", found[1])[0].strip()
            return (
                words if len(words) <= _MOST_ABOUT else f"{words[:_MOST_ABOUT].rsplit(' ', 1)[0]} …"
            )
    return ""


RESULT_LIMIT = 1600
"""Characters of a result: about 400 tokens, ten seconds of reading on two slow cores."""
MOST_STEPS = 8
"""Calls for one request; then the model must reply."""
_MOST_LOOKS = 5
"""Calls after which it may reply that it failed."""
_MOST_VAIN_LOOKS = 3
"""Calls without a result, after which a question may be answered anyway."""
_MOST_LISTED = 300
"""Characters of file names included in the first request."""
_LONG_LIST = (
    "Now reply: say how many files there are, then go through the folders "
    "and say in a few words what the files in each of them do."
)
_PUNCTUATION = ".,;:!?()[]\"'`"
_CHANGING = frozenset({"write_file", "replace", "run_shell_command"})
_REFUSED = frozenset({Outcome.DENIED, Outcome.CANCELLED, Outcome.INTERRUPTED})

_nothing = re.compile(r"No (matches|files) found").match
_decode = msgspec.json.Decoder().decode


class Past:
    """Reads the messages in order; the short form of one depends only on those before it."""

    def __init__(
        self, project: KnownFiles, listed: KnownFiles, kinds: Mapping[str, RequestKind | None]
    ) -> None:
        self._project = project
        self._listed: KnownFiles | None = listed
        self._kinds = kinds
        self._calls: dict[str, ToolCall] = {}
        self._request_text = ""
        self._done: list[tuple[str, str]] = []
        self._ended: list[tuple[str, ToolResult]] = []
        self._seen: dict[str, None] = {}
        self.notices: list[Notice] = []

    @property
    def kind(self) -> RequestKind | None:
        """The kind of the newest request, if known."""
        return self._kinds.get(self._request_text)

    @property
    def seen(self) -> tuple[str, ...]:
        """Files that the model has seen, at least in part; the newest first."""
        return tuple(reversed(self._seen))

    @property
    def must_reply(self) -> bool:
        """Whether to offer no tools: chat, a repeated call, too many steps, or a denied call.

        After a list of more files than it can read, it would read any of them.
        """
        if self.kind is RequestKind.TALK or (self._ended and self._is_long_list(*self._ended[-1])):
            return True
        refused = any(result.outcome in _REFUSED for _, result in self._ended)
        return refused or len(self.repeated) > 1 or len(self._done) >= MOST_STEPS

    @property
    def must_act(self) -> bool:
        """Whether a reply is premature: nothing was found, or a requested change was not made."""
        if self.named:
            return True
        if self.kind is RequestKind.QUESTION:
            return len(self._done) < _MOST_VAIN_LOOKS and not any(map(_found, self._ended))
        if self.kind is not RequestKind.CHANGE or len(self._done) >= _MOST_LOOKS:
            return False
        return not any(name in _CHANGING and not result.is_error for name, result in self._ended)

    @property
    def named(self) -> str:
        """The one file that a question names, before the first call."""
        if self._done or self.kind in (RequestKind.CHANGE, RequestKind.COMMAND, RequestKind.TALK):
            return ""
        words = {word.strip(_PUNCTUATION) for word in self._request_text.split()}
        found = [file for file in self._project.files if words & {file, file.rpartition("/")[2]}]
        return found[0] if len(found) == 1 else ""

    @property
    def repeated(self) -> list[str]:
        """Tools called again with the same arguments, once per repetition."""
        return [name for at, (name, it) in enumerate(self._done) if (name, it) in self._done[:at]]

    def message(self, message: Message) -> Message:
        """The next message, in short form."""
        parts = tuple(self._part(message.role, part) for part in message.parts)
        return Message(role=message.role, parts=parts)

    def _part(self, role: str, part: Part) -> Part:
        match part:
            case Text() if role == "user":
                return Text(self._request(part.text))
            case ToolCall():
                return self._call(part)
            case ToolResult():
                return self._result(part)
            case _:
                return part

    def _request(self, words: str) -> str:
        self._request_text = words
        self._done.clear()
        self._ended.clear()
        listed, self._listed = self._listed, None
        files = _listing(listed) if listed is not None else ""
        return f"{files}Request: {words}"

    def _call(self, call: ToolCall) -> ToolCall:
        self._calls[call.id] = call
        self._done.append((call.name, call.arguments))
        arguments = object_in(call.arguments)
        if call.name not in TOOLS or arguments is None:
            return call
        shown = to_shown(call.name, arguments, self._project.root)
        return msgspec.structs.replace(call, arguments=dump(shown))

    def _result(self, result: ToolResult) -> ToolResult:
        name = self._calls[result.call_id].name if result.call_id in self._calls else result.name
        self._ended.append((name, result))
        root = self._project.root
        text = result.text.replace(f"{root}/", "").replace(root, ".")
        if not result.is_error:
            self._see(name, result.call_id, text)
        lines = len(text.splitlines())
        text = self._shortened(text, name)
        if name == "read_file" and not result.is_error:
            # It cannot count.
            text = f"({lines} lines)\n{text}"
        # After every result, not only the last: the prefix before the newest stays cached.
        text = (
            f"{text}\n\n(The request was: {self._request_text[:300]}\n{self._next(name, result)})"
        )
        others = tuple(part for part in result.parts if not isinstance(part, Text))
        return msgspec.structs.replace(result, parts=(Text(text), *others))

    def _see(self, name: str, call_id: str, text: str) -> None:
        paths: list[str] = []
        if name == "read_file":
            arguments = object_in(self._calls[call_id].arguments) or {}
            paths.append(str(to_shown(name, arguments, self._project.root).get("path", "")))
        elif name == "search_file_content":
            paths += (line.removeprefix("File: ").strip() for line in text.splitlines())
        for path in paths:
            if path in self._project.files:
                self._seen.pop(path, None)
                self._seen[path] = None

    def _next(self, name: str, result: ToolResult) -> str:
        if result.is_error:
            return "That did not work. Do it another way."
        if _nothing(result.text):
            return "Nothing was found. Look for a single shorter word."
        if name not in TOOLS:
            return "If all is done, reply."
        if self._is_long_list(name, result):
            return _LONG_LIST
        shown = TOOLS[name]
        return shown.then_change if self.kind is RequestKind.CHANGE else shown.then

    def _is_long_list(self, name: str, result: ToolResult) -> bool:
        long = name == "glob" and len(result.text) > RESULT_LIMIT
        return long and self.kind is RequestKind.QUESTION

    def _shortened(self, text: str, name: str) -> str:
        if len(text) <= RESULT_LIMIT:
            return text
        if name == "glob":
            words = "a long list of files was grouped by folder for this small model"
            self.notices.append(Notice("result_cut", words))
            return by_folder(text, self._project.text, RESULT_LIMIT)
        # The end often contains the outcome, so it gets a quarter of the limit.
        tail = RESULT_LIMIT // 4
        left = len(text) - RESULT_LIMIT
        words = f"{left} characters of the result of {name} were left out for this small model"
        self.notices.append(Notice("result_cut", words))
        head, end = text[: RESULT_LIMIT - tail], text[-tail:]
        return f"{head}\n[… {left} characters left out here …]\n{end}"


def _found(look: tuple[str, ToolResult]) -> bool:
    return not look[1].is_error and not _nothing(look[1].text)


def _listing(project: KnownFiles) -> str:
    shown: list[str] = []
    size = 0
    for file in project.files:
        size += len(file) + 2
        if size > _MOST_LISTED:
            break
        shown.append(file)
    more = ", and more" if project.more or len(shown) < len(project.files) else ""
    return f"Files: {', '.join(shown)}{more}\n\n" if shown else "Files: none yet\n\n"
