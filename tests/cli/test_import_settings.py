"""`toolwire import` on samples of other programs' files."""

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.fakes.terminal import Terminal
from toolwire.cli.config import config_command
from toolwire.cli.import_settings import import_command
from toolwire.cli.mcp import mcp_command
from toolwire.policy.rule_file import load
from toolwire.policy.rules import Rule

SENTINEL = "sk-sentinel-0123456789abcdef"
GEMINI = """{
  // comments are allowed here
  "general": {"defaultApprovalMode": "auto_edit", "vimMode": true},
  "model": {"name": "gemini-3-pro", "compressionThreshold": 0.5},
  "tools": {"exclude": ["web_fetch"], "allowed": ["run_shell_command(git status)", "ShellTool"]},
  "context": {"fileName": ["AGENTS.md", "NOTES.md"], "fileFiltering": {"respectGitIgnore": false}},
  "mcpServers": {
    "docs": {"command": "docs-mcp", "timeout": 5000, "trust": true,
             "env": {"DOCS_TOKEN": "SENTINEL", "LANG": "C", "OTHER_KEY": "$OTHER_KEY"}},
  },
  "security": {"auth": {"selectedType": "gemini-api-key"}},
}""".replace("SENTINEL", SENTINEL)
GEMINI_RUNNING = """{
  /* as its settings dialog
     writes them */
  "general": {"checkpointing": {"enabled": false}},
  "telemetry": {"enabled": true, "target": "local", "otlpEndpoint": "http://127.0.0.1:4318",
                "otlpProtocol": "http", "outfile": ".gemini/telemetry.log", "logPrompts": false}
}"""
FLAT = """{"model": "gemini-3-flash", "contextFileName": "NOTES.md", "excludeTools": ["glob"],
  "excludeMCPServers": ["old"], "theme": "GitHub"}"""
POLICIES = """
[[rule]]
toolName = "run_shell_command"
commandPrefix = ["git log", "python"]
decision = "allow"
priority = 100

[[rule]]
toolName = "run_shell_command"
commandPrefix = "rm"
decision = "deny"
priority = 900

[[rule]]
toolName = "write_file"
decision = "allow"
modes = ["yolo"]

[[rule]]
toolName = "run_shell_command"
commandRegex = "^git .*"
decision = "allow"
"""
CLAUDE: dict[str, Any] = {
    "model": "sonnet",
    "permissions": {
        "allow": [
            *(
                "Bash(git log:*)",
                "Bash(npm run test)",
                "Bash(python:*)",
                "Bash",
                "Read(~/notes/**)",
            ),
            *("mcp__docs__find", "WebFetch(domain:example.com)", "NotebookEdit"),
        ],
        "deny": ["Read(./.env)", "Bash(curl:*)", "WebFetch(domain:bad.example)", "Edit(//etc/**)"],
        "ask": ["Bash(git push:*)", "Bash"],
        "defaultMode": "bypassPermissions",
    },
    "env": {"ANTHROPIC_API_KEY": SENTINEL},
    "enabledMcpjsonServers": ["docs"],
}
CODEX = f"""
model = "big"
model_provider = "mine"
model_reasoning_effort = "high"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.mine]
base_url = "http://127.0.0.1:9/v1"
env_key = "MINE_KEY"
wire_api = "responses"
query_params = {{ a = "b" }}
[mcp_servers.files]
url = "http://127.0.0.1:9/mcp"
http_headers = {{ Authorization = "Bearer {SENTINEL}", X-Team = "wires" }}
startup_timeout_sec = 5
[projects."/home/ada/x"]
trust_level = "trusted"
"""
OPENCODE = """{"model": "mine/large",
  "provider": {"mine": {"name": "Mine",
    "options": {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "SENTINEL"},
                        "models": {"large": {}}}},
  "permission": {"edit": "ask", "bash": {"*": "ask", "git status *": "allow", "rm *": "deny"}},
  "instructions": ["STYLE.md", "docs/*.md"],
  "mcp": {"docs": {"type": "local", "command": ["docs-mcp", "--stdio"], "environment": {"A": "b"}}},
  "share": "manual"}""".replace("SENTINEL", SENTINEL)
