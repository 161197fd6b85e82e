"""The built-in system prompt, composed from texts, or the user's own prompt file."""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from pkgutil import get_data

import msgspec

from toolwire.errors import BadInput
from toolwire.policy import Mode

_SEARCHING = frozenset({"search_file_content", "glob"})
_EDITING = frozenset({"replace", "write_file", "apply_patch"})
_WEB = frozenset({"web_fetch", "google_web_search"})
_SHELL = "run_shell_command"


class PromptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that the prompt depends on; equal facts give equal bytes."""

    tools: tuple[str, ...]
    """Names of the offered tools; their order does not matter."""
    git: bool = False
    sandbox: str = ""
    """Name of the sandbox of commands; empty for none."""
    interactive: bool = True
    mode: Mode = Mode.DEFAULT


def system_prompt(facts: PromptFacts) -> str:
    """The prompt for these facts."""
    prompt = ""
    for name in _chosen(facts):
        text = _words(name)
        # A section begins with its heading; single lines go on with the list above them.
        gap = "\n\n" if text.startswith("#") else "\n"
        prompt += (gap if prompt else "") + text
    return prompt.replace("{sandbox}", facts.sandbox)


def _chosen(facts: PromptFacts) -> Iterator[str]:
    tools, planning = frozenset(facts.tools), facts.mode is Mode.PLAN
    yield "role"
    if planning:
        yield from ("plan", "working.plan")
    else:
        yield "working"
    if tools:
        yield from _tool_sections(tools, facts)
    if not planning:
        yield "care"
        yield "git" if facts.git else "no_git"
    yield "interactive" if facts.interactive else "headless"
    yield "style"


def _tool_sections(tools: frozenset[str], facts: PromptFacts) -> Iterator[str]:
    planning = facts.mode is Mode.PLAN
    yield "tools"
    if tools & _SEARCHING:
        yield "tools.search"
    if tools & _EDITING and not planning:
        yield "tools.edit"
    if "todo" in tools:
        yield "tools.todo"
    if tools & _WEB:
        yield "tools.web"
    if "save_memory" in tools and not planning:
        yield "tools.save_memory"
    if "ask_user" in tools and facts.interactive:
        yield "tools.ask_user"
    if facts.interactive and not planning:
        yield f"approval.{facts.mode}"
    if _SHELL in tools and not planning:
        yield "commands"
        yield "sandbox" if facts.sandbox else "no_sandbox"


@cache
def _words(name: str) -> str:
    return (get_data("toolwire.context.prompt", f"{name}.md") or b"").decode().strip()


USED = "GEMINI_SYSTEM_MD"
WRITTEN = "GEMINI_WRITE_SYSTEM_MD"
LARGEST = 1 << 20
"""Bytes of a system prompt."""
PROJECT_FILES = (Path(".gemini") / "system.md", Path(".toolwire") / "system.md")


class SystemPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt and its source, without memory."""

    text: str
    file: str = ""
    """The user's file; empty for the built-in prompt."""
    written: str = ""
    """Path to which the built-in prompt was written, if requested."""


def chosen_prompt(
    facts: PromptFacts,
    *,
    environ: Mapping[str, str],
    folder: Path,
    home: Path,
    text: str | None = None,
    file: Path | None = None,
    source: str = "--system",
    trusted: bool = True,
) -> SystemPrompt:
    """The text, else the file of `--system`, else that of `GEMINI_SYSTEM_MD`, else our own prompt.

    `GEMINI_WRITE_SYSTEM_MD` writes the built-in prompt to a file. An untrusted project may not
    replace the prompt. `source` is what named the file, for errors.
    """
    own = system_prompt(facts)
    used = folder / file if file else _named(environ, USED, folder, home)
    if text is not None:
        used = None
    if used is not None and not file:
        _check_project_file(used, folder, USED, trusted=trusted)
    target = _named(environ, WRITTEN, folder, home)
    if target is not None:
        # To write there, the folder needs no trust; a link in it may lead anywhere.
        _check_project_file(target, folder, WRITTEN, trusted=True)
    # A prompt file that is in use is never overwritten.
    written = "" if target is None or target == used else _write(target, own)
    if used is None:
        return SystemPrompt(text=own if text is None else text, written=written)
    text = read_prompt(used, source if file else USED)
    return SystemPrompt(text=text, file=str(used), written=written)


def _named(environ: Mapping[str, str], variable: str, folder: Path, home: Path) -> Path | None:
    value = environ.get(variable, "").strip()
    match value.lower():
        case "" | "0" | "false":
            return None
        case "1" | "true":
            present = (folder / file for file in PROJECT_FILES if _exists(folder / file))
            return next(present, folder / PROJECT_FILES[0])
        case _:
            if value == "~" or value.startswith("~/"):
                return home / value[2:]
            return folder / value


def _exists(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:
        # A folder without access: reading the file reports it.
        return True


def _check_project_file(file: Path, folder: Path, variable: str, *, trusted: bool) -> None:
    """BadInput for a project's file if the folder is not trusted, or if a link leads out of it."""
    real, root = file.resolve(), folder.resolve()
    written = Path(os.path.normpath(file))
    named_inside = written.is_relative_to(folder) or written.is_relative_to(root)
    if not named_inside and not real.is_relative_to(root):
        return
    if not trusted:
        raise BadInput(
            f"{variable}: {file} belongs to a folder that is not trusted; trust the folder, "
            "or name the file with --system"
        )
    if named_inside and real != root / written.relative_to(
        folder if written.is_relative_to(folder) else root
    ):
        raise BadInput(f"{variable}: {file} leads through a link; name the file itself")
    if real.exists() and not real.is_file():
        raise BadInput(f"{variable}: {file} is not a regular file")


def read_prompt(file: Path, source: str) -> str:
    """The text of a prompt file; BadInput names what named the file."""
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise BadInput(f"{source}: {file} is larger than {LARGEST >> 20} MB; shorten it")
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError as error:
        raise BadInput(
            f"{source}: no such file: {file}; {WRITTEN}={file} writes our own prompt there to "
            "start from"
        ) from error
    except OSError as error:
        raise BadInput(f"{source}: {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{source}: {file} is not UTF-8; save it again as UTF-8") from error


def _write(file: Path, text: str) -> str:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    except OSError as error:
        raise BadInput(f"{WRITTEN}: {file} cannot be written: {error.strerror}") from error
    return str(file)
