"""The conversation so far, as a small model is shown it, and what follows from it."""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from toolwire.embedded.small.kinds import Kind
from toolwire.embedded.small.tools import TOOLS, KnownFiles, to_shown
from toolwire.events import Notice
from toolwire.messages import Message, Outcome, Part, Text, ToolCall, ToolResult
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump

_MOST_FOLDERS = 20
"""A folder is opened if there are then no more than that."""
_MOST_TOLD = 8
"""With more of them, a small model only says their names."""
_MOST_ABOUT = 60
"""Characters of what a folder says of itself."""
_NAMED = 3
"""Names that stand for the files of a folder that says nothing."""
_TELLING = ("__init__.py", "README.md", "lib.rs", "mod.rs", "doc.go", "index.ts", "index.js")
"""Files whose first words are about the folder they are in."""
_TOP = "the top folder"

_first_words = re.compile(
    r"""\s*(?:[rR]?(?:\"{3}|'{3})|/\*+!?|//[/!]?|<!--|\#+(?!!))[ \t]*\n?[ \t*]*(\w.*)"""
).match
_no_description = re.compile(r"copyright|license|licence|spdx|coding[:=]|eslint", re.I).search


def by_folder(text: str, read: Callable[[str], str | None], limit: int) -> str:
    """The result of a search for files, told by folders; `read` gives the text of a file."""
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
    """Files by the folder they are told under: the fullest ones are opened as long as all fit."""
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
        # What is left under its own name are the files right in it.
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
"""Calls for one request; then the model must say what it has."""
_MOST_LOOKS = 5
"""Calls after which it may say that it could not do what was asked."""
_MOST_VAIN_LOOKS = 3
"""Calls that find nothing, after which a question may be answered all the same."""
_MOST_LISTED = 300
"""Characters of file names that are told with the first request."""
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
    """Reads the messages in turn; what is said of one depends only on those before it."""

    def __init__(
        self, ground: KnownFiles, listed: KnownFiles, kinds: Mapping[str, Kind | None]
    ) -> None:
        self._ground = ground
        self._listed: KnownFiles | None = listed
        self._kinds = kinds
        self._calls: dict[str, ToolCall] = {}
        self._asked = ""
        self._done: list[tuple[str, str]] = []
        self._ended: list[tuple[str, ToolResult]] = []
        self._seen: dict[str, None] = {}
        self.notices: list[Notice] = []

    @property
    def kind(self) -> Kind | None:
        """What the newest request is after, if that is known."""
        return self._kinds.get(self._asked)

    @property
    def seen(self) -> tuple[str, ...]:
        """Files whose text, or a line of it, the model was shown; the newest first."""
        return tuple(reversed(self._seen))

    @property
    def must_reply(self) -> bool:
        """Nothing but words is wanted, or the model goes in a circle, went far, or was told no.

        After a list of more files than it can look into, it would look into any.
        """
        if self.kind is Kind.TALK or (self._ended and self._is_long_list(*self._ended[-1])):
            return True
        refused = any(result.outcome in _REFUSED for _, result in self._ended)
        return refused or len(self.repeated) > 1 or len(self._done) >= MOST_STEPS

    @property
    def must_act(self) -> bool:
        """Nothing was found, or a change that was asked for was not made: no reply yet."""
        if self.named:
            return True
        if self.kind is Kind.QUESTION:
            return len(self._done) < _MOST_VAIN_LOOKS and not any(map(_found, self._ended))
        if self.kind is not Kind.CHANGE or len(self._done) >= _MOST_LOOKS:
            return False
        return not any(name in _CHANGING and not result.is_error for name, result in self._ended)

    @property
    def named(self) -> str:
        """The one file that a question names, as long as nothing was looked at."""
        if self._done or self.kind in (Kind.CHANGE, Kind.COMMAND, Kind.TALK):
            return ""
        words = {word.strip(_PUNCTUATION) for word in self._asked.split()}
        found = [file for file in self._ground.files if words & {file, file.rpartition("/")[2]}]
        return found[0] if len(found) == 1 else ""

    @property
    def repeated(self) -> list[str]:
        """Tools that were called again with the same arguments, once for each time."""
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
        self._asked = words
        self._done.clear()
        self._ended.clear()
        listed, self._listed = self._listed, None
        files = _listing(listed) if listed is not None else ""
        return f"{files}Request: {words}"

    def _call(self, call: ToolCall) -> ToolCall:
        self._calls[call.id] = call
        self._done.append((call.name, call.arguments))
        arguments = as_object(call.arguments)
        if call.name not in TOOLS or arguments is None:
            return call
        shown = to_shown(call.name, arguments, self._ground.root)
        return msgspec.structs.replace(call, arguments=dump(shown))

    def _result(self, result: ToolResult) -> ToolResult:
        name = self._calls[result.call_id].name if result.call_id in self._calls else result.name
        self._ended.append((name, result))
        root = self._ground.root
        text = result.text.replace(f"{root}/", "").replace(root, ".")
        if not result.is_error:
            self._see(name, result.call_id, text)
        lines = len(text.splitlines())
        text = self._shortened(text, name)
        if name == "read_file" and not result.is_error:
            # It cannot count.
            text = f"({lines} lines)\n{text}"
        # Said after every result and not only the last: the bytes before the newest stay the same.
        text = f"{text}\n\n(The request was: {self._asked[:300]}\n{self._next(name, result)})"
        others = tuple(part for part in result.parts if not isinstance(part, Text))
        return msgspec.structs.replace(result, parts=(Text(text), *others))

    def _see(self, name: str, call_id: str, text: str) -> None:
        paths: list[str] = []
        if name == "read_file":
            arguments = as_object(self._calls[call_id].arguments) or {}
            paths.append(str(to_shown(name, arguments, self._ground.root).get("path", "")))
        elif name == "search_file_content":
            paths += (line.removeprefix("File: ").strip() for line in text.splitlines())
        for path in paths:
            if path in self._ground.files:
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
        return shown.then_change if self.kind is Kind.CHANGE else shown.then

    def _is_long_list(self, name: str, result: ToolResult) -> bool:
        long = name == "glob" and len(result.text) > RESULT_LIMIT
        return long and self.kind is Kind.QUESTION

    def _shortened(self, text: str, name: str) -> str:
        if len(text) <= RESULT_LIMIT:
            return text
        if name == "glob":
            words = "a long list of files was told to this small model by folders"
            self.notices.append(Notice("result_cut", words))
            return by_folder(text, self._ground.text, RESULT_LIMIT)
        # The end often says how it came out, so a quarter of the room is kept for it.
        tail = RESULT_LIMIT // 4
        left = len(text) - RESULT_LIMIT
        words = f"{left} characters of the result of {name} were left out for this small model"
        self.notices.append(Notice("result_cut", words))
        head, end = text[: RESULT_LIMIT - tail], text[-tail:]
        return f"{head}\n[… {left} characters left out here …]\n{end}"


def _found(look: tuple[str, ToolResult]) -> bool:
    return not look[1].is_error and not _nothing(look[1].text)


def as_object(text: str) -> JsonObject | None:
    """The arguments of a call, if they are an object."""
    try:
        value: Any = _decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return cast(JsonObject, value) if isinstance(value, dict) else None


def _listing(ground: KnownFiles) -> str:
    shown: list[str] = []
    size = 0
    for file in ground.files:
        size += len(file) + 2
        if size > _MOST_LISTED:
            break
        shown.append(file)
    more = ", and more" if ground.more or len(shown) < len(ground.files) else ""
    return f"Files: {', '.join(shown)}{more}\n\n" if shown else "Files: none yet\n\n"
