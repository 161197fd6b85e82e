"""The programs whose settings are read: where they have them, and how each member is read."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from toolwire.mcp.lists import members, text
from toolwire.policy.rules import Verdict
from toolwire.settings_import.opencode import OPENCODE
from toolwire.settings_import.plan import MemberReader, Plan, Special, because, nothing, texts
from toolwire.settings_import.rules import claude_entry

Kind: TypeAlias = Literal["settings", "servers", "policies"]


class Source(msgspec.Struct, frozen=True):
    """A file of a program, or a pattern of files."""

    path: str
    """With `~`, below the home folder; else below the current one."""
    kind: Kind = "settings"
    own: bool = False
    """A file in the project that its user wrote, and not the project."""
    like: str = ""
    """The program whose form the file has; empty for that of its own program."""


class OtherProgram(msgspec.Struct, frozen=True, kw_only=True):
    """One program."""

    title: str
    sources: tuple[Source, ...]
    reader: MemberReader
    texts: tuple[str, ...] = ()
    """Folders of texts that it adds to every prompt."""


_SECRET = because("keys and tokens are never taken over; see toolwire login")
_TRUST = because("trust is never taken over")


def _hooks(program: str) -> Special:
    """The program's hooks run as they are; those of a project after an approval."""

    def take(plan: Plan, key: str, value: Any) -> None:
        if not members(value):
            return
        if plan.project:
            own = f'hooks.from = ["{program}"] in your own settings, then toolwire approve'
            plan.leave(key, f"it is run where it is: {own}")
        else:
            plan.take(key, "hooks.from", [program])

    return take


def _google(plan: Plan, key: str, value: Any) -> None:
    if isinstance(value, str):
        plan.take(key, "default_model", f"google/{value}")
    else:
        plan.leave(key, "it is not the name of a model")


def _mode(plan: Plan, key: str, value: Any) -> None:
    modes = {
        **dict.fromkeys(("auto_edit", "autoEdit", "acceptEdits"), "auto_edit"),
        "default": "default",
        "plan": "plan",
    }
    if value in modes:
        plan.take(key, "approval_mode", modes[value])
    else:
        plan.leave(key, "a mode that asks nothing is never taken over")


def _file_names(plan: Plan, key: str, value: Any) -> None:
    plan.take(key, "context.files", list(texts(value)))


def _share(plan: Plan, key: str, value: Any) -> None:
    plan.take(key, "compression.threshold", value)


def _allowed(plan: Plan, key: str, value: Any) -> None:
    every = [one for one in texts(value) if one in ("run_shell_command", "ShellTool")]
    for one in every:
        plan.leave(f"{key}: {one}", "it would allow every command; answer when you are asked")
    plan.take(key, "tools.allowed", [one for one in texts(value) if one not in every])


_TELEMETRY_PROTOCOLS = {"http": "http/protobuf", "grpc": "grpc"}


def _telemetry_protocol(plan: Plan, key: str, value: Any) -> None:
    if value in _TELEMETRY_PROTOCOLS:
        plan.take(key, "telemetry.protocol", _TELEMETRY_PROTOCOLS[value])
    else:
        plan.leave(key, f"its value is {value!r}")


