import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from tests.fakes.simulated import Place
from toolwire import providers
from toolwire.cli.commands import toolwire
from toolwire.cli.completion import completion_command
from toolwire.cli.completion_values import complete
from toolwire.cli.document import completions, manual

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src" / "toolwire" / "cli" / "completions.json"
FREE = {
    *("--base-url", "--upstream", "--system", "--append-system", "--max-turns", "--max-tokens"),
    *("--max-cost", "--temperature", "--prompt", "--print", "--http", "--token", "--at", "--key"),
    *("--host", "--port", "--env", "--header", "--env-var", "--timeout", "--description"),
    *("--include-tools", "--exclude-tools", "--client-id", "--client-metadata-url", "--workers"),
    *("--budget", "--concurrent", "--expires", "--models", "--routes", "--rpm", "--scope"),
    *("--since", "--tpm", "--until", "--days"),
    *("--attempts", "--budget-tokens", "--check", "--executor", "--filter", "--jobs", "--limit"),
    *("--repositories", "--retries", "--sample", "--sandbox", "--seed"),
}
"""Options whose values only the user knows."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_the_table_is_what_the_commands_are() -> None:
    assert TABLE.read_text("utf-8") == completions(), "run: make docs"


def test_the_manual_page_is_what_the_commands_are() -> None:
    assert (ROOT / "docs" / "toolwire.1").read_text("utf-8") == manual(), "run: make docs"


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_the_manual_page_is_valid_roff() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", str(ROOT / "docs" / "toolwire.1")],
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""


def test_every_option_has_values_or_is_free() -> None:
    def unknown(node: dict[str, object], path: str) -> list[str]:
        options, below = node["options"], node["commands"]
        assert isinstance(options, dict)
        assert isinstance(below, dict)
        found = [
            f"{path} {name}"
            for name, one in options.items()
            if one["values"] == "" and name.startswith("--") and name not in FREE
        ]
        return found + [each for name, one in below.items() for each in unknown(one, name)]

    assert unknown(json.loads(TABLE.read_text("utf-8"))["tree"], "") == []


def values(*words: str) -> list[str]:
    return [value for value, _ in complete(list(words))]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("conf",), ["config"]),
        (("config", "g"), ["get"]),
        (("run", "--approval-mode", "y"), ["yolo"]),
        (("run", "--approval-mode=y"), ["--approval-mode=yolo"]),
        (("-p", "x", "--approval-mode", "pl"), ["plan"]),
        (("login", "anth"), ["anthropic"]),
        (("run", "--provider", "anth"), ["anthropic"]),
        (("tools", "call", "read_f"), ["read_file"]),
        (("run", "--allowed-tools", "glob,write_f"), ["glob,write_file"]),
        (("config", "get", "limits.t"), ["limits.turns", "limits.tokens"]),
        (("decode", "gem"), ["gemini"]),
        (("run", "--cwd", ""), [":folders"]),
        (("run", "--record", "x"), [":files"]),
        (("nosuch", "x", "y"), []),
        (("run", "--temperature", ""), []),
    ],
)
def test_what_may_follow(words: tuple[str, ...], found: list[str]) -> None:
    assert values(*words) == found


def test_models_are_completed_with_their_provider() -> None:
    found = values("run", "--model", "anthropic/")
    assert found
    assert all(one.startswith("anthropic/") for one in found)
    assert set(values("logout", "")) >= set(providers.names())
    assert values("") == list(toolwire.list_commands(click.Context(toolwire)))


def test_sessions_and_tables_of_the_settings_are_completed(place: Place) -> None:
    folder = place.home / "sessions" / "project"
    folder.mkdir(parents=True)
    for number, name in enumerate(("older", "newer")):
        (folder / f"{name}.sqlite").touch()
        at = time.time() + number
        os.utime(folder / f"{name}.sqlite", (at, at))
    (place.home / "config.toml").write_text(
        '[providers.mine]\ndialect = "openai-chat"\nbase_url = "http://x/v1"\n'
        '[models."mine/a:b"]\ncontext = 1\n[mcp_servers.docs]\nurl = "http://x"\n'
    )

    def shown(*words: str) -> list[str]:
        done = place.toolwire("__complete", *words)
        assert done.err == ""
        return [line.partition("\t")[0] for line in done.out.splitlines()]

    assert shown("sessions", "show", "") == ["newer", "older"]
    assert shown("run", "--resume", "o") == ["older"]
    assert shown("run", "--provider", "mi") == ["mistral", "mine"]
    assert shown("run", "--model", "mine/") == ["mine/a:b"]
    assert shown("run", "--mcp", "") == ["docs"]
    for command in ("get", "approve", "login", "call"):
        assert shown("mcp", command, "") == ["docs"]
    (place.home / "config.toml").write_text("not toml")
    assert shown("run", "--provider", "mi") == ["mistral"]


def test_completion_loads_neither_click_nor_a_command_nor_the_network() -> None:
    code = (
        "import sys; from toolwire.cli import main\n"
        "sys.argv = ['toolwire', '__complete', 'run', '--model', '']\nmain()\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "anthropic/claude" in done.stdout
    loaded = set(done.stderr.split())
    heavy = {"click", "asyncio", "aiohttp", "socket", "ssl", "sqlite3", "toolwire.cli.run"}
    assert loaded.isdisjoint(heavy | {"toolwire.app", "toolwire.config", "toolwire.providers"})


BASH = """
eval "$(toolwire completion bash)"
COMP_LINE='%s'; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(); COMP_CWORD=0
_toolwire toolwire; printf '%%s\\n' "${COMPREPLY[@]}"
"""
FISH = """
toolwire completion fish | source
complete -C '%s'
"""
ZSH = """
autoload -Uz compinit; compinit -u -d %s/dump
eval "$(toolwire completion zsh)"
compadd() { local -a found; found=(${(P)@[-1]}); print -l -- $found }
words=(%s); CURRENT=${#words}
_toolwire
"""


def in_shell(place: Place, *command: str) -> list[str]:
    bin_ = place.root / "bin"
    bin_.mkdir(exist_ok=True)
    program = bin_ / "toolwire"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m toolwire "$@"\n')
    program.chmod(0o755)
    environ = place.environ(PATH=f"{bin_}:{os.environ['PATH']}")
    done = subprocess.run(
        command, env=environ, cwd=place.work, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("toolwire conf", ["config"]),
        ("toolwire run --approval-mode y", ["yolo"]),
        ("toolwire run --approval-mode=y", ["yolo"]),
        ("toolwire run --model mine/a:", ["b"]),
    ],
)
def test_bash_completes(line: str, found: list[str], place: Place) -> None:
    (place.home / "config.toml").write_text('[models."mine/a:b"]\ncontext = 1\n')
    assert in_shell(place, "bash", "--norc", "-c", BASH % line) == found


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("toolwire conf", "config"),
        ("toolwire run --approval-mode y", "yolo"),
        ("toolwire login anth", "anthropic"),
    ],
)
def test_fish_completes(line: str, found: str, place: Place) -> None:
    lines = in_shell(place, "fish", "--no-config", "-c", FISH % line)
    assert [one.partition("\t")[0] for one in lines] == [found]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("toolwire conf", "config"),
        ("toolwire run --approval-mode y", "yolo"),
        ("toolwire login anth", "anthropic"),
    ],
)
def test_zsh_completes(line: str, found: str, place: Place) -> None:
    assert in_shell(place, "zsh", "-f", "-c", ZSH % (place.root, line)) == [found]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_valid_in_their_shells(shell: str, place: Place) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    done = place.toolwire("completion", shell)
    file = place.root / "script"
    file.write_text(done.out)
    subprocess.run([shell, "-n", str(file)], check=True, capture_output=True)
    assert completion_command.name == "completion"
