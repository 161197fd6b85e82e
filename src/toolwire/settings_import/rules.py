"""Permissions of other programs as rules: Claude Code's entries, gemini-cli's policies."""

import re
from typing import Any, cast

from toolwire.config.schema import rendered
from toolwire.errors import BadInput
from toolwire.mcp.lists import members, text
from toolwire.policy import Mode
from toolwire.policy.rule_file import load
from toolwire.policy.rules import Rule, Verdict
from toolwire.policy.ruling import is_prefix
from toolwire.settings_import.plan import Plan, Table, texts
from toolwire.tools.spec import Effect

SHELL = "run_shell_command"
CLAUDE_TOOLS = {
    "Bash": SHELL,
    "Glob": "glob",
    "Grep": "search_file_content",
    "LS": "list_directory",
    "WebFetch": "web_fetch",
    "WebSearch": "google_web_search",
    "TodoWrite": "todo",
}
_EFFECTS = {
    "Read": Effect.READ,
    "Edit": Effect.WRITE,
    "MultiEdit": Effect.WRITE,
    "Write": Effect.WRITE,
}
_ENTRY = re.compile(r"([A-Za-z_][\w-]*)(?:\((.*)\))?", re.DOTALL)
_GEMINI_DECISIONS = {"allow": Verdict.ALLOW, "deny": Verdict.DENY, "ask_user": Verdict.ASK}
_GEMINI_MODES = {"default": Mode.DEFAULT, "autoEdit": Mode.AUTO_EDIT, "plan": Mode.PLAN}


def claude_entry(plan: Plan, key: str, entry: str, decision: Verdict) -> None:
    """One entry of `permissions`: `Bash(git log:*)`, `Read(./x/**)`, `mcp__server__tool`."""
    found = _ENTRY.fullmatch(entry.strip())
    if found is None:
        plan.leave(key, "it is not of the form Tool or Tool(what)")
        return
    tool, inside = found[1], found[2]
    if tool.startswith("mcp__"):
        _, server, *rest = tool.split("__", 2)
        plan.rule(key, Rule(decision=decision, server=server, tool=rest[0] if rest else "*"))
    elif tool == "Bash":
        shell_entry(plan, key, inside or "*", decision)
    elif tool in _EFFECTS:
        path = _path(inside or "")
        plan.rule(key, Rule(decision=decision, effect=_EFFECTS[tool], path=path))
    elif tool == "WebFetch" and inside:
        _web_entry(plan, key, inside.removeprefix("domain:"), decision)
    elif tool in CLAUDE_TOOLS:
        plan.rule(key, Rule(decision=decision, tool=CLAUDE_TOOLS[tool]))
    else:
        plan.leave(key, f"toolwire has no tool {tool}")


def shell_entry(plan: Plan, key: str, pattern: str, decision: Verdict) -> None:
    """A command, with `:*` or ` *` at its end if others may follow; `*` alone is every command."""
    command = re.sub(r"(:\*|\s+\*)$", "", pattern.strip())
    begins = command != pattern.strip()
    if command == "*":
        if decision == Verdict.ALLOW:
            plan.leave(key, "it would allow every command; use the sandbox and answer when asked")
        else:
            plan.rule(key, Rule(decision=decision, tool=SHELL))
        return
    try:
        words = load(f"[[rule]]\ndecision = 'ask'\ncommand = {rendered(command)}", key)[0].command
    except BadInput:
        plan.leave(key, "it is not a plain command")
        return
    if decision == Verdict.ALLOW and begins and not is_prefix(words):
        plan.leave(key, f"it would allow whatever follows {command}; answer when you are asked")
        return
    plan.rule(key, Rule(decision=decision, tool=SHELL, command=words, exact=not begins))


def _web_entry(plan: Plan, key: str, domain: str, decision: Verdict) -> None:
    if decision == Verdict.ALLOW:
        plan.leave(key, "one fetch may name several addresses; answer when you are asked")
        return
    pattern = ("prompt", f"*{domain}*")
    plan.rule(key, Rule(decision=decision, tool="web_fetch", arguments=(pattern,)))


def _path(pattern: str) -> str:
    """`//x` is absolute there, `/x` below the project, as `./x`."""
    if pattern.startswith("//"):
        return pattern[1:]
    return pattern.removeprefix("./").lstrip("/") if pattern[:1] in "./" else pattern


def gemini_policies(plan: Plan, document: Table, file: str) -> None:
    """The rules of a file below `policies/`, highest priority first."""
    listed = cast(list[Any], document.get("rule") or [])
    rules = sorted(map(members, listed), key=lambda rule: -_number(rule.get("priority")))
    priorities = {_number(rule.get("priority")) for rule in rules}
    for at, rule in enumerate(rules):
        _gemini_rule(plan, f"{file}: rule {at + 1}", rule)
    if len(priorities) > 1:
        plan.leave(f"{file}: priority", "here the strictest rule that matches applies")


def _gemini_rule(plan: Plan, key: str, rule: Table) -> None:
    decision = _GEMINI_DECISIONS.get(text(rule.get("decision")))
    unread = [name for name in ("argsPattern", "commandRegex", "toolAnnotations") if name in rule]
    if decision is None:
        plan.leave(key, f"its decision is {rule.get('decision')!r}")
        return
    if unread:
        plan.leave(key, f"{unread[0]} has no counterpart")
        return
    if "yolo" in texts(rule.get("modes")):
        plan.leave(key, "a rule for yolo is never taken over")
        return
    modes = tuple(_GEMINI_MODES[mode] for mode in texts(rule.get("modes")) if mode in _GEMINI_MODES)
    server = text(rule.get("mcpName"))
    for tool in texts(rule.get("toolName")) or ("*",):
        for prefix in texts(rule.get("commandPrefix")):
            shell_entry(plan, key, f"{prefix} *", decision)
        if "commandPrefix" in rule:
            continue
        if decision == Verdict.ALLOW and tool in ("*", SHELL, "ShellTool") and not server:
            plan.leave(key, "it would allow every command; answer when you are asked")
            continue
        plan.rule(key, Rule(decision=decision, tool=tool, server=server, modes=modes))


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0
