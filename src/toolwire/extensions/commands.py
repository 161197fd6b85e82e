"""Custom slash commands from files: gemini-cli's TOML, and Markdown as other programs have it."""

import re
import shlex
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, cast

import msgspec

from toolwire.storage.paths import state_paths

_LARGEST = 1 << 20
_MOST_FILES = 500
_MOST_OUTPUT = 100_000
_ARGS = "{{args}}"
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^([A-Za-z][\w-]*):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_OPENS = re.compile(r"([!@])\{")
_TICKS = re.compile(r"!`([^`\n]+)`")
_POSITION = re.compile(r"\$(ARGUMENTS|[1-9])(?![0-9])")
_NAME = re.compile(r"[\w][\w.-]*(?::[\w][\w.-]*)*")

Run = Callable[[str], Awaitable[str]]
"""Runs a shell command as the policy allows it, and returns its output."""
Read = Callable[[str], str]
"""The text of a file that a command names."""


class Source(msgspec.Struct, frozen=True):
    """A folder with commands: of whom it is, and which endings count."""

    origin: str
    folder: Path
    endings: tuple[str, ...] = (".md", ".toml")


class CustomCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command from a file."""

    name: str
    prompt: str
    file: Path
    form: Literal["toml", "markdown"]
    description: str = ""
    fields: Mapping[str, str] = {}
    """The front matter of a Markdown file, as it is written."""


class Expanded(msgspec.Struct, frozen=True):
    """The prompt of a command, and the part of it that the user and the file wrote."""

    text: str
    own: str
    """Without the contents of files and the output of commands: only this may mention files."""


def sources(environ: Mapping[str, str], folder: Path, *, trusted: bool) -> tuple[Source, ...]:
    """Where commands are read, highest precedence first; a folder's own only if it is trusted."""
    home = Path(environ.get("HOME") or "~").expanduser()
    found = (
        Source("gemini", Path(".gemini/commands"), (".toml",)),
        Source("claude", Path(".claude/commands"), (".md",)),
        Source("opencode", Path(".opencode/command"), (".md",)),
    )
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    project = (
        Source("project", folder / ".toolwire" / "commands"),
        *(Source(one.origin, folder / one.folder, one.endings) for one in found),
    )
    user = (
        Source("user", state_paths(environ).config / "commands"),
        Source("gemini", home / ".gemini/commands", (".toml",)),
        Source("claude", home / ".claude/commands", (".md",)),
        Source("codex", home / ".codex/prompts", (".md",)),
        Source("opencode", config / "opencode" / "command", (".md",)),
    )
    return (*(project if trusted else ()), *user)


def read_commands(
    found: Iterable[Source], taken: Iterable[str] = ()
) -> tuple[dict[str, CustomCommand], list[str]]:
    """The commands by name, and a line about each file that is none.

    A name that is taken is given by its origin: `claude:review`.
    """
    commands: dict[str, CustomCommand] = {}
    problems: list[str] = []
    used = set(taken)
    for source in found:
        for file in _files(source):
            try:
                command = _read(source, file)
            except (OSError, ValueError) as error:
                problems.append(f"{file} is not a command: {error}")
                continue
            name = command.name
            if name in used or name in commands:
                name = f"{source.origin}:{name}"
            if name not in commands:
                commands[name] = msgspec.structs.replace(command, name=name)
    return commands, problems


def _files(source: Source) -> list[Path]:
    try:
        listed = sorted(source.folder.rglob("*"))[:_MOST_FILES]
        return [path for path in listed if path.suffix in source.endings and path.is_file()]
    except OSError:
        return []