KILOCODE = """{"mcpServers": {"docs": {"command": "docs-mcp", "disabled": true,
  "alwaysAllow": ["find"], "timeout": 30}}}"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("TOOLWIRE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TOOLWIRE_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def put(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)


def taken(*args: str) -> str:
    done = CliRunner().invoke(import_command, args)
    assert done.exit_code == 0, done.output
    assert SENTINEL not in done.output
    return done.output


def stored(work: Path) -> dict[str, Any]:
    text = (work.parent / "own" / "config.toml").read_text()
    assert SENTINEL not in text
    return tomllib.loads(text)


def rules(work: Path) -> list[str]:
    file = work.parent / "own" / "policy.toml"
    return [str(rule) for rule in load(file.read_text(), str(file))]


def everything(work: Path) -> dict[str, bytes]:
    folder = work.parent / "own"
    return {
        str(one): one.read_bytes()
        for one in folder.rglob("*")
        if one.is_file() and not one.name.endswith(".lock")
    }


def test_gemini_cli_with_nested_keys(work: Path) -> None:
    put(work.parent / ".gemini/settings.json", GEMINI)
    output = taken("--from", "gemini")
    found = stored(work)
    assert found["default_model"] == "google/gemini-3-pro"
    assert found["approval_mode"] == "auto_edit"
    assert found["compression"] == {"threshold": 0.5}
    assert found["tools"] == {
        "exclude": ["web_fetch"],
        "allowed": ["run_shell_command(git status)"],
    }
    assert found["context"] == {"files": ["AGENTS.md", "NOTES.md"], "respect_git_ignore": False}
    assert found["mcp_servers"]["docs"] == {
        "command": "docs-mcp",
        "timeout": 5.0,
        "env": {"LANG": "C", "OTHER_KEY": "$OTHER_KEY"},
        "env_vars": ["DOCS_TOKEN"],
    }
    for key in ("general.vimMode", "mcpServers.docs.trust", "security.auth", "ShellTool"):
        assert any(key in line and "not taken" in line for line in output.splitlines()), key


def test_gemini_cli_with_flat_keys(work: Path) -> None:
    put(work.parent / ".gemini/settings.json", FLAT)
    output = taken()
    found = stored(work)
    assert found["default_model"] == "google/gemini-3-flash"
    assert found["context"] == {"files": ["NOTES.md"]}
    assert found["tools"] == {"exclude": ["glob"]}
    assert found["mcp"] == {"excluded": ["old"]}
    assert "theme" in output


def test_checkpoints_and_telemetry_of_gemini_cli(work: Path) -> None:
    put(work.parent / ".gemini/settings.json", GEMINI_RUNNING)
    output = taken("--from", "gemini")
    found = stored(work)
    assert found["checkpoints"] == {"enabled": False}
    assert found["telemetry"] == {
        "enabled": True,
        "endpoint": "http://127.0.0.1:4318",
        "protocol": "http/protobuf",
        "outfile": str(work / ".gemini/telemetry.log"),
        "prompts": False,
    }
    assert "telemetry.target" in output


def test_policies_of_gemini_cli(work: Path) -> None:
    put(work.parent / ".gemini/policies/mine.toml", POLICIES)
    output = taken("--from", "gemini")
    assert rules(work) == ["deny run_shell_command(rm)", "allow run_shell_command(git log)"]
    for words in ("whatever follows python", "yolo", "commandRegex", "strictest"):
        assert words in output


def test_permissions_of_claude_code(work: Path) -> None:
    put(work.parent / ".claude/settings.json", json.dumps(CLAUDE))
    output = taken("--from", "claude")
    assert rules(work) == [
        "deny *, path .env",
        "deny run_shell_command(curl)",
        "deny web_fetch",
        "deny *, path /etc/**",
        "ask run_shell_command(git push)",
        "ask run_shell_command",
        "allow run_shell_command(git log)",
        "allow run_shell_command(npm run test)",
        "allow *, path ~/notes/**",
        "allow find, server docs",
    ]
    found = stored(work)
    assert found["default_model"].startswith("anthropic/claude-sonnet")
    assert "approval_mode" not in found
    for words in ("asks nothing", "whatever follows python", "every command", "mcp approve docs"):
        assert words in output


def test_servers_of_claude_code(work: Path) -> None:
    servers = {"mcpServers": {"docs": {"type": "stdio", "command": "docs-mcp", "args": []}}}
    put(work.parent / ".claude.json", json.dumps({**servers, "userID": "x", "oauthAccount": {}}))
    taken("--from", "claude")
    assert stored(work)["mcp_servers"]["docs"]["command"] == "docs-mcp"


def test_codex(work: Path) -> None:
    put(work.parent / ".codex/config.toml", CODEX)
    output = taken("--from", "codex")
    found = stored(work)
    assert found["default_model"] == "mine/big"
    assert found["reasoning"] == {"effort": "high"}
    assert found["providers"]["mine"] == {
        "dialect": "openai-responses",
        "base_url": "http://127.0.0.1:9/v1",
        "key_env": "MINE_KEY",
    }
    assert found["mcp_servers"]["files"]["headers"] == {"X-Team": "wires"}
    assert "approval_mode" not in found
    assert "tools" not in found
    for words in ("query_params", "asks nothing", "switched off", "trust is never"):
        assert words in output


def test_opencode(work: Path) -> None:
    put(work.parent / ".config/opencode/opencode.json", OPENCODE)
    output = taken("--from", "opencode")
    found = stored(work)
    assert found["default_model"] == "mine/large"
    assert found["providers"]["mine"]["models"] == ["large"]
    assert found["context"] == {"files": ["AGENTS.md", "STYLE.md"], "include": ["docs/*.md"]}
    assert found["mcp_servers"]["docs"]["env"] == {"A": "b"}
    assert rules(work) == [
        "ask *",
        "ask run_shell_command",
        "allow run_shell_command(git status)",
        "deny run_shell_command(rm)",
    ]
    for words in ("apiKey", "docs/*.md", "share"):
        assert words in output


def test_providers_of_opencode_have_the_format_of_their_package(work: Path) -> None:
    servers = {
        f"my-{name}": {"npm": f"@ai-sdk/{name}", "options": {"baseURL": "http://127.0.0.1:9/v1"}}
        for name in ("openai", "anthropic", "unheard-of")
    }
    servers["deepseek"] = {"options": {"baseURL": "http://127.0.0.1:9/proxy"}}
    put(work.parent / ".config/opencode/opencode.json", json.dumps({"provider": servers}))
    output = taken("--from", "opencode")
    assert stored(work)["providers"] == {
        "my-openai": {"dialect": "openai-responses", "base_url": "http://127.0.0.1:9/v1"},
        "my-anthropic": {"dialect": "anthropic-messages", "base_url": "http://127.0.0.1:9"},
        "deepseek": {"extends": "deepseek", "base_url": "http://127.0.0.1:9/proxy"},
    }
    assert CliRunner().invoke(config_command, ["show"]).exit_code == 0
    assert "toolwire does not know the format of @ai-sdk/unheard-of" in " ".join(output.split())


@pytest.mark.parametrize("name", ["~/.config/kilo/kilo.jsonc", ".kilo/kilo.json"])
def test_the_newer_kilocode_has_the_form_of_opencode(work: Path, name: str) -> None:
    project = not name.startswith("~")
    put(work.parent / name[2:] if not project else work / name, OPENCODE)
    taken("--from", "kilocode", *(["--project"] if project else []))
    assert "deny run_shell_command(rm)" in rules(work)
    file = work / ".toolwire" if project else work.parent / "own"
    assert tomllib.loads((file / "config.toml").read_text())["mcp_servers"]["docs"]["env"]


@pytest.mark.parametrize(("typed", "found"), [("y", ["allow find, server docs"]), ("", [])])
def test_tools_that_kilocode_allows_are_asked_about(
    work: Path, typed: str, found: list[str]
) -> None:
    put(work.parent / ".kilocode/cli/global/settings/mcp_settings.json", KILOCODE)
    terminal = Terminal(["import", "--from", "kilocode"], cwd=work, env=dict(os.environ))
    terminal.wait_for("Allow find of the MCP server docs without asking?")
    terminal.type(typed)
    assert terminal.end() == 0
    assert ("answer when you are asked" in " ".join(terminal.all.split())) is not bool(found)
    assert (rules(work) if found else []) == found
    assert (work.parent / "own/policy.toml").exists() is bool(found)


def test_kilocode_in_a_project(work: Path) -> None:
    put(work / ".kilocode/mcp.json", KILOCODE)
    put(work / ".kilocode/rules/style.md", "Use tabs.")
    output = taken("--project")
    found = tomllib.loads((work / ".toolwire/config.toml").read_text())
    assert found["mcp_servers"]["docs"] == {
        "command": "docs-mcp",
        "enabled": False,
        "timeout": 30,
    }
    assert "alwaysAllow" in output
    assert found["context"]["include"] == [".kilocode/rules/*.md"]
    assert "context.include" in output
    before = (work / ".toolwire/config.toml").read_bytes()
    taken("--project")
    assert (work / ".toolwire/config.toml").read_bytes() == before


def test_a_project_allows_nothing_and_its_rules_stay_there(work: Path) -> None:
    put(work / ".claude/settings.json", json.dumps(CLAUDE))
    put(work / ".claude/settings.local.json", '{"permissions": {"allow": ["Bash(git status:*)"]}}')
    taken("--project", "--from", "claude")
    file = work.parent / "own" / "policy.toml"
    found: tuple[Rule, ...] = load(file.read_text(), "file")
    allowed = [str(rule) for rule in found if rule.decision == "allow"]
    assert allowed == ["allow run_shell_command(git status)"]
    assert {rule.project for rule in found} == {str(work.resolve())}


def test_twice_changes_nothing_more_and_a_dry_run_nothing_at_all(work: Path) -> None:
    put(work.parent / ".gemini/settings.json", GEMINI)
    put(work.parent / ".gemini/policies/mine.toml", POLICIES)
    put(work.parent / ".codex/config.toml", CODEX)
    taken("--dry-run")
    assert everything(work) == {}
    taken()
    first = everything(work)
    assert first
    taken()
    assert everything(work) == first


def test_a_setting_of_the_users_stays_unless_it_is_to_be_replaced(work: Path) -> None:
    put(work.parent / "own/config.toml", '# mine\ndefault_model = "openai/gpt-5.6"\n')
    put(work.parent / ".gemini/settings.json", GEMINI)
    assert "yours stays" in taken()
    assert stored(work)["default_model"] == "openai/gpt-5.6"
    taken("--replace")
    assert stored(work)["default_model"] == "google/gemini-3-pro"
    assert (work.parent / "own/config.toml").read_text().startswith("# mine\n")


def refused(*args: str) -> Result:
    done = CliRunner().invoke(import_command, args)
    assert done.exit_code == 1
    assert "Traceback" not in done.output
    return done


def test_a_broken_file_is_named_with_its_line_and_changes_nothing(work: Path) -> None:
    put(work.parent / ".codex/config.toml", CODEX)
    put(work.parent / ".gemini/settings.json", '{/* of\nmine */\n  "model": gemini\n}')
    assert "settings.json" in refused().output
    assert 'at "model": Expecting value: line 3' in refused().output
    put(work.parent / ".gemini/settings.json", "{}")
    put(work.parent / ".codex/config.toml", 'model = "big"\nmodel_provider = mine\n')
    assert "at model_provider: Invalid value (at line 2" in refused().output
    assert everything(work) == {}


def test_without_settings_the_places_are_named(work: Path) -> None:
    assert "~/.codex/config.toml" in refused("--from", "codex").output
    assert "--project" in refused().output


def test_config_show_and_mcp_list_agree(work: Path) -> None:
    put(work.parent / ".gemini/settings.json", GEMINI)
    taken()
    shown = CliRunner().invoke(config_command, ["show", "--json"])
    assert "google/gemini-3-pro" in shown.stdout
    listed = CliRunner().invoke(mcp_command, ["list", "--json", "--no-connect"])
    assert [one["name"] for one in json.loads(listed.stdout)] == ["docs"]
