import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.fakes.terminal import Terminal
from toolwire.cli.config import config_command as command

SENTINEL = "sk-sentinel-0123456789abcdef"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("TOOLWIRE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TOOLWIRE_HOME", str(tmp_path / "home"))
    return folder


def run(*args: str) -> Result:
    return CliRunner().invoke(command, args)


def own(work: Path) -> Path:
    return work.parent / "home" / "config.toml"


def project(work: Path) -> Path:
    return work / ".toolwire" / "config.toml"


def test_a_value_that_is_set_is_shown_with_its_file(work: Path) -> None:
    done = run("set", "limits.turns", "5")
    assert (done.exit_code, done.stdout) == (0, "")
    shown = json.loads(run("show", "--json").stdout)
    assert shown["limits.turns"] == {"value": 5, "origin": str(own(work))}
    assert shown["limits.tokens"] == {"value": 0, "origin": "default"}
    line = next(line for line in run("show").stdout.splitlines() if "limits.turns" in line)
    assert line.split() == ["limits.turns", "5", str(own(work))]


def test_get_prints_the_value_alone(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_FALLBACK", "a/b,c/d")
    assert run("get", "tool_style").stdout == "auto\n"
    assert run("get", "tool_style", "--json").stdout == '"auto"\n'
    assert run("get", "fallback").stdout == '["a/b", "c/d"]\n'
    assert json.loads(run("get", "fallback", "--json").stdout) == ["a/b", "c/d"]
    assert set(json.loads(run("get", "limits", "--json").stdout)) == {
        "limits.turns",
        "limits.tokens",
        "limits.cost",
        "limits.seconds",
    }


def test_an_unknown_setting_is_wrong_usage_and_the_nearest_is_named(work: Path) -> None:
    for args in (("get", "limits.turn"), ("set", "limits.turn", "1")):
        done = run(*args)
        assert done.exit_code == 2
        assert 'did you mean "limits.turns"?' in done.stderr


def test_set_keeps_what_a_person_wrote(work: Path) -> None:
    own(work).parent.mkdir()
    text = '# mine\ntool_style = "xml" # for now\n\n[limits] # of a run\nturns = 1\n'
    own(work).write_text(text)
    own(work).chmod(0o640)
    run("set", "tool_style", "json")
    assert own(work).read_text() == text.replace('"xml"', '"json"')
    assert stat.S_IMODE(own(work).stat().st_mode) == 0o640
    run("unset", "limits.turns")
    assert own(work).read_text() == text.replace('"xml"', '"json"').replace("turns = 1\n", "")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("limits.turns", "many", "limits.turns must be a whole number of at least 0"),
        ("approval_mode", "yollo", 'did you mean "yolo"?'),
        ("limits", "1", "limits is a table; name one of limits.turns, limits.tokens"),
        ("providers", "1", "name an entry: providers.<name>"),
        ("providers.mine.base_url", "https://h", 'providers.mine has no "dialect"'),
        ("models.a/b.context", "1", 'models."provider/model".context'),
    ],
)
def test_nothing_is_written_that_could_not_be_read(
    work: Path, key: str, value: str, said: str
) -> None:
    done = run("set", key, value)
    assert done.exit_code == 1
    assert said in done.stderr
    assert not own(work).exists()


def test_a_wrong_value_can_be_fixed_by_setting_it(work: Path) -> None:
    own(work).parent.mkdir()
    own(work).write_text('[limits]\nturns = "many"\n')
    assert run("show").exit_code == 1
    assert run("set", "limits.turns", "5").exit_code == 0
    assert run("get", "limits.turns").stdout == "5\n"


def test_a_file_with_another_error_is_not_written(work: Path) -> None:
    own(work).parent.mkdir()
    own(work).write_text("nonsense = 1\n")
    done = run("set", "limits.turns", "5")
    assert done.exit_code == 1
    assert 'unknown setting "nonsense"' in done.stderr
    assert own(work).read_text() == "nonsense = 1\n"


