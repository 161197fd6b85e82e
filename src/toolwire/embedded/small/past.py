"""The conversation in short form for a small model, what its calls did, and what it may claim."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import StrEnum

import msgspec

from toolwire.embedded.small.figures import arithmetic, by_folder, figures
from toolwire.embedded.small.tools import TOOLS, KnownFiles, to_shown
from toolwire.events import Finished, ModelEvent, Notice, TextDelta, TextEnded, Usage
from toolwire.messages import Message, Outcome, Part, Text, ToolCall, ToolResult
from toolwire.model import Model, reading
from toolwire.request import JsonObject, ModelRequest, OutputFormat
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
KINDS: JsonObject = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": [kind.value for kind in RequestKind]}},
    "required": ["kind"],
    "additionalProperties": False,
}


class Question:
    """One question about the conversation; `answer` and `usage` are set after its events."""

    def __init__(
        self,
        model: Model,
        request: ModelRequest,
        words: str,
        schema: JsonObject,
        name: str,
        expired: Callable[[], bool] = lambda: False,
    ) -> None:
        self._model = model
        self._expired = expired
        self._request = msgspec.structs.replace(
            request,
            messages=(*request.messages[:-1], with_words(request.messages[-1], words)),
            output=OutputFormat(kind="json_schema", schema=schema, name=name),
        )
        self.answer = ""
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
                if self._expired() and not isinstance(event, Finished):
                    # Also while the prompt is being read.
                    break
        self.answer = "".join(pieces)


def read_kind(answer: str) -> RequestKind | None:
    """The kind that the model answered; None if it is not one."""
    try:
        return _read(answer).kind
    except (msgspec.DecodeError, UnicodeError):
        return None


def with_words(message: Message, words: str) -> Message:
    """The message with words at its end."""
    *before, last = message.parts
    if isinstance(last, Text):
        return Message(role=message.role, parts=(*before, Text(last.text + words)))
    return Message(role=message.role, parts=(*message.parts, Text(words.lstrip())))


RESULT_LIMIT = 1600
"""Characters of a result: about 400 tokens, ten seconds of reading on two slow cores."""
REQUEST_LIMIT = 4000
"""Characters of a request: text from a pipe may be long."""
MOST_STEPS = 6
"""Calls for one request; then the model must reply."""
_MOST_VAIN_LOOKS = 3
"""Calls without a result, after which a question may be answered anyway."""
_MOST_LISTED = 300
"""Characters of file names included in the first request."""
_LONG_LIST = (
    "Now reply: say how many files there are, then go through the folders "
    "and say in a few words what the files in each of them do."
)
_cache = re.compile(
    r"\.git|\.?venv|env|node_modules|__pycache__|build|dist|target|\.[\w-]*cache|\.tox|.*\.egg-info"
).fullmatch
_compares = re.compile(
    r"\b(?:lines?|long\w*|short\w*|big\w*|larg\w*|small\w*|most|least|fewest|size|empty)\b",
    re.IGNORECASE,
).search
found_nothing = re.compile(r"No (matches|files) found").match
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
        self._lines: dict[str, int] = {}
        self.notices: list[Notice] = []

    @property
    def kind(self) -> RequestKind | None:
        """The kind of the newest request, if known."""
        return self._kinds.get(self._request_text)

    @property
    def must_reply(self) -> bool:
        """Whether to offer no tools: chat, a repeated call, too many steps, or a denied call.

        After a list of more files than it can read, it would read any of them.
        """
        if self.kind is RequestKind.TALK or (self._ended and self._is_long_list(*self._ended[-1])):
            return True
        refused = any(result.outcome in REFUSED for _, result in self._ended)
        return refused or len(self.repeated) > 1 or len(self._done) >= MOST_STEPS

    @property
    def must_act(self) -> bool:
        """Whether a reply is premature: a question for which nothing was found yet."""
        if self.kind is not RequestKind.QUESTION:
            return False
        return len(self._done) < _MOST_VAIN_LOOKS and not any(map(_found, self._ended))

    @property
    def read(self) -> set[str]:
        """Files that were read for this request."""
        given = (
            object_in(arguments) or {} for name, arguments in self._done if name == "read_file"
        )
        return {str(to_shown("read_file", it, self._project.root).get("path", "")) for it in given}

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
        self._lines.clear()
        listed, self._listed = self._listed, None
        files = _listing(listed) if listed is not None else ""
        sums = arithmetic(words) if self.kind is RequestKind.TALK else ""
        return f"{files}Request: {self._shortened(words, 'the request', REQUEST_LIMIT)}{sums}"

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
        lines = len(text.splitlines())
        if name == "run_shell_command":
            text = _idle.sub("", text)
        if name == "list_directory" and not result.is_error:
            text = visible(text, self._project, self._request_text)
        text = self._shortened(text, name)
        if name == "read_file" and not result.is_error:
            # It cannot count.
            text = f"({lines} lines{figures(result.text, self._request_text)})\n{text}"
            if (path := self._path(result)) and _compares(self._request_text):
                self._lines[path] = lines
                counts = ", ".join(f"{name} {count}" for name, count in self._lines.items())
                text += f"\n(Lines of the files so far: {counts})" if len(self._lines) > 1 else ""
        if self.kind is not RequestKind.CHANGE:
            # After every result, not only the last: the prefix before the newest stays cached.
            hint = self._next(name, result)
            text = f"{text}\n\n(The request was: {self._request_text[:300]}\n{hint})"
        if not all(isinstance(part, Text) for part in result.parts):
            # Pictures are refused by the engine.
            text = f"(The file is not text and cannot be shown.)\n{text}"
        return msgspec.structs.replace(result, parts=(Text(text),))

    def _path(self, result: ToolResult) -> str:
        """The file that a call read."""
        call = self._calls.get(result.call_id)
        given = object_in(call.arguments) if call is not None else None
        return str(to_shown("read_file", given or {}, self._project.root).get("path", ""))

    def _next(self, name: str, result: ToolResult) -> str:
        if result.is_error:
            return "That did not work. Do it another way."
        if found_nothing(result.text):
            return "Nothing was found. Look for a single shorter word."
        if name not in TOOLS:
            return "If all is done, reply."
        if self._is_long_list(name, result):
            return _LONG_LIST
        return TOOLS[name].then

    def _is_long_list(self, name: str, result: ToolResult) -> bool:
        long = name == "glob" and len(result.text) > RESULT_LIMIT
        return long and self.kind is RequestKind.QUESTION

    def _shortened(self, text: str, name: str, limit: int = RESULT_LIMIT) -> str:
        if len(text) <= limit:
            return text
        if name == "glob":
            words = "a long list of files was grouped by folder for this small model"
            self.notices.append(Notice("result_cut", words))
            return by_folder(text, self._project.text, RESULT_LIMIT)
        # The end often contains the outcome, so it gets a quarter of the limit.
        tail = limit // 4
        left = len(text) - limit
        whole = name if name == "the request" else f"the result of {name}"
        words = f"{left} characters of {whole} were left out for this small model"
        self.notices.append(Notice("result_cut", words))
        head, end = text[: limit - tail], text[-tail:]
        return f"{head}\n[… {left} characters left out here …]\n{end}"


def visible(text: str, project: KnownFiles, words: str = "") -> str:
    """A folder's listing without caches and the like, and the numbers that it cannot count."""
    head, *names = text.partition("\n\n(")[0].splitlines()
    if not head.startswith("Directory listing for "):
        return text
    known = {path.rpartition("/")[2] for path in (*project.files, *project.folders)}
    folders = [it.removeprefix("[DIR] ") for it in names if it.startswith("[DIR] ")]
    files = [it for it in names if it and not it.startswith("[DIR] ")]
    if not project.more:
        folders = [it for it in folders if it in known]
    folders = [it for it in folders if not _cache(it)]
    found = [f"{head.rstrip(':')}: {len(folders)} folders, {len(files)} files"]
    where = head.removeprefix("Directory listing for ").rstrip(":").strip("./")
    inside = f"{where}/" if where else ""
    shown = [f"{it}/{_count(f'{inside}{it}/', project)}" for it in folders]
    if _compares(words):
        files = [f"{it}{_size(project.text(inside + it))}" for it in files]
    return "\n".join([*found, *shown, *files])


