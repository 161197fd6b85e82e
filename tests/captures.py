"""Replays captures of gemini-cli: its workspace, its calls, our tools, the contents sent next.

capture = load("0.5.5", "read_file_text")
stage = build(capture, tmp_path)
got = asyncio.run(replay(capture, stage, tools_by_name))
assert difference(capture, stage, got) == ""
"""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from toolwire import dialects
from toolwire.codec import read_answer
from toolwire.messages import Media, Message, Outcome, Part, Text, ToolCall, ToolResult
from toolwire.request import ModelRequest
from toolwire.tools.spec import Tool, ToolContext, ToolFailed, ToolOutput, Workspace

CAPTURES = Path(__file__).resolve().parents[2] / "shared" / "reference" / "gemini-cli-wire"
PRESENT = CAPTURES.is_dir()
ABSENT = "the captures lie beside the project, not in it"

Json: TypeAlias = Any
Runner: TypeAlias = Callable[[ToolCall, ToolContext], Awaitable[tuple[Part, ...]]]
"""Runs one call: the result, and whatever follows it in the same message."""


class Capture(msgspec.Struct, frozen=True):
    """One case of one version, as it lies in its file."""

    version: str
    name: str
    data: dict[str, Any]

    @property
    def turns(self) -> list[list[Json]]:
        """The chunks of every answer of the scripted model."""
        return self.data.get("model_response_chunks", [])

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the first answer calls."""
        parts = (part for chunk in self.turns[0] for part in _parts(chunk)) if self.turns else ()
        return tuple(part["functionCall"]["name"] for part in parts if "functionCall" in part)

    @property
    def expected(self) -> Json:
        """What the next request added, with placeholders."""
        return self.data["next_request_contents_tail"]


class Stage(msgspec.Struct, frozen=True):
    """A capture's folders on disk, and its placeholders both ways."""

    root: Path

    @property
    def workspace(self) -> Path:
        """`${WORKSPACE}`."""
        return self.root / "workspace"

    @property
    def home(self) -> Path:
        """`${HOME}`."""
        return self.root / "home"

    @property
    def project_hash(self) -> str:
        """`${PROJECT_HASH}`."""
        return hashlib.sha256(str(self.workspace).encode()).hexdigest()

    @property
    def temp(self) -> Path:
        """The project's temp directory, where the original keeps it."""
        return self.home / ".gemini" / "tmp" / self.project_hash

    def context(self, **more: Any) -> ToolContext:
        """A context for tools run on this stage."""
        place = Workspace(roots=(self.workspace,), temp=self.temp, home=self.home)
        members: dict[str, Any] = {"workspace": place, "emit": _quiet, **more}
        return ToolContext(**members)

    def fill(self, value: Json) -> Json:
        """The value with our paths in place of the placeholders."""
        return _replaced(value, [(name, path) for path, name in self._names()])

    def blank(self, value: Json) -> Json:
        """The value with placeholders in place of our paths."""
        return _replaced(value, self._names())

    def _names(self) -> list[tuple[str, str]]:
        return [
            (str(self.workspace), "${WORKSPACE}"),
            (str(self.home), "${HOME}"),
            (str(self.root), "${TMP}"),
            (str(CAPTURES), "${HARNESS}"),
            (self.project_hash, "${PROJECT_HASH}"),
        ]


def _quiet(line: str) -> None:
    del line


def _parts(chunk: Json) -> list[Json]:
    if not isinstance(chunk, dict):
        # An answer that is a bare HTTP status has no chunks.
        return []
    return [
        part
        for candidate in chunk.get("candidates", ())
        for part in (candidate.get("content") or {}).get("parts", ())
    ]


def _replaced(value: Json, pairs: list[tuple[str, str]]) -> Json:
    if isinstance(value, str):
        for old, new in pairs:
            value = value.replace(old, new)
        return value
    if isinstance(value, list):
        return [_replaced(item, pairs) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, pairs) for key, item in value.items()}
    return value


_PIDS = re.compile(r"^(Background PIDs|Process Group PGID): .*\d.*$", re.MULTILINE)
_WRONG_PIDS = "Background PIDs: ${PID}\\nProcess Group PGID: (none)"
_RIGHT_PIDS = "Background PIDs: (none)\\nProcess Group PGID: ${PID}"


