"""Command-line clients through the gateway: `python -m tests.gateway.clients install|run`.

`install [CLIENT …]` installs them with npm and pip, in the versions of the table; `run [--client …]
[--upstream …] [--scenario …]` lets each read a file through `toolwire serve`, set up by the recipe
for it in docs/gateway.md.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.simulated import Place, Simulated
from tests.gateway.client_script import (
    ANSWER,
    NOTES,
    PROMPT,
    SECRET,
    SECRET_TOOL,
    ClientScript,
    ToolUse,
)
from tests.gateway.served import UPSTREAMS, serving

FOLDER = Path(
    os.environ.get("TOOLWIRE_REAL_CLIENTS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolwire-real-clients"
)
"""Where the clients are installed; the variable names another folder."""
PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"
FOUR = ("chat", "responses", "anthropic", "gemini")
TOKEN = "a-token-of-this-test"
_SECONDS = 240
_WRITTEN = "http://127.0.0.1:8787"
MCP_SERVER = f"""
import json, sys
info = {{"name": "mini", "version": "1"}}
tool = {{"name": "{SECRET_TOOL}", "description": "Reads the secret.",
        "inputSchema": {{"type": "object", "properties": {{}}}}}}
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if "id" not in message:
        continue
    if method == "initialize":
        result = {{"protocolVersion": message["params"]["protocolVersion"],
                  "capabilities": {{"tools": {{}}}}, "serverInfo": info}}
    elif method == "tools/list":
        result = {{"tools": [tool]}}
    elif method == "tools/call":
        result = {{"content": [{{"type": "text", "text": "{SECRET}"}}]}}
    else:
        result = {{}}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""


class RealClient(msgspec.Struct, frozen=True, kw_only=True):
    """A program, its recipe, and how it is run without a person."""

    package: str
    version: str
    program: str
    installer: str = "npm"
    place: str = ""
    """Folder that it is installed in, if not its program's name."""
    recipe: str
    """The heading of its recipe."""
    words: tuple[str, ...]
    """After the program; `{model}` and `{prompt}` are filled in."""
    model: str
    tool: ToolUse
    quiet: dict[str, str] = {}
    """Variables that only a test needs: no updates, no telemetry, root allowed."""
    scenarios: tuple[str, ...] = ("one-call", "parallel", "signed", "limited", "cut", "unknown")

    @property
    def path(self) -> Path:
        """Where its program is once it is installed."""
        below = "node_modules/.bin" if self.installer == "npm" else "bin"
        return FOLDER / (self.place or self.program) / below / self.program


class Recipe(msgspec.Struct, frozen=True):
    """What a recipe of the documentation sets."""

    variables: dict[str, str]
    files: dict[str, str]
    """Path below the home folder → content."""


def recipe(heading: str, origin: str) -> Recipe:
    """Returns a recipe of docs/gateway.md, for the gateway of a test."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^### {re.escape(heading)}\n(.*?)(?=^##|\Z)", page, re.M | re.S)
    assert found, f"docs/gateway.md has no recipe {heading}"
    text = found[1].replace(_WRITTEN, origin).replace("YOUR_TOKEN", TOKEN)
    exports = re.findall(r'^export (\w+)="?([^"\n]*)"?$', text, re.M)
    files = re.findall(r"`~/([^`]+)`[^\n]*\n```\w*\n(.*?)^```", text, re.M | re.S)
    return Recipe(dict(exports), dict(files))


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended, and what the upstream saw."""

    code: int
    out: str
    refusals: list[str]
    seals: int
    """Signatures in the last request of the conversation."""
    foreign: list[str]
    """Call ids that the upstream never gave."""
    statuses: list[int]

    def complaint(self, scenario: str) -> str:
        """Returns what went wrong; empty if nothing did."""
        # A parameter that the model does not take is left out of the next attempt by itself.
        refused = [words for words in self.refusals if not words.startswith("Unsupported ")]
        if refused:
            return f"the upstream refused: {refused[0][:300]}"
        if self.foreign:
            return f"foreign call ids: {self.foreign}"
        if scenario == "cut" and ANSWER not in self.out:
            return "" if self.code else "a cut stream was taken for a whole answer"
        if self.code or ANSWER not in self.out:
            return f"exit {self.code}: {self.out[-600:]}"
        if scenario == "signed" and self.seals != 2:
            return f"{self.seals} of 2 signatures in the last request"
        return ""


def run_client(client: RealClient, upstream: str, scenario: str, folder: Path) -> Outcome:
    """Runs one client once through a gateway of its own."""
    work, home = folder / "work", folder / "client-home"
    for made in (work, home):
        made.mkdir(parents=True)
    for name, text in NOTES.items():
        (work / name).write_text(f"{text}\n")
    kind = "chat-details" if upstream == "chat" and scenario == "signed" else upstream
    dialect, model, thinking = UPSTREAMS[kind]
    script = ClientScript(scenario, client.tool, work)
    with (
        Simulated(script, chat_thinking=thinking) as sim,
        serving(
            Place(folder),
            ("--upstream", sim.upstream(dialect, model=model)),
            token=TOKEN,
        ) as (origin, _, _),
    ):
        code, out = _run(client, scenario, origin, work, home)
        return _outcome(code, out, sim, script, dialect)


