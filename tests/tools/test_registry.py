import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.captures import ABSENT, PRESENT, declarations
from tests.tools.one_call import done
from toolwire.errors import BadInput, UnknownName
from toolwire.tools import registry
from toolwire.tools.discovered import discover
from toolwire.tools.registry import ADDED, ORIGINAL, Registry, builtins, headless
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput, Workspace


async def nothing(arguments: Any, context: ToolContext) -> ToolOutput:
    return ToolOutput()


def named(*names: str, **more: Any) -> Registry:
    return Registry(
        Tool(name=name, description="", parameters={}, effect=Effect.READ, run=nothing, **more)
        for name in names
    )


@pytest.mark.skipif(not PRESENT, reason=ABSENT)
def test_the_original_tools_are_declared_as_gemini_cli_declares_them() -> None:
    ours = [
        {
            "name": spec.name,
            "description": spec.description,
            "parametersJsonSchema": spec.parameters,
        }
        for spec in builtins(added=False).specs()
    ]
    assert ours == list(declarations().values())


def test_ours_come_after_the_original_ones() -> None:
    assert builtins().names == (*ORIGINAL, *ADDED)


def test_a_tool_is_found_by_its_alias() -> None:
    tools = named("replace", aliases=("smart_edit",))
    assert tools.get("smart_edit") is tools.get("replace")
    assert tools.get("other") is None


def test_a_tool_that_is_needed_and_missing_is_reported_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match='did you mean "read_file"'):
        named("read_file", "glob").need("raed_file")


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(BadInput, match='two tools are called "a"'):
        named("a", "a")


def test_a_name_that_is_taken_stays_with_its_tool() -> None:
    first = named("a")
    both = first.with_tools(named("a", "b"))
    assert both.names == ("a", "b")
    assert both.get("a") is first.get("a")


@pytest.mark.parametrize(
    ("core", "exclude", "left"),
    [
        ((), (), ("glob", "run_shell_command", "replace")),
        (("glob",), (), ("glob",)),
        (("ShellTool(git status)", "GlobTool"), (), ("glob", "run_shell_command")),
        (("run_shell_command(git)",), (), ("run_shell_command",)),
        ((), ("EditTool",), ("glob", "run_shell_command")),
        ((), ("run_shell_command(rm)",), ("glob", "run_shell_command", "replace")),
        (("glob", "replace"), ("replace",), ("glob",)),
        (("nothing",), (), ()),
    ],
)
def test_allow_and_deny_lists(
    core: tuple[str, ...], exclude: tuple[str, ...], left: tuple[str, ...]
) -> None:
    tools = named("glob", "run_shell_command", "replace")
    assert tools.permitted(core, exclude).names == left


def test_prefixes_of_a_tool_in_a_list() -> None:
    entries = ("run_shell_command(git status)", "ShellTool(npm)", "glob")
    assert registry.prefixes(entries, "run_shell_command") == ("git status", "npm")
    assert registry.prefixes(entries, "glob") is None
    assert registry.prefixes((*entries, "ShellTool"), "run_shell_command") is None
    assert registry.prefixes((), "glob") == ()


def test_where_no_one_can_approve_gemini_cli_leaves_tools_out() -> None:
    tools = named("glob", "replace", "write_file", "run_shell_command")
    assert headless(tools, "default").names == ("glob",)
    assert headless(tools, "auto_edit").names == ("glob", "replace", "write_file")
    assert headless(tools, "yolo").names == tools.names


def test_one_candidate_is_named_alone() -> None:
    assert named("glob").unknown("globb").endswith('registered. Did you mean "glob"?')
    assert named().unknown("").startswith('Tool "undefined_tool_name" not found in registry.')


def test_a_tool_of_ours_is_named_on_a_line_of_its_own() -> None:
    told = named(*ORIGINAL, *ADDED).unknown("apply_pach")
    first, second = told.splitlines()
    assert "apply_patch" not in first
    assert second == 'The nearest name is "apply_patch".'


