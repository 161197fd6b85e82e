import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.fakes.terminal import Terminal
from toolwire.cli.tools import tools_command as command
from toolwire.tools.registry import ADDED, ORIGINAL


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("TOOLWIRE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "home").mkdir()
    return work


def run(*args: str) -> Result:
    return CliRunner().invoke(command, args)


def test_the_tools_are_listed_in_the_order_they_are_declared(home: Path) -> None:
    done = run("list")
    assert done.exit_code == 0
    rows = [line.split()[:2] for line in done.stdout.splitlines()[1:]]
    assert [name for name, _ in rows] == [*ORIGINAL, *ADDED]
    assert ["run_shell_command", "execute"] in rows
    assert "\x1b" not in done.stdout


def test_the_list_as_json_holds_the_schemas(home: Path) -> None:
    found = json.loads(run("list", "--json").stdout)
    assert [tool["name"] for tool in found] == [*ORIGINAL, *ADDED]
    assert found[1]["parameters"]["required"] == ["absolute_path"]
    assert found[1]["effect"] == "read"


def test_a_reader_runs_and_prints_its_result(home: Path) -> None:
    (home / "a.txt").write_text("AAA\n")
    done = run("call", "read_file", json.dumps({"absolute_path": str(home / "a.txt")}))
    assert (done.exit_code, done.stdout) == (0, "AAA\n\n")


def test_json_shows_the_parts_a_model_is_sent(home: Path) -> None:
    (home / "a.txt").write_text("AAA\n")
    given = json.dumps({"absolute_path": str(home / "a.txt")})
    done = run("call", "read_file", given, "--json")
    found = json.loads(done.stdout)
    assert found["parts"] == [
        {"functionResponse": {"name": "read_file", "response": {"output": "AAA\n"}}}
    ]
    assert found["error"] is None
    assert set(found) == {"parts", "display", "error"}


def test_what_follows_a_result_is_among_the_parts(home: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (home / name).write_text(f"{name}\n")
    parts = json.loads(run("call", "read_many_files", '{"paths":["*.txt"]}', "--json").stdout)[
        "parts"
    ]
    assert parts[0]["functionResponse"]["response"] == {"output": "Tool execution succeeded."}
    assert [part["text"] for part in parts[1:]] == [
        f"--- {home.resolve()}/a.txt ---\n\na.txt\n\n\n",
        f"--- {home.resolve()}/b.txt ---\n\nb.txt\n\n\n",
        "\n--- End of content ---",
    ]


def test_a_failed_call_is_reported_and_leaves_with_one(home: Path) -> None:
    done = run("call", "read_file", "{}", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    words = "params must have required property 'absolute_path'"
    assert found["parts"][0]["functionResponse"]["response"] == {"error": words}
    assert found["error"] == {"type": "invalid_tool_params", "message": words}
    plain = run("call", "read_file", "{}")
    assert (plain.exit_code, plain.stdout, plain.stderr) == (1, "", f"{words}\n")


def test_an_unknown_tool_is_answered_as_a_model_would_be(home: Path) -> None:
    done = run("call", "read_fil", "{}")
    assert done.exit_code == 1
    assert 'Did you mean one of: "read_file", "write_file", "replace"?' in done.stderr


def test_a_call_that_changes_something_needs_a_yes(home: Path) -> None:
    given = json.dumps({"file_path": str(home / "n.txt"), "content": "new"})
    refused = run("call", "write_file", given)
    assert refused.exit_code == 1
    assert not (home / "n.txt").exists()
    assert "approv" in refused.stderr
    done = run("call", "write_file", given, "--yes")
    assert done.exit_code == 0
    assert (home / "n.txt").read_text() == "new"


def test_a_call_works_in_another_folder(home: Path) -> None:
    other = home / "sub"
    other.mkdir()
    (other / "x.py").write_text("")
    done = run("call", "glob", '{"pattern":"*.py"}', "--cwd", str(other))
    assert str(other.resolve() / "x.py") in done.stdout


def test_arguments_that_are_not_an_object_are_an_error(home: Path) -> None:
    done = run("call", "glob", "[1]")
    assert done.exit_code == 1
    assert "expected an object" in done.stderr


def test_tools_are_left_out_by_the_users_settings(home: Path) -> None:
    (home.parent / "home" / "config.toml").write_text(
        '[tools]\ncore = ["glob", "ShellTool(git)", "read_file"]\nexclude = ["ReadFileTool"]\n'
    )
    found = json.loads(run("list", "--json").stdout)
    assert [tool["name"] for tool in found] == ["glob", "run_shell_command"]


def test_a_project_may_take_tools_away_but_bring_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWIRE_TRUST_WORKSPACE", "1")
    (home / ".toolwire").mkdir()
    project = home / ".toolwire" / "config.toml"
    project.write_text('[tools]\nexclude = ["glob"]\n')
    assert "glob" not in [tool["name"] for tool in json.loads(run("list", "--json").stdout)]
    project.write_text('[tools]\ndiscovery_command = "evil"\n')
    done = run("list")
    assert done.exit_code == 1
    assert "tools.discovery_command: a project may not set this" in done.stderr


def test_nothing_that_a_command_started_outlives_the_call(home: Path) -> None:
    done = run("call", "run_shell_command", '{"command":"sleep 1000 &"}', "--yes")
    assert done.exit_code == 0
    pid = next(line for line in done.stdout.splitlines() if line.startswith("Background PIDs: "))
    assert not Path(f"/proc/{pid.removeprefix('Background PIDs: ')}").exists()


def at_a_terminal(home: Path, words: str, *args: str) -> tuple[int, str]:
    """The command as a person at a terminal sees it, who answers its question."""
    terminal = Terminal(["tools", *args], cwd=home)
    terminal.wait_for("run it?")
    terminal.type(words)
    code = terminal.end()
    terminal.close()
    return code, terminal.all


def test_a_person_at_a_terminal_is_asked_and_may_say_always(home: Path) -> None:
    call = ("call", "run_shell_command", '{"command":"factor 12 | cat"}')
    code, shown = at_a_terminal(home, "n", *call)
    assert code == 1
    assert "$ factor 12 | cat" in shown
    code, shown = at_a_terminal(home, "a", *call)
    assert (code, "Output: 12: 2 2 3" in shown) == (0, True)
    assert run(*call).exit_code == 0
    audit = (home.parent / "home" / "audit.jsonl").read_text().splitlines()
    assert [(one["decision"], one["answer"]) for one in map(json.loads, audit)] == [
        ("ask", "cancel"),
        ("ask", "always"),
        ("allow", ""),
    ]