_GEMINI = MemberReader(
    same={
        "checkpointing.enabled": "checkpoints.enabled",
        "general.checkpointing.enabled": "checkpoints.enabled",
        "telemetry.enabled": "telemetry.enabled",
        "telemetry.otlpEndpoint": "telemetry.endpoint",
        "telemetry.outfile": "telemetry.outfile",
        "telemetry.logPrompts": "telemetry.prompts",
        "coreTools": "tools.core",
        "excludeTools": "tools.exclude",
        "tools.core": "tools.core",
        "tools.exclude": "tools.exclude",
        "toolDiscoveryCommand": "tools.discovery_command",
        "toolCallCommand": "tools.call_command",
        "tools.discoveryCommand": "tools.discovery_command",
        "tools.callCommand": "tools.call_command",
        "allowMCPServers": "mcp.allowed",
        "excludeMCPServers": "mcp.excluded",
        "mcp.allowed": "mcp.allowed",
        "mcp.excluded": "mcp.excluded",
        "fileFiltering.respectGitIgnore": "context.respect_git_ignore",
        "context.fileFiltering.respectGitIgnore": "context.respect_git_ignore",
        "memoryDiscoveryMaxDirs": "context.max_dirs",
        "context.discoveryMaxDirs": "context.max_dirs",
        "context.importFormat": "context.import_format",
        "memoryImportFormat": "context.import_format",
    },
    special={
        "model": lambda plan, key, value: (
            _google(plan, key, value) if isinstance(value, str) else _model_table(plan, value)
        ),
        "contextFileName": _file_names,
        "context.fileName": _file_names,
        "chatCompression.contextPercentageThreshold": _share,
        "general.defaultApprovalMode": _mode,
        "tools.approvalMode": _mode,
        "allowedTools": _allowed,
        "tools.allowed": _allowed,
        "telemetry.otlpProtocol": _telemetry_protocol,
        "telemetry.target": because("telemetry.endpoint says where it goes"),
        "hooks": _hooks("gemini"),
        "mcpServers": nothing,
        "security.auth": _SECRET,
        "selectedAuthType": _SECRET,
        "security.folderTrust": _TRUST,
        "folderTrust": _TRUST,
    },
    ignored=("$schema", "$version"),
)


def _model_table(plan: Plan, value: Any) -> None:
    inside = MemberReader(
        special={
            "model.name": _google,
            "model.compressionThreshold": _share,
            "model.chatCompression.contextPercentageThreshold": _share,
        },
        same={"model.maxSessionTurns": "limits.turns"},
    )
    inside.read(plan, {"model": members(value)} if members(value) else {})


def _permissions(plan: Plan, key: str, value: Any) -> None:
    table = members(value)
    for name in ("deny", "ask", "allow"):
        for entry in texts(table.get(name)):
            claude_entry(plan, f"{key}.{name}: {entry}", entry, Verdict(name))
    for name, one in table.items():
        if name == "defaultMode":
            _mode(plan, f"{key}.defaultMode", one)
        elif name == "additionalDirectories":
            for folder in texts(one):
                plan.leave(f"{key}.{name}: {folder}", f"name it when you start: --add-dir {folder}")
        elif name not in ("deny", "ask", "allow"):
            plan.leave(f"{key}.{name}", "toolwire has no such setting")


def _short_model(plan: Plan, key: str, value: Any) -> None:
    if not isinstance(value, str):
        plan.leave(key, "it is not the name of a model")
        return
    name = value.removesuffix("[1m]")
    plan.take(key, "default_model", name if "/" in name else f"anthropic/{name}")


def _variables(plan: Plan, key: str, value: Any) -> None:
    for name in members(value):
        plan.leave(f"{key}.{name}", f"values are never taken over; set {name} where you start")


def _approvals(plan: Plan, key: str, value: Any) -> None:
    for name in texts(value):
        plan.leave(f"{key}: {name}", f"confirm it: toolwire mcp approve {name}")


_CLAUDE = MemberReader(
    special={
        "permissions": _permissions,
        "model": _short_model,
        "env": _variables,
        "hooks": _hooks("claude"),
        "enabledMcpjsonServers": _approvals,
        "enableAllProjectMcpServers": because("confirm each: toolwire mcp approve NAME"),
        "apiKeyHelper": _SECRET,
        "mcpServers": nothing,
        "oauthAccount": _SECRET,
        "projects": nothing,
    },
    same={"disabledMcpjsonServers": "mcp.excluded", "cleanupPeriodDays": "sessions.keep_days"},
    ignored=("$schema",),
)


_CODEX_WAYS = {"chat": "openai-chat", "responses": "openai-responses"}
_CODEX_KEYS = ("name", "base_url", "env_key", "wire_api", "http_headers")