def test_tables_with_names_are_set_too(work: Path) -> None:
    run("set", 'models."openai/gpt-5.6".context', "1000")
    run("set", "providers.mine", '{ dialect = "gemini", base_url = "https://h" }')
    run("set", "providers.mine.title", "Mine")
    run("set", "mcp_servers.files.command", "serve")
    run("set", "mcp_servers.files.args", '["-v"]')
    assert tomllib.loads(own(work).read_text()) == {
        "models": {"openai/gpt-5.6": {"context": 1000}},
        "providers": {"mine": {"dialect": "gemini", "base_url": "https://h", "title": "Mine"}},
        "mcp_servers": {"files": {"command": "serve", "args": ["-v"]}},
    }
    assert run("get", 'models."openai/gpt-5.6".context').stdout == "1000\n"


def test_a_file_that_is_named_is_written_with_its_whole_path(work: Path) -> None:
    run("set", "system_prompt", "own.md")
    assert run("get", "system_prompt").stdout == f"{work / 'own.md'}\n"


def test_set_says_what_wins_over_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLWIRE_LIMITS_TURNS", "3")
    done = run("set", "limits.turns", "5")
    assert "limits.turns is also set by TOOLWIRE_LIMITS_TURNS, which wins here" in done.stderr


def test_a_projects_file_counts_once_the_folder_is_trusted(work: Path) -> None:
    done = run("set", "--project", "tool_style", "xml")
    assert 'run "toolwire config trust"' in done.stderr
    assert run("get", "tool_style").stdout == "auto\n"
    assert run("trust").exit_code == 0
    assert run("get", "tool_style").stdout == "xml\n"
    assert run("trust", "--no").exit_code == 0
    done = run("get", "tool_style")
    assert (done.stdout, done.stderr) == ("auto\n", "")


def test_a_project_is_given_only_what_it_may_set(work: Path) -> None:
    done = run("set", "--project", "approval_mode", "yolo")
    assert done.exit_code == 1
    assert f"a project may not set this; move it to {own(work)}" in done.stderr
    assert not project(work).exists()


def test_the_parent_is_trusted_with_the_folders_beside(work: Path) -> None:
    project(work).parent.mkdir()
    project(work).write_text('tool_style = "xml"')
    done = run("trust", "--parent")
    assert f"{work.parent} is trusted from now on" in done.stderr
    assert run("get", "tool_style").stdout == "xml\n"
    assert run("trust", "--parent", "--no").exit_code == 2
    assert run("trust", "nowhere").exit_code == 2


def test_path_names_every_file_and_whether_it_counts(work: Path) -> None:
    run("set", "limits.turns", "5")
    project(work).parent.mkdir()
    project(work).write_text("")
    found = {one["layer"]: one for one in json.loads(run("path", "--json").stdout)}
    assert list(found) == ["system", "user", "project"]
    assert found["user"] == {"layer": "user", "path": str(own(work)), "state": "read"}
    assert found["project"]["path"] == str(project(work))
    assert "not trusted; run toolwire config trust" in found["project"]["state"]
    assert str(project(work)) in run("path").stdout


def test_no_secret_is_shown(work: Path) -> None:
    own(work).parent.mkdir()
    own(work).write_text(f"""
        [providers.mine]
        dialect = "openai-chat"
        base_url = "https://me:{SENTINEL}@h/v1?key={SENTINEL}"
        key_env = "MINE_KEY"
        headers = {{ x-any = "{SENTINEL}" }}
        [mcp_servers.files]
        command = "serve"
        args = ["--token", "{SENTINEL}", "--api-key={SENTINEL}", "-v", "https://u:{SENTINEL}@h/"]
        env = {{ ANY = "{SENTINEL}" }}
        [mcp_servers.far]
        headers = {{ Authorization = "{SENTINEL}" }}
        url = "https://h/?token={SENTINEL}"
    """)
    for args in (("show",), ("show", "--json"), ("get", "mcp_servers"), ("get", "providers")):
        done = run(*args)
        assert done.exit_code == 0, done.stderr
        assert SENTINEL not in done.output
    shown = json.loads(run("show", "--json").stdout)
    assert shown["providers.mine.key_env"]["value"] == "MINE_KEY"
    assert shown["mcp_servers.files.args"]["value"] == [
        "--token",
        "[hidden]",
        "--api-key=[hidden]",
        "-v",
        "https://h/",
    ]


