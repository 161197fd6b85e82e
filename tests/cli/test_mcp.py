"""The commands of `toolwire mcp`, with real servers as processes."""

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.mcp.servers import answer
from tests.mcp.servers import in_settings as scripted
from toolwire.cli.mcp import mcp_command as command
from toolwire.config import trust

SENTINEL = "sk-sentinel-0123456789abcdef"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("TOOLWIRE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TOOLWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def run(*args: str, input: str = "") -> Result:
    return CliRunner().invoke(command, args, input=input)


def own(work: Path) -> Path:
    return work.parent / "home" / "config.toml"


def settings(work: Path) -> dict[str, Any]:
    return tomllib.loads(own(work).read_text())["mcp_servers"]


def add(name: str, table: dict[str, Any], *more: str) -> None:
    done = run("add-json", name, json.dumps(table), *more)
    assert done.exit_code == 0, done.output


def listed(*args: str) -> list[dict[str, Any]]:
    done = run("list", "--json", *args)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("words", "table"),
    [
        (["npx", "-y", "pkg", "--flag"], {"command": "npx", "args": ["-y", "pkg", "--flag"]}),
        (["-e", "A=b=c", "--", "x", "-e"], {"command": "x", "args": ["-e"], "env": {"A": "b=c"}}),
        (["https://h/m", "-H", "A: b: c"], {"url": "https://h/m", "headers": {"A": "b: c"}}),
        (["-t", "sse", "https://h/s"], {"url": "https://h/s", "transport": "sse"}),
        (
            ["--timeout", "5", "--trust", "--required", "--env-var", "X", "x"],
            {"command": "x", "timeout": 5.0, "trust": True, "required": True, "env_vars": ["X"]},
        ),
        (
            ["--include-tools", "a,b*", "--exclude-tools", "c", "--cwd", "d", "x"],
            {"command": "x", "include_tools": ["a", "b*"], "exclude_tools": ["c"], "cwd": "d"},
        ),
    ],
    ids=str,
)
def test_add_writes_what_was_given(work: Path, words: list[str], table: dict[str, Any]) -> None:
    assert run("add", "one", *words).exit_code == 0
    assert settings(work)["one"] == table


def test_add_keeps_comments_and_refuses_a_taken_name(work: Path) -> None:
    own(work).parent.mkdir()
    own(work).write_text("# mine\n[limits]\nturns = 5 # few\n")
    assert run("add", "one", "x").exit_code == 0
    taken = run("add", "one", "y")
    assert (taken.exit_code, settings(work)["one"]) == (1, {"command": "x"})
    assert "--replace" in taken.stderr
    assert run("add", "one", "--replace", "y").exit_code == 0
    assert own(work).read_text().startswith("# mine\n[limits]\nturns = 5 # few\n")
    assert settings(work)["one"] == {"command": "y"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["add", "a b", "x"], "letters, digits"),
        (["add", "a", "-t", "http", "x"], "needs a url"),
        (["add-json", "a", '{"comand": "x"}'], 'did you mean "command"'),
        (["add-json", "a", "[]"], "JSON"),
        (["add", "a", "-s", "project", "--trust", "x"], "a project may not set trust"),
        (["remove", "a"], 'unknown MCP server "a"'),
        (["enable", "a"], 'unknown MCP server "a"'),
        (["get", "a"], 'unknown MCP server "a"'),
        (["test", "a"], 'unknown MCP server "a"'),
        (["call", "a", "t", "{}"], 'unknown MCP server "a"'),
        (["logout", "https://h"], "there is no login"),
    ],
    ids=str,
)
def test_bad_input_is_one_line_and_exit_code_1(work: Path, args: list[str], words: str) -> None:
    done = run(*args)
    assert done.exit_code == 1, done.output
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not own(work).exists()


def test_a_server_is_switched_and_removed(work: Path) -> None:
    add("one", {"command": "x"})
    assert run("disable", "one").exit_code == 0
    assert [each["status"] for each in listed()] == ["disabled"]
    assert run("enable", "one").exit_code == 0
    assert settings(work)["one"]["enabled"] is True
    near = run("remove", "on")
    assert 'did you mean "one"' in near.stderr
    assert run("remove", "one").exit_code == 0
    assert "one" not in own(work).read_text()


def test_list_connects_to_all_and_shows_what_each_offers(work: Path) -> None:
    read = {"name": "read_file", "inputSchema": {"type": "object", "properties": {"a": {}}}}
    add("good", scripted({"tools/list": [answer(result={"tools": [read]})]}))
    bad = [sys.executable, "-c", "import sys; sys.exit('no licence')"]
    add("bad", {"command": bad[0], "args": bad[1:]})
    add("unset", {"command": "x", "env": {"T": "$NO_SUCH_VARIABLE"}})
    good, broken, unset = listed()
    assert (good["status"], good["origin"], good["transport"]) == ("connected", "user", "stdio")
    assert good["server"] == {"name": "scripted", "version": "1"}
    assert good["protocol"] == "2025-11-25"
    [tool] = good["tools"]
    assert (tool["name"], tool["tool"], tool["offered"]) == ("good__read_file", "read_file", True)
    assert tool["warnings"] == ["its schema has parameters without a type"]
    assert (broken["status"], broken["stderr"]) == ("failed", "no licence")
    assert (unset["status"], "NO_SUCH_VARIABLE" in unset["error"]) == ("failed", True)
    remembered = listed("--no-connect")[0]
    assert (remembered["status"], remembered["remembered"]) == ("not_tried", True)
    assert remembered["tools"] == good["tools"]
    shown = run("list")
    assert "✓ good: " in shown.stdout
    assert "no licence" in shown.stdout
    assert run("test", "good").exit_code == 0
    assert run("test", "bad", "--json").exit_code == 1


