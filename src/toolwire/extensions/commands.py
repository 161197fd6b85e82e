"""Custom slash commands from files: gemini-cli's TOML, and Markdown as other programs have it."""

import json
import re
import shlex
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from toolwire.extensions.front_matter import split_front, text_of, without_comments
from toolwire.storage.paths import state_paths

SKILL = "skill"
"""The origin of a skill that the user activates by its name."""
_LARGEST = 1 << 20
_MOST_FILES = 500
_MOST_OUTPUT = 100_000
_ARGS = "{{args}}"
_OPENS = re.compile(r"([!@])\{")
_TICKS = re.compile(r"!`([^`\n]+)`")
_POSITION = re.compile(r"\$(ARGUMENTS\b|[1-9](?![0-9]))")
_NAMED = re.compile(r"\$(\$|[A-Z][A-Z0-9_]*\b|[1-9](?![0-9]))")
"""What codex replaces: `$1`, `$ARGUMENTS`, `$NAME`, and `$$` for a dollar."""
_GIVEN = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)
_NAME = re.compile(r"[\w][\w.-]*(?::[\w][\w.-]*)*")

Run = Callable[[str], Awaitable[str]]
"""Runs a shell command as the policy allows it, and returns its output."""
Read = Callable[[str], str]
"""The text of a file that a command names."""


class CommandFolder(msgspec.Struct, frozen=True):
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
    origin: str = ""
    """`project`, `user`, or the program whose file it is."""
    description: str = ""
    fields: Mapping[str, str] = {}
    """The front matter of a Markdown file, as text."""

    @property
    def model(self) -> str:
        """The model of its turn; empty for the session's."""
        named = self.fields.get("model", "")
        return "" if named == "inherit" else named

    @property
    def allowed_tools(self) -> str | None:
        """The tools of its turn; None for all."""
        return self.fields.get("allowed-tools")


class Expanded(msgspec.Struct, frozen=True):
    """The prompt of a command, and the part of it that the user and the file wrote."""

    text: str
    own: str
    """Without the contents of files and the output of commands: only this may mention files."""


def sources(
    environ: Mapping[str, str], folder: Path, *, trusted: bool
) -> tuple[CommandFolder, ...]:
    """Where commands are read, highest precedence first; a folder's own only if it is trusted."""
    home = Path(environ.get("HOME") or "~").expanduser()
    found = (
        CommandFolder("gemini", Path(".gemini/commands"), (".toml",)),
        CommandFolder("claude", Path(".claude/commands"), (".md",)),
        CommandFolder("opencode", Path(".opencode/command"), (".md",)),
        CommandFolder("opencode", Path(".opencode/commands"), (".md",)),
        CommandFolder("opencode", Path("opencode.json")),
        CommandFolder("opencode", Path("opencode.jsonc")),
    )
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    project = (
        CommandFolder("project", folder / ".toolwire" / "commands"),
        *(CommandFolder(one.origin, folder / one.folder, one.endings) for one in found),
    )
    user = (
        CommandFolder("user", state_paths(environ).config / "commands"),
        CommandFolder("gemini", home / ".gemini/commands", (".toml",)),
        CommandFolder("claude", home / ".claude/commands", (".md",)),
        CommandFolder("codex", home / ".codex/prompts", (".md",)),
        CommandFolder("opencode", config / "opencode" / "command", (".md",)),
        CommandFolder("opencode", config / "opencode" / "opencode.json"),
        CommandFolder("opencode", config / "opencode" / "opencode.jsonc"),
    )
    return (*(project if trusted else ()), *user)


def read_commands(
    found: Iterable[CommandFolder], taken: Iterable[str] = ()
) -> tuple[dict[str, CustomCommand], list[str]]:
    """The commands by name, and a line about each file that is none, or has another name.

    A name that is taken is given by its origin: `claude:review`.
    """
    commands: dict[str, CustomCommand] = {}
    problems: list[str] = []
    used = set(taken)
    for source in found:
        for command in _read_all(source, problems):
            name = command.name
            if name in used or name in commands:
                name = f"{source.origin}:{name}"
                if command.name in used:
                    problems.append(f"/{command.name} is built in; {command.file} is /{name}")
            if name not in commands:
                commands[name] = msgspec.structs.replace(command, name=name)
    return commands, problems


def _of_settings(source: CommandFolder) -> Iterator[CustomCommand]:
    """The commands of opencode's settings file; ValueError if it cannot be read."""
    try:
        data = source.folder.read_bytes()
    except OSError:
        return
    try:
        document: Any = json.loads(without_comments(data.decode("utf-8-sig")))
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    whole = cast(dict[str, Any], document if isinstance(document, dict) else {})
    tables: Any = whole.get("command")
    for name, one in cast(dict[str, Any], tables if isinstance(tables, dict) else {}).items():
        table = cast(dict[str, Any], one if isinstance(one, dict) else {})
        prompt = table.get("template")
        if not isinstance(prompt, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f'command.{name} has no text "template", or a name that cannot be typed'
            )
        fields = {key: value for key, value in table.items() if isinstance(value, str)}
        yield CustomCommand(
            name=name,
            prompt=prompt.strip(),
            file=source.folder,
            form="markdown",
            origin=source.origin,
            description=fields.get("description", ""),
            fields={key: value for key, value in fields.items() if key != "template"},
        )