def without_pids(value: Json) -> Json:
    """The value with process ids blanked, as the captures have them."""
    if isinstance(value, str):
        return _PIDS.sub(r"\1: ${PID}", value)
    if isinstance(value, list):
        return [without_pids(item) for item in value]
    if isinstance(value, dict):
        return {key: without_pids(item) for key, item in value.items()}
    return value


def put_right(capture: Capture) -> Capture:
    """Its folder `ws` is our `workspace`, and its shell is no background process.

    0.6.1 calls its own shell one, and knows no process group.
    """
    expected = without_pids(capture.data.get("next_request_contents_tail"))
    text = json.dumps(dict(capture.data, next_request_contents_tail=expected))
    if capture.version == "0.6.1":
        text = text.replace(_WRONG_PIDS, _RIGHT_PIDS)
    return Capture(capture.version, capture.name, json.loads(text.replace('"ws"', '"workspace"')))


def load(version: str, name: str) -> Capture:
    """One capture."""
    data = json.loads((CAPTURES / version / f"{name}.json").read_text("utf-8"))
    return Capture(version, name, data)


def find(*, tools: Iterable[str] = (), names: str = "") -> list[Capture]:
    """Captures of 0.5.5, and those of 0.6.1 it lacks, that call one of the tools or fit `names`."""
    if not PRESENT:
        return []
    wanted = set(tools)
    files = {path.stem: path for path in sorted((CAPTURES / "0.6.1").glob("*.json"))}
    files |= {path.stem: path for path in sorted((CAPTURES / "0.5.5").glob("*.json"))}
    found: list[Capture] = []
    for name, path in sorted(files.items()):
        data = json.loads(path.read_text("utf-8"))
        if not data.get("next_request_contents_tail"):
            continue
        capture = Capture(path.parent.name, name, data)
        if wanted & set(capture.tools) or (names and re.search(names, name)):
            found.append(capture)
    return found


def declarations(version: str = "0.5.5") -> dict[str, Json]:
    """The tool declarations of the first request, by name."""
    sent = json.loads((CAPTURES / version / "first_request.json").read_text("utf-8"))
    main = next(request for request in sent["requests_in_order"] if request["kind"] == "main")
    return {
        declared["name"]: declared
        for group in main["body"]["tools"]
        for declared in group.get("functionDeclarations", ())
    }


def build(capture: Capture, folder: Path) -> Stage:
    """Make the capture's folders and files below `folder`."""
    stage = Stage(folder.resolve())
    for place, member in (
        (stage.workspace, "workspace_files"),
        (stage.home, "home_files"),
        (stage.root, "tmp_files"),
    ):
        place.mkdir(parents=True, exist_ok=True)
        for name, content in (capture.data.get(member) or {}).items():
            put(place / name, content)
    if capture.data.get("git"):
        subprocess.run(["git", "init", "-q", str(stage.workspace)], check=True)
    return stage


def put(path: Path, content: Json) -> None:
    """Write one file as the captures describe it."""
    if content is None:
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_bytes(content.encode())
        return
    if "system_binary" in content:
        found = shutil.which(content["system_binary"])
        if found:
            path.symlink_to(found)
        return
    if "sparse" in content:
        with path.open("wb") as file:
            file.truncate(content["sparse"])
    else:
        path.write_bytes(_bytes(content))
    if "mtime" in content:
        os.utime(path, (content["mtime"], content["mtime"]))


def _bytes(content: dict[str, Any]) -> bytes:
    if "b64" in content:
        return base64.b64decode(content["b64"])
    if "repeat" in content:
        text, times = content["repeat"]
        return text.encode() * times
    lines = "\n".join(f"line {number}" for number in range(1, content["numbered"] + 1))
    return (lines + ("\n" if content.get("final_newline") else "")).encode()


def reply(capture: Capture, stage: Stage, turn: int = 0) -> Message:
    """What the scripted model says, read by our own decoder."""
    chunks = [
        f"data: {json.dumps(stage.fill(chunk))}\n\n".encode() for chunk in capture.turns[turn]
    ]
    answer = read_answer("gemini", chunks)
    if answer.error is not None:
        raise answer.error
    return answer.message