def test_secrets_are_hidden(work: Path) -> None:
    table = {
        "url": f"http://127.0.0.1:9/?token={SENTINEL}",
        "headers": {"Authorization": f"Bearer {SENTINEL}", "X": "$V"},
    }
    add("far", table)
    add("near", {"command": "x", "args": ["--token", SENTINEL], "env": {"A": SENTINEL}})
    for done in (run("get", "far"), run("get", "near", "--json"), run("list", "--json")):
        assert done.exit_code == 0
        assert SENTINEL not in done.output
    assert json.loads(run("get", "far", "--json").stdout)["headers"]["X"] == "$V"


def test_call_prints_the_result_or_the_error(work: Path) -> None:
    add("one", scripted({}))
    plain = run("call", "one", "echo", "{}")
    assert (plain.exit_code, plain.stdout) == (0, "hello\n")
    found = json.loads(run("call", "one", "echo", "{}", "--json").stdout)
    assert found == {
        "result": {"content": [{"type": "text", "text": "hello"}]},
        "parts": [{"functionResponse": {"name": "echo", "response": {"output": "hello"}}}],
        "display": "hello",
        "error": None,
    }
    failing = answer(error={"code": -32000, "message": "boom"})
    add("two", scripted({"tools/call": [failing]}))
    failed = run("call", "two", "echo", "{}", "--json")
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["error"]["message"] == "MCP error -32000: boom"
    late = run("call", "one", "echo", "{}", "--timeout", "0")
    assert late.exit_code == 2


def test_many_calls_run_over_one_connection(work: Path) -> None:
    add("one", scripted({}))
    lines = [{"list": True}, {"tool": "echo", "arguments": {}}, {"tool": "nope"}]
    done = run("call", "one", "--jsonl", input="".join(f"{json.dumps(one)}\n" for one in lines))
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert [(each["tool"], each["name"]) for each in first["tools"]] == [("echo", "echo")]
    assert second["display"] == "hello"
    assert "unknown tool of one" in third["error"]["message"]


def test_servers_of_a_project_start_only_after_approval_of_exactly_this(work: Path) -> None:
    table = scripted({})
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": table}}))
    [each] = listed()
    assert (each["status"], each["origin"], each["approved"]) == ("unapproved", ".mcp.json", False)
    refused = run("call", "theirs", "echo", "{}")
    assert refused.exit_code == 1
    assert "toolwire mcp approve theirs" in refused.stderr
    approved = run("approve", "theirs")
    assert approved.exit_code == 0
    assert "scripted_server.py" in approved.stderr
    assert listed()[0]["status"] == "connected"
    (work / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"theirs": {**table, "env": {"A": "1"}}}})
    )
    assert listed()[0]["status"] == "unapproved"
    assert run("approve", "--all", "--no").exit_code == 0
    assert listed()[0]["status"] == "unapproved"
    trust.trust(work, trust.TrustAnswer.NO, os.environ)
    assert listed() == []


def test_a_server_added_to_the_project_may_start(work: Path) -> None:
    add("ours", scripted({}), "-s", "project")
    [each] = listed()
    assert (each["status"], each["origin"]) == ("connected", "project")
    assert run("disable", "ours").exit_code == 0
    assert run("enable", "ours").exit_code == 0
    assert listed()[0]["status"] == "connected"


IMPORTED = {
    "gemini": (
        "x.json",
        '{/* c */"mcpServers": {"a b": {"command": "x", "trust": true, "timeout": 5000,},}}',
        {"a_b": {"command": "x", "timeout": 5.0}},
    ),
    "claude": (
        "x.json",
        '{"mcpServers": {"a": {"type": "http", "url": "https://h", "headers": {"A": "${B:-c}"}}}}',
        {"a": {"url": "https://h", "headers": {"A": "${B:-c}"}, "transport": "http"}},
    ),
    "codex": (
        "x.toml",
        '[mcp_servers.a]\nurl = "https://h"\nbearer_token_env_var = "T"\ntool_timeout_sec = 3\n'
        'env_http_headers = { A = "B" }\n',
        {
            "a": {
                "url": "https://h",
                "bearer_token_env": "T",
                "timeout": 3,
                "headers": {"A": "${B}"},
            }
        },
    ),
    "opencode": (
        "x.json",
        '{"mcp": {"a": {"type": "local", "command": ["x", "y"], "environment": {"E": "1"}}}}',
        {"a": {"command": "x", "args": ["y"], "env": {"E": "1"}}},
    ),
    "kilocode": (
        "x.json",
        '{"mcpServers": {"a": {"command": "x", "disabled": true, "alwaysAllow": ["t"]}}}',
        {"a": {"command": "x", "enabled": False}},
    ),
    "vscode": (
        "x.json",
        '{"servers": {"a": {"command": "x", "env": {"T": "${env:HOME}"}},'
        ' "b": {"command": "x", "env": {"K": "${input:key}"}}}}',
        {"a": {"command": "x", "env": {"T": "${HOME}"}}},
    ),
    "cursor": (
        "x.json",
        '{"mcpServers": {"a": {"url": "https://h"}}}',
        {"a": {"url": "https://h"}},
    ),
}


@pytest.mark.parametrize("program", IMPORTED)
def test_servers_of_other_programs_are_taken_over(work: Path, program: str) -> None:
    name, content, expected = IMPORTED[program]
    (work / name).write_text(content)
    done = run("import", "--from", program, "--file", name)
    assert done.exit_code == 0, done.output
    assert settings(work) == expected
    if program == "gemini":
        assert "not taken: trust" in done.stdout
    again = run("import", "--from", program, "--file", name)
    assert (again.exit_code, "--replace" in again.stdout) == (1, True)