def _read_all(source: CommandFolder, problems: list[str]) -> Iterator[CustomCommand]:
    """The commands of a folder, or of a settings file."""
    if source.folder.suffix in (".json", ".jsonc"):
        try:
            yield from _of_settings(source)
        except ValueError as error:
            problems.append(f"{source.folder}: {error}")
        return
    for file in _files(source):
        try:
            yield _read(source, file)
        except (OSError, ValueError) as error:
            problems.append(f"{file} is not a command: {error}")


def _files(source: CommandFolder) -> list[Path]:
    try:
        listed = sorted(source.folder.rglob("*"))[:_MOST_FILES]
        return [path for path in listed if path.suffix in source.endings and path.is_file()]
    except OSError:
        return []


def _read(source: CommandFolder, file: Path) -> CustomCommand:
    name = ":".join(file.relative_to(source.folder).with_suffix("").parts)
    if not _NAME.fullmatch(name):
        raise ValueError("its name has other characters than letters, digits, . _ and -")
    if file.stat().st_size > _LARGEST:
        raise ValueError("it has more than 1 MB")
    text = file.read_bytes().decode("utf-8-sig")
    if file.suffix == ".toml":
        return _from_toml(name, file, text, source.origin)
    members, text = split_front(text)
    fields = {key: text_of(members, key) for key in members} if members else {}
    description = fields.get("description", "") or text.strip().partition("\n")[0][:100]
    return CustomCommand(
        name=name,
        prompt=text.strip(),
        file=file,
        form="markdown",
        origin=source.origin,
        description=description,
        fields=fields,
    )


def _from_toml(name: str, file: Path, text: str, origin: str) -> CustomCommand:
    table = cast(dict[str, object], tomllib.loads(text))
    prompt, description = table.get("prompt"), table.get("description", "")
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError('it has no text "prompt"')
    if not isinstance(description, str):
        raise ValueError('"description" is not text')
    return CustomCommand(
        name=name,
        prompt=prompt,
        file=file,
        form="toml",
        origin=origin,
        description=" ".join(description.split()),
    )


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
            # In a prompt of codex, `@` is a letter like any other.
            own.append(typed if command.origin == "codex" else filled)
        elif kind == "file":
            whole.append(read(_filled(command, text, typed).strip()))
        else:
            output = await run(_filled(command, text, typed, quoted=True).strip())
            whole.append(_capped(output))
    added = _appended(command, typed)
    return Expanded("".join(whole) + added, "".join(own) + added)


def preview(command: CustomCommand, typed: str) -> str:
    """The prompt with what was typed; files and shell parts as they are written."""
    shown: list[str] = []
    for kind, text in _pieces(command):
        filled = _filled(command, text, typed, quoted=kind == "shell")
        if kind == "text":
            shown.append(filled)
        elif command.form == "markdown":
            shown.append(f"!`{filled}`")
        else:
            shown.append(f"{'!' if kind == 'shell' else '@'}{{{filled}}}")
    return "".join(shown) + _appended(command, typed)


def _pieces(command: CustomCommand) -> Iterator[tuple[str, str]]:
    """The pieces of a prompt: `text`, `file` and `shell`, in their order."""
    text, at = command.prompt, 0
    if command.origin == "codex":
        yield "text", text
        return
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
    if command.origin == "codex":
        return _named(text, words, typed)

    def put(found: re.Match[str]) -> str:
        if found[1] == "ARGUMENTS":
            return shlex.quote(typed) if quoted and typed else typed
        at = int(found[1])
        word = words[at - 1] if at <= len(words) else ""
        return shlex.quote(word) if quoted and word else word

    return _POSITION.sub(put, text)


def _named(text: str, words: list[str], typed: str) -> str:
    """Text with codex's places: by position, by name (`NAME=value`), or all of it."""
    pairs = [found for word in words if (found := _GIVEN.fullmatch(word))]
    given = {found[1]: found[2] for found in pairs}
    others = [word for word in words if not _GIVEN.fullmatch(word)]

    def put(found: re.Match[str]) -> str:
        name = found[1]
        if name == "$":
            return "$"
        if name == "ARGUMENTS":
            return typed
        if name.isdigit():
            return others[int(name) - 1] if int(name) <= len(others) else ""
        return given.get(name, found[0])

    return _NAMED.sub(put, text)


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
    places = _NAMED if command.origin == "codex" else _POSITION
    return "" if places.search(command.prompt) else f"\n\nARGUMENTS: {typed}"


def _capped(output: str) -> str:
    if len(output) <= _MOST_OUTPUT:
        return output
    half = _MOST_OUTPUT // 2
    left = len(output) - _MOST_OUTPUT
    return f"{output[:half]}\n… {left} characters left out …\n{output[-half:]}"
