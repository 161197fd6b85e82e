"""Definitions of hooks: from our settings, and from the files of Claude Code and gemini-cli."""

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec

from toolwire.errors import BadInput, UnknownName
from toolwire.extensions.front_matter import without_comments
from toolwire.storage.private_files import ApprovalStore

Program: TypeAlias = Literal["toolwire", "claude", "gemini"]

TOOL_EVENTS = ("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure")
MATCHED = {
    **dict.fromkeys(TOOL_EVENTS, "tool_name"),
    "SessionStart": "source",
    "SessionEnd": "reason",
    "PreCompact": "trigger",
    "PostCompact": "trigger",
    "Notification": "notification_type",
    "SubagentStart": "agent_type",
    "SubagentStop": "agent_type",
    "UserPromptSubmit": "",
    "Stop": "",
    "StopFailure": "",
}
"""Every event, and the member of its input that a matcher is compared with."""
EVENTS = tuple(MATCHED)
ALIASES: Mapping[str, tuple[str, ...]] = {
    "BeforeTool": ("PreToolUse",),
    "AfterTool": ("PostToolUse", "PostToolUseFailure"),
    "BeforeAgent": ("UserPromptSubmit",),
    "AfterAgent": ("Stop",),
    "PreCompress": ("PreCompact",),
}
"""gemini-cli's names of these events."""
MODEL_EVENTS = ("BeforeModel", "AfterModel", "BeforeToolSelection")
_NO_MODEL_EVENTS = (
    "hooks of requests to the model are not supported; the library's before_request is"
)
_SECONDS = 60.0
_LARGEST = 1 << 20
_NAMES_ONLY = re.compile(r"[\w|,\- ]*", re.ASCII)
_PROJECT_FOLDER = re.compile(r"\$\{?(?:CLAUDE|GEMINI)_PROJECT_DIR\}?")
PROJECT_FILES = {
    "claude": (".claude/settings.json", ".claude/settings.local.json"),
    "gemini": (".gemini/settings.json",),
}


class HookTableEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Members of one `[[hooks.EVENT]]` table."""

    matcher: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = _SECONDS
    name: str = ""
    required: bool = False
    transcript: bool = False


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One hook."""

    event: str
    written: str
    """The event as the file names it."""
    matcher: str = ""
    command: str = ""
    """Shell text."""
    args: tuple[str, ...] = ()
    """Program and arguments, without a shell."""
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = _SECONDS
    name: str = ""
    required: bool = False
    """A failure counts as a refusal."""
    transcript: bool = False
    """It reads the transcript, even if its text does not show that."""
    background: bool = False
    """It is not waited for, and its answer is ignored."""
    sequential: int = 0
    """Number of a group whose members run one after another; 0 for none."""
    program: Program = "toolwire"
    """Whose names and texts it uses."""
    origin: str = ""
    project: bool = False
    """The project brings it: it needs trust and approval."""

    @property
    def kind(self) -> str:
        """`command` or `http`."""
        return "http" if self.url else "command"

    @property
    def shown(self) -> str:
        """Its name, or what it runs."""
        return self.name or self.command or shlex.join(self.args) or self.url

    @property
    def key(self) -> str:
        """Under which its approval is stored."""
        return f"hook:{self.event}:{self.matcher}:{self.shown}"

    def matches(self, subject: str) -> bool:
        """Whether it is meant for a tool, a source, a trigger or a reason."""
        if self.matcher in ("", "*"):
            return True
        if _NAMES_ONLY.fullmatch(self.matcher):
            return subject in (word.strip() for word in re.split(r"[|,]", self.matcher))
        return re.fullmatch(self.matcher, subject) is not None


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that is not run, and why."""

    event: str
    why: str
    origin: str
    matcher: str = ""
    name: str = ""
    kind: str = "command"


class FoundHooks(msgspec.Struct, frozen=True):
    """What the files define."""

    hooks: tuple[Definition, ...]
    skipped: tuple[Skipped, ...]


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """One entry with its event, before it is validated."""

    event: str
    entry: object
    program: Program
    origin: str
    project: bool
    sequential: int = 0


def read_definitions(
    tables: Iterable[tuple[str, Mapping[str, Any], bool, str]],
    programs: Iterable[str],
    *,
    cwd: Path,
    home: Path,
    trusted: bool,
) -> FoundHooks:
    """Every hook: those of tables (event, table, whether a project's, origin), then of files.

    An entry that cannot be read is left out and reported; the rest applies. Without trust nothing
    of the project is read.
    """
    hooks: list[Definition] = []
    skipped: list[Skipped] = []
    written = [
        _Written(event=event, entry=table, program="toolwire", origin=origin, project=project)
        for event, table, project, origin in tables
        if trusted or not project
    ]
    for program in programs:
        written += _of_program(cast(Program, program), cwd, home, trusted, skipped.append)
    for one in written:
        try:
            hooks += _definitions(one)
        except BadInput as error:
            skipped.append(_unusable(one, str(error)))
    return FoundHooks(tuple(hooks), tuple(skipped))


def _unusable(one: _Written, why: str) -> Skipped:
    entry: Any = one.entry
    table: dict[str, Any] = cast(dict[str, Any], entry) if isinstance(entry, dict) else {}
    return Skipped(
        event=one.event,
        why=why,
        origin=one.origin,
        matcher=str(table.get("matcher") or ""),
        name=str(table.get("name") or table.get("command") or table.get("url") or ""),
        kind="http" if table.get("url") else str(table.get("type") or "command"),
    )


def _definitions(one: _Written) -> list[Definition]:
    if one.event in MODEL_EVENTS:
        raise BadInput(_NO_MODEL_EVENTS)
    events = (one.event,) if one.event in MATCHED else ALIASES.get(one.event, ())
    if not events:
        raise BadInput(str(UnknownName("hook event", one.event, (*EVENTS, *ALIASES))))
    table = _own(one.entry) if one.program == "toolwire" else _foreign(one.entry, one.program)
    base = Definition(
        event="",
        written=one.event,
        program=one.program,
        origin=one.origin,
        project=one.project,
        sequential=one.sequential,
    )
    _check(table)
    return [msgspec.structs.replace(base, event=event, **table) for event in events]


def _own(entry: object) -> dict[str, Any]:
    try:
        table = msgspec.convert(entry, HookTableEntry)
    except msgspec.ValidationError as error:
        raise BadInput(str(error)) from error
    return {name: getattr(table, name) for name in table.__struct_fields__}


def _foreign(entry: object, program: Program) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise BadInput("it is not an object")
    table = cast(dict[str, Any], entry)
    kind = table.get("type", "command")
    if kind not in ("command", "http"):
        raise BadInput(f'hooks of the type "{kind}" are not supported')
    for name in ("if", "once"):
        if table.get(name):
            raise BadInput(f'its condition "{name}" is not supported')
    timeout = table.get("timeout")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
        raise BadInput("timeout is not a number")
    unit = 1000.0 if program == "gemini" else 1.0
    found: dict[str, Any] = {
        "matcher": table.get("matcher") or "",
        "command": "" if kind == "http" else table.get("command"),
        "url": table.get("url") if kind == "http" else "",
        "name": table.get("name") or "",
        "headers": table.get("headers") or {},
        "timeout": _SECONDS if timeout is None else timeout / unit,
        "background": table.get("async") is True,
    }
    for name in ("matcher", "command", "url", "name"):
        if not isinstance(found[name], str):
            raise BadInput(f"{name} is not text")
    return found


def _check(table: dict[str, Any]) -> None:
    given = [name for name in ("command", "args", "url") if table.get(name)]
    if len(given) != 1:
        raise BadInput("give one of command, args and url")
    if not table["timeout"] > 0:
        raise BadInput("timeout must be above 0")
    matcher = table["matcher"]
    if matcher not in ("", "*") and not _NAMES_ONLY.fullmatch(matcher):
        try:
            re.compile(matcher)
        except re.error as error:
            raise BadInput(f"matcher is not a regular expression: {error}") from error
    if table["url"]:
        parts = urlsplit(str(table["url"]))
        host = parts.hostname or ""
        local = host in ("localhost", "::1") or host.startswith("127.")
        if parts.scheme != "https" and not (parts.scheme == "http" and local):
            raise BadInput("url must begin with https://, or with http:// on this machine")


def _of_program(
    program: Program, cwd: Path, home: Path, trusted: bool, skip: Callable[[Skipped], None]
) -> Iterator[_Written]:
    """The entries of a program's settings files: the user's first, then the project's."""
    files = [(home / f".{program}" / "settings.json", False)]
    files += [(cwd / name, True) for name in PROJECT_FILES[program] if trusted]
    seen: set[str] = set()
    for file, project in files:
        if (found := os.path.realpath(file)) in seen:
            continue
        seen.add(found)
        origin = _shown(file, cwd, home)
        try:
            document = _document(file)
            yield from _groups(document.get("hooks"), program, origin, project, skip)
        except BadInput as error:
            skip(Skipped(event="", why=str(error), origin=origin))


def _document(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError:
        return {}
    if len(data) > _LARGEST:
        raise BadInput("the file has more than 1 MB")
    try:
        found: object = json.loads(without_comments(data.decode("utf-8-sig")))
    except ValueError as error:
        raise BadInput(f"the file is not JSON: {error}") from error
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _groups(
    hooks: object, program: Program, origin: str, project: bool, skip: Callable[[Skipped], None]
) -> Iterator[_Written]:
    if hooks is None:
        return
    if not isinstance(hooks, dict):
        raise BadInput("its hooks are not an object")
    number = 0
    for event, groups in cast(dict[str, Any], hooks).items():
        if event in ("enabled", "disabled", "notifications"):
            # Settings of gemini-cli beside its events.
            continue
        for group in cast(list[Any], groups if isinstance(groups, list) else [groups]):
            number += 1
            table = cast(dict[str, Any], group) if isinstance(group, dict) else {}
            listed = table.get("hooks")
            if not isinstance(listed, list):
                words = "it has no list of hooks"
                skip(Skipped(event=event, why=words, origin=origin))
                continue
            for entry in cast(list[object], listed):
                if isinstance(entry, dict):
                    entry = {**cast(dict[str, Any], entry), "matcher": table.get("matcher")}
                yield _Written(
                    event=event,
                    entry=entry,
                    program=program,
                    origin=origin,
                    project=project,
                    sequential=number if table.get("sequential") is True else 0,
                )


def _shown(file: Path, cwd: Path, home: Path) -> str:
    if file.is_relative_to(cwd):
        return str(file.relative_to(cwd))
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) else str(file)


def named_files(hook: Definition, cwd: Path) -> tuple[Path, ...]:
    """The files that the command of a hook names."""
    words = hook.args
    if hook.command:
        text = _PROJECT_FOLDER.sub(lambda _: str(cwd), hook.command)
        try:
            words = tuple(shlex.split(text))
        except ValueError:
            words = tuple(text.split())
    found = (cwd / word for word in words if word and "\0" not in word)
    return tuple(dict.fromkeys(path for path in found if path.is_file()))


def digest_of_hook(hook: Definition, cwd: Path) -> str:
    """What an approval is bound to: the definition, and the project's files that it names."""
    whole = hashlib.sha256(msgspec.json.encode(hook, order="sorted"))
    for path in named_files(hook, cwd):
        if path.resolve().is_relative_to(cwd.resolve()):
            try:
                content = path.read_bytes()
            except OSError:
                content = b"unreadable"
            whole.update(f"\0{path}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            whole.update(content)
    return whole.hexdigest()


def is_approved(hook: Definition, cwd: Path, approvals: ApprovalStore) -> bool:
    """Whether it may run: the user's own always, a project's as it was approved."""
    if not hook.project:
        return True
    return approvals.answer(cwd, hook.key, digest_of_hook(hook, cwd)) is True
