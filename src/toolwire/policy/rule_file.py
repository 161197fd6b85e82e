"""Rules from TOML and from gemini-cli's tool lists, and the command prefixes in those lists."""

import re
import tomllib
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from toolwire.errors import BadInput
from toolwire.policy import Mode
from toolwire.policy.locations import Locations
from toolwire.policy.rules import Rule, Verdict
from toolwire.policy.ruling import is_prefix
from toolwire.policy.shell import Script, Unproven, prove
from toolwire.policy.shell.commands import inner_commands
from toolwire.request import JsonObject
from toolwire.tools.registry import Registry, plain, prefixes
from toolwire.tools.spec import Effect, ToolContext
from toolwire.wire.json_access import dump as dump_json

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[rule]]` table as written in the file."""

    decision: Verdict
    tool: _Text = "*"
    server: str = ""
    digest: str = ""
    effect: Effect | None = None
    command: str | tuple[str, ...] | None = None
    exact: bool = False
    project: str = ""
    path: str = ""
    arguments: dict[str, str] = {}
    modes: tuple[Mode, ...] = ()
    sandbox: Literal["", "off"] = ""
    network: bool = False
    reason: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    rule: tuple[_Written, ...] = ()


def load(text: str, origin: str) -> tuple[Rule, ...]:
    """The rules of a file; an unreadable file is an error, never an empty list."""
    try:
        written = msgspec.convert(tomllib.loads(text), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"unreadable rule file {origin}: {error}") from error
    rules = [
        *(_listed(entry, Verdict.DENY, origin) for entry in written.deny),
        *(_listed(entry, Verdict.ASK, origin) for entry in written.ask),
        *(_listed(entry, Verdict.ALLOW, origin) for entry in written.allow),
        *(_rule(each, origin) for each in written.rule),
    ]
    return tuple(rules)


ANSWERED = "# answered: always"
"""The line above a rule that an answer added."""


def too_wide(text: str, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Rules that earlier versions stored for an answer and that allow more than it showed."""
    tables = re.findall(rf"^({re.escape(ANSWERED)}\n)?\[\[rule\]\]", text, re.MULTILINE)
    stored = rules[len(rules) - len(tables) :]
    return tuple(
        rule
        for answered, rule in zip(tables, stored, strict=False)
        if answered and rule.command and not rule.exact and not is_prefix(rule.command)
    )


def _rule(written: _Written, origin: str) -> Rule:
    words = () if written.command is None else _words(written.command, origin)
    if words and written.tool == "*":
        written = msgspec.structs.replace(written, tool="run_shell_command")
    return Rule(
        decision=written.decision,
        tool=plain(written.tool),
        server=written.server,
        digest=written.digest,
        effect=written.effect,
        command=words,
        exact=written.exact,
        project=written.project,
        path=written.path,
        arguments=tuple(written.arguments.items()),
        modes=written.modes,
        sandbox=written.sandbox,
        network=written.network,
        reason=written.reason,
        origin=origin,
    )


def _listed(entry: str, decision: Verdict, origin: str) -> Rule:
    """An entry of a tool list: `read_file`, `run_shell_command(git log)`, `ShellTool(ls)`."""
    _, bracket, rest = entry.partition("(")
    if bracket and not rest.endswith(")"):
        raise BadInput(f'unreadable entry "{entry}" in {origin}: the bracket is not closed')
    prefix = rest.removesuffix(")").strip()
    words = _words(prefix, origin) if bracket and prefix != "*" else ()
    return Rule(decision=decision, tool=plain(entry), command=words, origin=origin)


def _words(prefix: str | tuple[str, ...], origin: str) -> tuple[str, ...]:
    """The words of a command prefix; an empty one would match every command, so it is an error."""
    words = _plain_words(prefix) if isinstance(prefix, str) else prefix
    if not words or not words[0]:
        raise BadInput(f'the command prefix "{prefix}" in {origin} is not a plain command')
    return words


def _plain_words(prefix: str) -> tuple[str, ...]:
    """The words of one simple command; empty for any other text. `*` stays a pattern."""
    script = prove(prefix)
    if not isinstance(script, Script) or len(script.steps) != 1:
        return ()
    commands = tuple(script.commands())
    command = commands[0]
    if len(commands) != 1 or command.redirects or command.assignments:
        return ()
    return tuple(word.text for word in command.words)


def of_lists(
    *, allowed: Iterable[str] = (), exclude: Iterable[str] = (), origin: str = "settings"
) -> tuple[Rule, ...]:
    """Rules of gemini-cli's `tools.allowed` and `tools.exclude` (`--allowed-tools`)."""
    return (
        *(_listed(entry, Verdict.DENY, origin) for entry in exclude),
        *(_listed(entry, Verdict.ALLOW, origin) for entry in allowed),
    )


def with_absolute_paths(rules: Iterable[Rule], locations: Locations) -> tuple[Rule, ...]:
    """The rules with path patterns relative to the workspace, or to `~`, made absolute."""
    return tuple(
        msgspec.structs.replace(each, path=_absolute(each.path, locations)) if each.path else each
        for each in rules
    )


def _absolute(pattern: str, locations: Locations) -> str:
    pattern = pattern.rstrip("/") or "/"
    if pattern.startswith("~/"):
        return f"{locations.home}{pattern[1:]}"
    return pattern if pattern.startswith("/") else f"{locations.roots[0].rstrip('/')}/{pattern}"


def dump(rule: Rule) -> str:
    """One rule as a TOML table, to be added to a rule file."""
    lines = ["[[rule]]", f"decision = {_quoted(rule.decision)}", f"tool = {_quoted(rule.tool)}"]
    for name in ("server", "digest", "project", "path", "reason"):
        value: str = getattr(rule, name)
        lines += [f"{name} = {_quoted(value)}"] if value else []
    lines += [f"effect = {_quoted(rule.effect)}"] if rule.effect else []
    lines += [f"command = {_list(rule.command)}"] if rule.command else []
    lines += ["exact = true"] if rule.exact else []
    lines += [f"modes = {_list(rule.modes)}"] if rule.modes else []
    lines += [f"sandbox = {_quoted(rule.sandbox)}"] if rule.sandbox else []
    lines += ["network = true"] if rule.network else []
    if rule.arguments:
        pairs = (f"{_quoted(name)} = {_quoted(value)}" for name, value in rule.arguments)
        lines.append(f"arguments = {{ {', '.join(pairs)} }}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string, but for DEL.
    return msgspec.json.encode(str(text)).decode().replace("\x7f", "\\u007f")


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(_quoted(each) for each in texts)}]"


SHELL = "run_shell_command"
_NOT_LISTED = "Command(s) not in the allowed commands list. Disallowed commands:"


def limited(registry: Registry, core: tuple[str, ...], exclude: tuple[str, ...]) -> Registry:
    """The tools; the shell rejects commands that the lists forbid, with gemini-cli's messages."""
    allowed = prefixes(core, SHELL) or ()
    blocked = prefixes((entry for entry in exclude if "(" in entry), SHELL) or ()
    if not allowed and not blocked:
        return registry
    shell = registry.get(plain(SHELL))
    if shell is None:
        return registry
    inner = shell.check

    def check(arguments: JsonObject, context: ToolContext) -> str:
        command = str(arguments.get("command", ""))
        return complaint(command, allowed, blocked) or inner(arguments, context)

    narrow = msgspec.structs.replace(shell, check=check)
    return Registry(narrow if tool is shell else tool for tool in registry)


def complaint(command: str, allowed: tuple[str, ...], blocked: tuple[str, ...]) -> str:
    """Why a command may not run; checks every command in it, nested ones included."""
    if not command.strip():
        return ""
    script = prove(command)
    if isinstance(script, Unproven):
        # A list of what is blocked is a rule too, so the ruling asks; a list of what is allowed
        # allows nothing that is not certain.
        named = dump_json(_one_line(command))
        return f"{_NOT_LISTED} {named} ({script.reason})" if allowed else ""
    parts = [
        (" ".join(words), _one_line(part.source))
        for part in script.commands()
        if part.words
        for words in inner_commands(tuple(word.text for word in part.words))
    ]
    for meant, source in parts:
        if any(meant.startswith(prefix) for prefix in blocked):
            return f"Command '{source}' is blocked by configuration"
    if not allowed:
        return ""
    outside = [
        source for meant, source in parts if not any(_begins(meant, prefix) for prefix in allowed)
    ]
    if not parts:
        outside = [_one_line(command)]
    if outside:
        named = ", ".join(dump_json(part) for part in outside)
        return f"{_NOT_LISTED} {named}"
    return ""


def _begins(command: str, prefix: str) -> bool:
    return command == prefix or command.startswith(f"{prefix} ")


def _one_line(text: str) -> str:
    return " ".join(text.split())