def _count(folder: str, project: KnownFiles) -> str:
    number = sum(file.startswith(folder) for file in project.files)
    return f" ({number} files)" if number and not project.more else ""


def _size(text: str | None) -> str:
    return "" if text is None else f" ({len(text.encode())} bytes, {len(text.splitlines())} lines)"


def _found(look: tuple[str, ToolResult]) -> bool:
    return not look[1].is_error and not found_nothing(look[1].text)


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


REFUSED = frozenset({Outcome.DENIED, Outcome.CANCELLED, Outcome.INTERRUPTED, Outcome.NOT_RUN})
_MOST_OUTPUT = 300
"""Characters of a program's output that a report quotes."""
_exit_code = re.compile(r"^Exit Code: (\d+)$", re.MULTILINE).search
_idle = re.compile(
    r"^(?:Directory: .*|(?:Error|Signal|Background PIDs): \(none\)|Process Group PGID: .*)\n?",
    re.MULTILINE,
)
"""Lines of a command's result that say nothing."""
_output = re.compile(
    r"^Output: (.*?)\n(?:Error|Stderr|Stdout|Exit Code): ", re.DOTALL | re.MULTILINE
)


class Ran(msgspec.Struct, frozen=True):
    """A call since the newest request, and its result."""

    call: ToolCall
    result: ToolResult

    @property
    def refused(self) -> bool:
        """Whether the user or the policy did not let it run."""
        return self.result.outcome in REFUSED

    @property
    def succeeded(self) -> bool:
        """Whether it ran without an error; a command also with the exit code 0."""
        return not self.result.is_error and not self.refused and self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """The exit code of a command; 0 for other calls."""
        found = _exit_code(self.result.text) if self.call.name == "run_shell_command" else None
        return 0 if found is None else int(found[1])

    @property
    def output(self) -> str:
        """What a command printed."""
        found = _output.search(self.result.text)
        words = found[1] if found is not None else self.result.text
        return "" if words.strip() == "(empty)" else words.strip()


def since_request(messages: Sequence[Message]) -> list[Ran]:
    """The calls since the newest request of the user, in order."""
    calls: dict[str, ToolCall] = {}
    found: list[Ran] = []
    for message in messages:
        if message.role == "user" and any(isinstance(part, Text) for part in message.parts):
            found.clear()
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls[part.id] = part
            elif isinstance(part, ToolResult) and part.call_id in calls:
                found.append(Ran(calls[part.call_id], part))
    return found


def excerpt(text: str) -> str:
    """A program's output, shortened to its end."""
    return text if len(text) <= _MOST_OUTPUT else f"… {text[-_MOST_OUTPUT:]}"


def listed(items: Sequence[str]) -> str:
    """Names in a sentence."""
    return " and ".join([*filter(None, [", ".join(items[:-1])]), *items[-1:]])