def running(tools: Mapping[str, Tool]) -> Runner:
    """A runner of bare tools: required members, the tool's own check, the tool."""

    async def run(call: ToolCall, context: ToolContext) -> tuple[Part, ...]:
        tool = tools[call.name]
        arguments = json.loads(call.arguments or "{}")
        missing = [name for name in tool.parameters.get("required", ()) if name not in arguments]
        complaint = f"params must have required property '{missing[0]}'" if missing else ""
        complaint = complaint or tool.check(arguments, context)
        if complaint:
            return (failed(call, complaint),)
        try:
            output = await tool.run(arguments, context)
        except ToolFailed as error:
            return (failed(call, str(error)),)
        return answered(call, output)

    return run


def failed(call: ToolCall, message: str) -> ToolResult:
    """The result of a call that could not be done."""
    return ToolResult(
        call_id=call.id,
        name=call.name,
        parts=(Text(message),),
        is_error=True,
        outcome=Outcome.FAILED,
    )


def answered(call: ToolCall, output: ToolOutput) -> tuple[Part, ...]:
    """The result of a call, and what follows it."""
    parts: tuple[Text | Media, ...] = (Text(output.text), *output.media)
    return (ToolResult(call_id=call.id, name=call.name, parts=parts), *output.beside)


async def replay(
    capture: Capture,
    stage: Stage,
    tools: Mapping[str, Tool] | Runner,
    context: ToolContext | None = None,
) -> Json:
    """Run the first answer's calls; gives the contents that the next request adds, blanked."""
    run = running(tools) if isinstance(tools, Mapping) else tools
    context = context or stage.context()
    said = reply(capture, stage)
    parts: list[Part] = []
    for call in said.calls:
        parts += await run(call, msgspec.structs.replace(context, call_id=call.id))
    return contents(stage, said, Message(role="user", parts=tuple(parts)))


def contents(stage: Stage, *messages: Message) -> Json:
    """Messages after the prompt as Gemini is sent them, blanked."""
    prompt = Message(role="user", parts=(Text("go"),))
    request = ModelRequest(model="gemini-2.5-pro", messages=(prompt, *messages))
    encoded = dialects.get("gemini").encode_request(request)
    return stage.blank(json.loads(encoded.http.body)["contents"][1:])


def difference(capture: Capture, stage: Stage, got: Json) -> str:
    """What differs from the capture: in what is sent next, or in the files; empty if nothing."""
    wanted = normal(capture.expected)
    got = allowed_help(wanted, normal(got))
    if got != wanted:
        return f"{capture.version}/{capture.name}\n   got {_line(got)}\nwanted {_line(wanted)}"
    for name, content in (capture.data.get("workspace_after") or {}).items():
        found = _found(stage.workspace / stage.fill(name))
        if found != _content(stage.fill(content)):
            return f"{capture.version}/{capture.name}: {name} is {found!r}, wanted {content!r}"
    return ""


def _line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)[:4000]


def _found(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _content(content: Json) -> bytes | None:
    if content is None:
        return None
    return content.encode() if isinstance(content, str) else _bytes(content)


_MADE_ID = re.compile(r"-(\$\{MILLIS\}|\d+)-(\$\{HEX\}|[0-9a-f]+)$")


def normal(value: Json) -> Json:
    """The value without what no two runs share: ids the client makes, the order of found files."""
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, dict):
        return {
            key: normal(item)
            for key, item in value.items()
            if not (key == "id" and isinstance(item, str) and _MADE_ID.search(item))
        }
    if isinstance(value, str) and re.match(r"Found \d+ match(es)? for pattern ", value):
        head, *blocks = value.split("\n---\n")
        return "\n---\n".join([head, *sorted(block.removesuffix("\n---") for block in blocks)])
    return value


def allowed_help(wanted: Json, got: Json) -> Json:
    """`got`, its error texts cut after the original's words where a new line of help follows."""
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        return [allowed_help(one, other) for one, other in zip(wanted, got, strict=True)]
    if isinstance(wanted, dict) and isinstance(got, dict):
        cut = {key: allowed_help(wanted.get(key), item) for key, item in got.items()}
        words, ours = wanted.get("error"), got.get("error")
        if isinstance(words, str) and isinstance(ours, str) and ours.startswith(words + "\n"):
            cut["error"] = words
        return cut
    return got