def _read(source: Source, file: Path) -> CustomCommand:
    name = ":".join(file.relative_to(source.folder).with_suffix("").parts)
    if not _NAME.fullmatch(name):
        raise ValueError("its name has other characters than letters, digits, . _ and -")
    if file.stat().st_size > _LARGEST:
        raise ValueError("it has more than 1 MB")
    text = file.read_bytes().decode("utf-8-sig")
    if file.suffix == ".toml":
        return _from_toml(name, file, text)
    fields: dict[str, str] = {}
    front = _FRONT.match(text)
    if front:
        fields = {found[1]: found[2].strip("\"'") for found in _FIELD.finditer(front[1])}
        text = text[front.end() :]
    description = fields.get("description", "") or text.strip().partition("\n")[0][:100]
    return CustomCommand(
        name=name,
        prompt=text.strip(),
        file=file,
        form="markdown",
        description=description,
        fields=fields,
    )


def _from_toml(name: str, file: Path, text: str) -> CustomCommand:
    table = cast(dict[str, object], tomllib.loads(text))
    prompt, description = table.get("prompt"), table.get("description", "")
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError('it has no text "prompt"')
    if not isinstance(description, str):
        raise ValueError('"description" is not text')
    return CustomCommand(name=name, prompt=prompt, file=file, form="toml", description=description)


async def expand(command: CustomCommand, typed: str, *, run: Run, read: Read) -> Expanded:
    """The prompt with what was typed, files and shell output in their places.

    What is inserted is never read again: neither a file nor an output can name another.
    """
    whole: list[str] = []
    own: list[str] = []
    for kind, text in _pieces(command):
        if kind == "text":
            filled = _filled(command, text, typed)
            whole.append(filled)
            own.append(filled)
        elif kind == "file":
            whole.append(read(_filled(command, text, typed).strip()))
        else:
            output = await run(_filled(command, text, typed, quoted=True).strip())
            whole.append(_capped(output))
    added = _appended(command, typed)
    return Expanded("".join(whole) + added, "".join(own) + added)


def _pieces(command: CustomCommand) -> Iterator[tuple[str, str]]:
    """The pieces of a prompt: `text`, `file` and `shell`, in their order."""
    text, at = command.prompt, 0
    if command.form == "markdown":
        for found in _TICKS.finditer(text):
            yield "text", text[at : found.start()]
            yield "shell", found[1]
            at = found.end()
        yield "text", text[at:]
        return
    while found := _OPENS.search(text, at):
        end = _closing(text, found.end())
        if end < 0:
            break
        yield "text", text[at : found.start()]
        yield "shell" if found[1] == "!" else "file", text[found.end() : end]
        at = end + 1
    yield "text", text[at:]


def _closing(text: str, at: int) -> int:
    """Where the brace that is open at a place is closed; -1 if it is not."""
    depth = 1
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return place
    return -1


def _filled(command: CustomCommand, text: str, typed: str, *, quoted: bool = False) -> str:
    if command.form == "toml":
        return text.replace(_ARGS, shlex.quote(typed) if quoted and typed else typed)
    words = _words(typed)

    def put(found: re.Match[str]) -> str:
        if found[1] == "ARGUMENTS":
            return shlex.quote(typed) if quoted and typed else typed
        at = int(found[1])
        word = words[at - 1] if at <= len(words) else ""
        return shlex.quote(word) if quoted and word else word

    return _POSITION.sub(put, text)


def _words(typed: str) -> list[str]:
    try:
        return shlex.split(typed)
    except ValueError:
        return typed.split()


def _appended(command: CustomCommand, typed: str) -> str:
    """What was typed, for a prompt that has no place for it."""
    if not typed:
        return ""
    if command.form == "toml":
        return "" if _ARGS in command.prompt else f"\n\n/{command.name} {typed}"
    return "" if _POSITION.search(command.prompt) else f"\n\nARGUMENTS: {typed}"


def _capped(output: str) -> str:
    if len(output) <= _MOST_OUTPUT:
        return output
    half = _MOST_OUTPUT // 2
    left = len(output) - _MOST_OUTPUT
    return f"{output[:half]}\n… {left} characters left out …\n{output[-half:]}"