def test_many_changes_at_once_all_arrive(work: Path) -> None:
    program = Path(sys.executable).with_name("toolwire")
    names = ("turns", "tokens", "cost", "seconds")
    started = [
        subprocess.Popen([str(program), "config", "set", f"limits.{name}", "7"], stderr=-1)
        for name in names
    ]
    for process in started:
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert tomllib.loads(own(work).read_text()) == {"limits": dict.fromkeys(names, 7)}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
@pytest.mark.parametrize(("said", "style"), [("yes", "xml"), ("no", "auto"), ("parent", "xml")])
def test_a_person_at_a_terminal_is_asked_once(work: Path, said: str, style: str) -> None:
    project(work).parent.mkdir()
    project(work).write_text('tool_style = "xml"')
    for asked in (True, False):
        terminal = Terminal(["config", "show", "--json"], cwd=work, stdout=subprocess.PIPE)
        if asked:
            terminal.wait_for("Trust ")
            terminal.type(said)
        assert terminal.process.stdout is not None
        shown = terminal.process.stdout.read()
        assert terminal.end() == 0
        terminal.close()
        assert json.loads(shown)["tool_style"]["value"] == style


def editor(folder: Path, *contents: str) -> str:
    """An editor that leaves these contents, one after the other."""
    for number, content in enumerate(contents):
        (folder / f"{number}.toml").write_text(content)
    script = folder / "editor.sh"
    script.write_text(
        f'#!/bin/sh\ncd "{folder}"\nnext=$(ls [0-9]*.toml | head -n 1)\n'
        'cp "$1" seen.toml\n[ -n "$next" ] && mv "$next" "$1"\nexit 0\n'
    )
    script.chmod(0o755)
    return str(script)


def test_edit_stores_a_valid_file(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = work.parent / "home" / "config.toml"
    monkeypatch.setenv("VISUAL", editor(work, "[limits]\nturns = 7\n"))
    done = run("edit")
    assert (done.exit_code, done.output) == (0, f"{file} is stored\n")
    assert file.read_text() == "[limits]\nturns = 7\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (work / "seen.toml").read_text().startswith("#:schema ")
    assert run("edit").output == f"{file} is unchanged\n"


@pytest.mark.parametrize(
    ("content", "error"),
    [("limits = 3 4\n", "would not be TOML"), ("[limits]\nturn = 1\n", 'did you mean "turns"')],
)
def test_edit_without_a_terminal_keeps_the_old_file(
    content: str, error: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = work.parent / "home" / "config.toml"
    assert run("set", "limits.turns", "3").exit_code == 0
    before = file.read_text()
    monkeypatch.setenv("EDITOR", editor(work, content))
    monkeypatch.delenv("VISUAL", raising=False)
    done = run("edit")
    assert done.exit_code == 1
    assert error in done.output
    assert done.output.endswith(f"{file} is unchanged\n")
    assert file.read_text() == before


def test_edit_may_be_tried_again_at_a_terminal(work: Path) -> None:
    file = work.parent / "home" / "config.toml"
    program = editor(work, "[limits]\nturn = 1\n", "[limits]\nturns = 1\n")
    env = {**os.environ, "VISUAL": program, "TERM": "dumb"}
    terminal = Terminal(["config", "edit"], cwd=work, env=env)
    terminal.wait_for('did you mean "turns"')
    terminal.wait_for("Edit it again?")
    terminal.type("y")
    assert terminal.end() == 0
    assert (work / "seen.toml").read_text() == "[limits]\nturn = 1\n"
    assert file.read_text() == "[limits]\nturns = 1\n"
    terminal.close()


def test_edit_does_not_overwrite_what_another_program_stored(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = work.parent / "home" / "config.toml"
    assert run("set", "limits.turns", "3").exit_code == 0
    script = work / "editor.sh"
    script.write_text(
        f'#!/bin/sh\necho "[limits]" > "$1"\necho "# other" > "{file}"\nsleep 0.01\ntouch "$1"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))
    done = run("edit")
    assert done.exit_code == 1
    assert "was changed by another program" in done.output
    assert file.read_text() == "# other\n"


def test_the_schema_is_printed(work: Path) -> None:
    done = run("schema")
    assert done.exit_code == 0
    assert json.loads(done.output)["title"] == "Settings of toolwire"