def _run(client: RealClient, scenario: str, origin: str, work: Path, home: Path) -> tuple[int, str]:
    found = recipe(client.recipe, origin)
    for name, text in found.files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_with_mcp(name, text, home) if scenario == "mcp" else text)
    # Codex offers MCP tools to models it does not know, and to its own by a search of theirs.
    model = "my-own-model" if scenario in ("unknown", "mcp") else client.model
    filled = {"{model}": model, "{prompt}": PROMPT}
    words = [filled.get(word, word).replace("{model}", model) for word in client.words]
    if scenario == "mcp" and client.program == "claude":
        words = ["--mcp-config", str(_mcp_json(home)), "--strict-mcp-config", *words]
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TERM": "dumb",
        **client.quiet,
        **{name: value.replace("~/", f"{home}/") for name, value in found.variables.items()},
    }
    try:
        done = subprocess.run(
            [str(client.path), *words],
            cwd=work,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, f"did not end in {_SECONDS} s"
    return done.returncode, f"{done.stderr}\n{done.stdout}"


def _mcp_program(home: Path) -> Path:
    path = home / "mini.py"
    path.write_text(MCP_SERVER)
    return path


def _mcp_json(home: Path) -> Path:
    server = {"command": sys.executable, "args": [str(_mcp_program(home))]}
    path = home / "mcp.json"
    path.write_bytes(msgspec.json.encode({"mcpServers": {"mini": server}}))
    return path


def _with_mcp(name: str, text: str, home: Path) -> str:
    program = str(_mcp_program(home))
    if name.endswith(".toml"):
        return f'{text}\n[mcp_servers.mini]\ncommand = "{sys.executable}"\nargs = ["{program}"]\n'
    settings: dict[str, Any] = msgspec.json.decode(text)
    settings["mcpServers"] = {"mini": {"command": sys.executable, "args": [program]}}
    return msgspec.json.encode(settings).decode()


def _outcome(code: int, out: str, sim: Simulated, script: ClientScript, dialect: str) -> Outcome:
    from toolwire import dialects

    codec = dialects.get(dialect)
    foreign: list[str] = []
    last = b""
    for one in sim.requests:
        request = codec.decode_request(one.body, "m")
        calls = [call for message in request.messages for call in message.calls]
        if dialect != "gemini":
            foreign += [call.id for call in calls if sim.seals.thoughts(call.id) is None]
        if script.is_main(request):
            last = one.body
    return Outcome(
        code=code,
        out=out,
        refusals=sim.refusals,
        seals=sum(seal.encode() in last for seal in sim.seals.issued),
        foreign=foreign,
        statuses=[one.status for one in sim.requests],
    )


_READ_NOTE = """
def read_note(path: str) -> str:
    "Reads a note."
    return open(path).read()
"""
_AGENTS = f"""
import sys
from agents import Agent, Runner, function_tool
{_READ_NOTE}
agent = Agent(name="reader", tools=[function_tool(read_note)], model="default")
print(Runner.run_sync(agent, sys.argv[1]).final_output)
"""
_PYDANTIC = f"""
import sys
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
{_READ_NOTE}
agent = Agent(OpenAIChatModel("default"), tools=[read_note])
print(agent.run_sync(sys.argv[1]).output)
"""
_CODEX = RealClient(
    package="@openai/codex",
    version="0.166.0",
    program="codex",
    recipe="Codex",
    words=(
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "--model",
        "{model}",
        "{prompt}",
    ),
    model="gpt-5.5",
    tool=ToolUse("exec_command", lambda path: {"cmd": f"cat {path.name}"}),
    scenarios=("one-call", "parallel", "signed", "limited", "cut", "unknown", "mcp", "patch"),
)


CLIENTS = {
    "claude-code": RealClient(
        package="@anthropic-ai/claude-code",
        version="2.1.197",
        program="claude",
        recipe="Claude Code",
        words=("--dangerously-skip-permissions", "--model", "{model}", "--print", "{prompt}"),
        model="claude-sonnet-4-5",
        tool=ToolUse("Read", lambda path: {"file_path": str(path)}),
        quiet={
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        },
        scenarios=("one-call", "parallel", "signed", "limited", "cut", "unknown", "mcp"),
    ),
    "codex": _CODEX,
    "codex-base-url": msgspec.structs.replace(
        _CODEX, recipe="Codex, its own provider", scenarios=("one-call", "parallel", "signed")
    ),
    "gemini-cli": RealClient(
        package="@google/gemini-cli",
        version="0.61.0",
        program="gemini",
        recipe="gemini-cli",
        words=("--yolo", "--skip-trust", "--model", "{model}", "--prompt", "{prompt}"),
        model="gemini-3-pro-preview",
        tool=ToolUse("read_file", lambda path: {"file_path": str(path)}),
        scenarios=("one-call", "parallel", "signed", "limited", "cut", "unknown", "mcp"),
    ),
    "opencode": RealClient(
        package="opencode-ai",
        version="1.18.33",
        program="opencode",
        recipe="opencode",
        words=("run", "--auto", "--model", "toolwire/{model}", "{prompt}"),
        model="default",
        tool=ToolUse("read", lambda path: {"filePath": str(path)}),
        quiet={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        scenarios=("one-call", "parallel", "signed", "limited", "cut"),
    ),
    "kilo": RealClient(
        package="@kilocode/cli",
        version="7.7.7",
        program="kilo",
        recipe="kilo",
        words=("run", "--auto", "--model", "toolwire/{model}", "{prompt}"),
        model="default",
        tool=ToolUse("read", lambda path: {"filePath": str(path)}),
        quiet={"KILO_DISABLE_MODELS_FETCH": "1", "KILO_DISABLE_AUTOUPDATE": "1"},
        scenarios=("one-call", "parallel", "signed", "limited", "cut"),
    ),
    "qwen": RealClient(
        package="@qwen-code/qwen-code",
        version="0.15.10",
        program="qwen",
        recipe="Qwen Code",
        words=("--auth-type", "openai", "--yolo", "--model", "{model}", "--prompt", "{prompt}"),
        model="default",
        tool=ToolUse("read_file", lambda path: {"file_path": str(path)}),
        scenarios=("one-call", "parallel", "signed", "limited", "cut"),
    ),
    "llm": RealClient(
        package="llm",
        version="0.36",
        program="llm",
        installer="pip",
        recipe="llm",
        words=("--model", "toolwire", "--functions", _READ_NOTE, "{prompt}"),
        model="default",
        tool=ToolUse("read_note", lambda path: {"path": str(path)}),
        scenarios=("one-call", "parallel", "signed", "limited", "cut"),
    ),
    "openai-agents": RealClient(
        package="openai-agents",
        version="0.24.0",
        program="python",
        installer="pip",
        place="openai-agents",
        recipe="openai-agents",
        words=("-c", _AGENTS, "{prompt}"),
        model="default",
        tool=ToolUse("read_note", lambda path: {"path": str(path)}),
        scenarios=("one-call", "parallel", "signed", "limited", "cut"),
    ),
    "pydantic-ai": RealClient(
        package="pydantic-ai-slim[openai]",
        version="2.66.0",
        program="python",
        installer="pip",
        place="pydantic-ai",
        recipe="pydantic-ai",
        words=("-c", _PYDANTIC, "{prompt}"),
        model="default",
        tool=ToolUse("read_note", lambda path: {"path": str(path)}),
        scenarios=("one-call", "parallel", "signed", "limited", "cut"),
    ),
}


def installed(client: RealClient) -> bool:
    """Returns whether the client's program is there."""
    return client.path.exists()


def install(names: list[str]) -> int:
    """Installs what is missing; what cannot be installed is named."""
    failed: list[str] = []
    for name in names or CLIENTS:
        client = CLIENTS[name]
        if installed(client):
            continue
        folder = FOLDER / (client.place or client.program)
        folder.mkdir(parents=True, exist_ok=True)
        if client.installer == "npm":
            npm = shutil.which("npm")
            if npm is None:
                failed.append(f"{name}: npm is not installed")
                continue
            words = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
            failed += _do(name, [*words, f"{client.package}@{client.version}"])
        else:
            failed += _do(name, [sys.executable, "-m", "venv", str(folder)])
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            failed += _do(name, [*pip, f"{client.package}=={client.version}"])
    for problem in failed:
        print(problem, file=sys.stderr)
    return 1 if failed else 0


def _do(name: str, words: list[str]) -> list[str]:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return [f"{name}: {done.stderr.strip()[-300:]}"] if done.returncode else []


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.clients", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install").add_argument("clients", nargs="*", choices=[*CLIENTS, []])
    run = commands.add_parser("run")
    run.add_argument("--client", action="append", choices=list(CLIENTS))
    run.add_argument("--upstream", action="append", choices=list(FOUR))
    run.add_argument("--scenario", action="append")
    chosen = parser.parse_args()
    if chosen.command == "install":
        return install(chosen.clients)
    failed = 0
    for name in chosen.client or CLIENTS:
        client = CLIENTS[name]
        if not installed(client):
            print(f"{name}: not installed; python -m tests.gateway.clients install {name}")
            continue
        for scenario in chosen.scenario or client.scenarios:
            for upstream in chosen.upstream or FOUR:
                failed += _report(name, client, upstream, scenario)
    return 1 if failed else 0


def _report(name: str, client: RealClient, upstream: str, scenario: str) -> bool:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        outcome = run_client(client, upstream, scenario, Path(folder))
    complaint = outcome.complaint(scenario)
    seconds = time.monotonic() - begun
    verdict = f"FAILED {complaint}" if complaint else "ok"
    if not complaint and ANSWER not in outcome.out:
        verdict = f"ok (a clean error, exit {outcome.code})"
    print(
        f"{name} {client.version} → {upstream}, {scenario}: {verdict} "
        f"{outcome.statuses} {seconds:.1f} s",
        flush=True,
    )
    return bool(complaint)


if __name__ == "__main__":
    sys.exit(main())