@pytest.mark.parametrize(
    ("one", "other", "letters"),
    [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("read_fil", "read_file", 1)],
)
def test_distance(one: str, other: str, letters: int) -> None:
    assert registry.distance(one, other) == letters == registry.distance(other, one)


def install(folder: Path, entries: str) -> None:
    info = folder / "offering-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offering\nVersion: 1\n")
    (info / "entry_points.txt").write_text(entries)


def test_the_tools_of_installed_packages_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert registry.installed() == ()
    monkeypatch.setattr(sys.modules[__name__], "PLUGIN", list(named("one", "two")), raising=False)
    plugin = f"{__name__}:PLUGIN"
    install(
        tmp_path,
        f"[something.else]\nother = {plugin}\n[{registry.ENTRY_POINTS}]\nmany = {plugin}\n",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [tool.name for tool in registry.installed()] == ["one", "two"]


def test_an_entry_point_without_a_tool_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(tmp_path, f"[{registry.ENTRY_POINTS}]\nbad = {__name__}:nothing\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BadInput, match="entry point bad"):
        registry.installed()


DISCOVERY = """import json
print(json.dumps([
    {"name": "echo", "description": "Says it back.", "parameters": {"type": "object"}},
    {"function_declarations": [{"name": "warn"}, {"name": "die"}]},
    {"no": "name"},
]))"""
CALL = """import os, signal, sys
name = sys.argv[1]
if name == "echo":
    print(sys.stdin.read(), end="")
elif name == "warn":
    print("out"); print("err", file=sys.stderr)
else:
    os.kill(os.getpid(), signal.SIGKILL)"""


def discovered(folder: Path) -> dict[str, Tool]:
    (folder / "discover.py").write_text(DISCOVERY)
    (folder / "call.py").write_text(CALL)
    python = sys.executable
    tools = asyncio.run(
        discover(f"'{python}' discover.py", f"'{python}' call.py", cwd=folder, environ={})
    )
    return {tool.name: tool for tool in tools}


def ran(tool: Tool, folder: Path, arguments: dict[str, Any]) -> str:
    place = Workspace(roots=(folder,), temp=folder, home=folder)
    return done(tool, arguments, ToolContext(workspace=place)).text


def test_a_project_lists_its_own_tools(tmp_path: Path) -> None:
    found = discovered(tmp_path)
    assert list(found) == ["echo", "warn", "die"]
    assert found["echo"].description.startswith("Says it back.\n\nThis tool was found by running")


def test_a_projects_tool_gets_its_arguments_on_standard_input(tmp_path: Path) -> None:
    assert json.loads(ran(discovered(tmp_path)["echo"], tmp_path, {"a": [1]})) == {"a": [1]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("warn", "Stdout: out\n\nStderr: err\n\nError: (none)\nExit Code: 0\nSignal: (none)"),
        ("die", "Stdout: (empty)\nStderr: (empty)\nError: (none)\nExit Code: (none)\nSignal: 9"),
    ],
)
def test_a_projects_tool_that_fails_reports_everything(
    tmp_path: Path, name: str, text: str
) -> None:
    with pytest.raises(ToolFailed) as failure:
        ran(discovered(tmp_path)[name], tmp_path, {})
    assert str(failure.value) == text


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("print('{}')", "must print a JSON list"),
        ("print('no')", "is not JSON"),
        ("import sys; sys.exit('broken')", "failed with code 1: broken"),
    ],
)
def test_a_discovery_that_fails_says_why(tmp_path: Path, script: str, words: str) -> None:
    (tmp_path / "d.py").write_text(script)
    with pytest.raises(BadInput, match=words):
        asyncio.run(discover(f"'{sys.executable}' d.py", "x", cwd=tmp_path, environ={}))


def test_a_discovery_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be run: no-such-program"):
        asyncio.run(discover("no-such-program", "x", cwd=tmp_path, environ={}))