def _codex_providers(plan: Plan, key: str, value: Any) -> None:
    for name, one in members(value).items():
        table = members(one)
        if not text(table.get("base_url")):
            plan.leave(f"{key}.{name}", "it has no base_url")
            continue
        ours: dict[str, Any] = {
            "dialect": _CODEX_WAYS.get(text(table.get("wire_api")) or "chat", "openai-chat"),
            "base_url": table["base_url"],
            "title": text(table.get("name")),
            "key_env": text(table.get("env_key")),
            "headers": members(table.get("http_headers")),
        }
        plan.take_provider(f"{key}.{name}", name, {k: v for k, v in ours.items() if v})
        for member in table:
            if member not in _CODEX_KEYS:
                plan.leave(f"{key}.{name}.{member}", "toolwire has no such setting")


def _approval_policy(plan: Plan, key: str, value: Any) -> None:
    if value == "never":
        plan.leave(key, "a mode that asks nothing is never taken over")
    else:
        plan.take(key, "approval_mode", "default")


def _sandbox(plan: Plan, key: str, value: Any) -> None:
    if value == "danger-full-access":
        plan.leave(key, "a sandbox is never switched off by an import")
    else:
        plan.take(key, "tools.sandbox", value)


_CODEX = MemberReader(
    same={"model_reasoning_effort": "reasoning.effort"},
    special={
        "model_providers": _codex_providers,
        "approval_policy": _approval_policy,
        "sandbox_mode": _sandbox,
        "projects": _TRUST,
        "mcp_servers": nothing,
        "notify": because("see ui.notify"),
        "model": nothing,
        "model_provider": nothing,
    },
)


def codex_model(plan: Plan, document: Mapping[str, Any]) -> None:
    """`model` and `model_provider` together name a model."""
    if model := text(document.get("model")):
        provider = text(document.get("model_provider")) or "openai"
        plan.take("model", "default_model", f"{provider}/{model}")


_KILO_FILES = ("kilo.json", "kilo.jsonc", "config.json", "opencode.json", "opencode.jsonc")
"""Settings of its newer program, which has opencode's form."""
_KILOCODE = MemberReader(special={"mcpServers": nothing})

PROGRAMS: Mapping[str, OtherProgram] = {
    "gemini": OtherProgram(
        title="gemini-cli",
        sources=(
            Source("~/.gemini/settings.json"),
            Source("~/.gemini/policies/*.toml", "policies"),
            Source(".gemini/settings.json"),
        ),
        reader=_GEMINI,
    ),
    "claude": OtherProgram(
        title="Claude Code",
        sources=(
            Source("~/.claude.json", "servers"),
            Source("~/.claude/settings.json"),
            Source(".claude/settings.json"),
            Source(".claude/settings.local.json", own=True),
        ),
        reader=_CLAUDE,
    ),
    "codex": OtherProgram(title="codex", sources=(Source("~/.codex/config.toml"),), reader=_CODEX),
    "opencode": OtherProgram(
        title="opencode",
        sources=(
            Source("~/.config/opencode/opencode.json"),
            Source("~/.config/opencode/opencode.jsonc"),
            Source("opencode.json"),
            Source("opencode.jsonc"),
        ),
        reader=OPENCODE,
    ),
    "kilocode": OtherProgram(
        title="KiloCode",
        sources=(
            Source(
                "~/.config/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
                "servers",
            ),
            Source(
                "~/Library/Application Support/Code/User/globalStorage/kilocode.kilo-code/"
                "settings/mcp_settings.json",
                "servers",
            ),
            Source("~/.kilocode/cli/global/settings/mcp_settings.json", "servers"),
            *(Source(f"~/.config/kilo/{name}", like="opencode") for name in _KILO_FILES),
            Source(".kilocode/mcp.json", "servers"),
            *(
                Source(f"{folder}{name}", like="opencode")
                for folder in ("", ".kilo/")
                for name in _KILO_FILES[:2]
            ),
        ),
        reader=_KILOCODE,
        texts=(".kilocode/rules",),
    ),
}
