"""How the members of opencode's settings are read, and of the programs that have its form."""

from typing import Any

from toolwire.mcp.lists import members, text
from toolwire.policy.rules import Rule, Verdict
from toolwire.settings_import.plan import MemberReader, Plan, because, nothing, texts
from toolwire.settings_import.rules import shell_entry
from toolwire.tools.spec import Effect

_DIALECTS = {
    "@ai-sdk/openai-compatible": "openai-chat",
    "@ai-sdk/openai": "openai-responses",
    "@ai-sdk/anthropic": "anthropic-messages",
    "@ai-sdk/google": "gemini",
}
"""The formats of the packages by which opencode reaches a server."""


def _providers(plan: Plan, key: str, value: Any) -> None:
    for name, one in members(value).items():
        table = members(one)
        options = members(table.get("options"))
        if "apiKey" in options:
            plan.leave(f"{key}.{name}.options.apiKey", "keys are never taken over")
        if not text(options.get("baseURL")):
            plan.leave(f"{key}.{name}", "it has no address of its own")
            continue
        package = text(table.get("npm")) or "@ai-sdk/openai-compatible"
        if package not in _DIALECTS:
            plan.leave(f"{key}.{name}", f"toolwire does not know the format of {package}")
            continue
        dialect = _DIALECTS[package]
        address = str(options["baseURL"]).rstrip("/")
        ours = {
            "dialect": dialect,
            # Its package has the version in the address, ours adds it.
            "base_url": address.removesuffix("/v1") if "anthropic" in dialect else address,
            "title": text(table.get("name")),
            "models": list(members(table.get("models"))),
        }
        plan.take_provider(f"{key}.{name}", name, {k: v for k, v in ours.items() if v})


def _permission(plan: Plan, key: str, value: Any) -> None:
    for name, one in members(value).items():
        patterns = members(one) if isinstance(one, dict) else {"*": one}
        for pattern, word in patterns.items():
            _rule(plan, f"{key}.{name}: {pattern}", name, pattern, text(word))


def _rule(plan: Plan, key: str, name: str, pattern: str, word: str) -> None:
    if word not in tuple(Verdict):
        plan.leave(key, f"its value is {word!r}")
        return
    decision = Verdict(word)
    path = "" if pattern == "*" else pattern
    match name:
        case "bash":
            shell_entry(plan, key, pattern, decision)
        case "edit":
            plan.rule(key, Rule(decision=decision, effect=Effect.WRITE, path=path))
        case "read":
            plan.rule(key, Rule(decision=decision, effect=Effect.READ, path=path))
        case "webfetch":
            plan.rule(key, Rule(decision=decision, tool="web_fetch"))
        case _:
            plan.leave(key, f"toolwire has no permission for {name}")


def _model(plan: Plan, key: str, value: Any) -> None:
    plan.take(key, "default_model", value)


def _instructions(plan: Plan, key: str, value: Any) -> None:
    given = texts(value)
    names = [one for one in given if not set("/*") & set(one)]
    paths = [one for one in given if one not in names and "://" not in one]
    for one in given:
        if "://" in one:
            plan.leave(f"{key}: {one}", "notes are files")
    if names:
        plan.take(key, "context.files", ["AGENTS.md", *(n for n in names if n != "AGENTS.md")])
    if paths:
        plan.take(key, "context.include", [one.removeprefix("./") for one in paths])


OPENCODE = MemberReader(
    special={
        "model": _model,
        "provider": _providers,
        "permission": _permission,
        "instructions": _instructions,
        "mcp": nothing,
        "agent": because("agents are read where they are, as files: .opencode/agent/NAME.md"),
        "command": because("it is read where it is: toolwire commands list"),
    },
    ignored=("$schema",),
)
