from pathlib import Path
from typing import Any

import pytest

from toolwire.policy import Mode
from toolwire.policy.engine import rule
from toolwire.policy.locations import Locations
from toolwire.policy.rule_file import complaint, limited
from toolwire.policy.rules import Rule, Verdict
from toolwire.policy.ruling import Terms
from toolwire.tools.registry import builtins
from toolwire.tools.spec import Effect, ToolContext, Workspace

BLOCKED = "Command '{}' is blocked by configuration"
OUTSIDE = "Command(s) not in the allowed commands list. Disallowed commands: {}"


@pytest.mark.parametrize(
    ("command", "blocked"),
    [
        ("rm x", "rm x"),
        ("echo a && rm  x", "rm x"),
        ("bash -c 'rm x'", "bash -c 'rm x'"),
        ("ls | rm", "rm"),
        ("echo rm", ""),
        ("", ""),
    ],
)
def test_a_blocked_prefix_is_found_wherever_the_command_stands(command: str, blocked: str) -> None:
    wanted = BLOCKED.format(blocked) if blocked else ""
    assert complaint(command, (), ("rm",)) == wanted


@pytest.mark.parametrize(
    ("command", "outside"),
    [
        ("echo a", ""),
        ("echo", ""),
        ("echoes", '"echoes"'),
        ("rm x", '"rm x"'),
        ("echo a; rm x; ls", '"rm x", "ls"'),
        ("echo $(rm x)", '"echo $(rm x)" (it contains a command substitution)'),
        ("git status --short", ""),
        ("git stash", '"git stash"'),
        ("echo (", '"echo (" (a bracket is not expected)'),
    ],
)
def test_with_an_allow_list_every_command_must_stand_on_it(command: str, outside: str) -> None:
    wanted = OUTSIDE.format(outside) if outside else ""
    assert complaint(command, ("echo", "git status"), ()) == wanted


@pytest.mark.parametrize("command", ["echo $(rm x)", "echo `rm x`", "for i in a; do rm x; done"])
def test_what_is_not_certain_is_left_to_the_ruling_which_asks(command: str) -> None:
    assert complaint(command, (), ("rm",)) == ""
    deny = Rule(decision=Verdict.DENY, tool="run_shell_command", command=("rm",))
    terms = Terms(locations=Locations(roots=("/w",)), rules=(deny,), mode=Mode.YOLO)
    given = {"command": command}
    assert rule("run_shell_command", Effect.EXECUTE, (), given, terms).decision == "ask"


def said(core: tuple[str, ...], exclude: tuple[str, ...], command: str) -> str:
    shell = limited(builtins(), core, exclude).need("run_shell_command")
    place = Workspace(roots=(Path("/"),), temp=Path("/t"), home=Path("/h"))
    arguments: dict[str, Any] = {"command": command}
    return shell.check(arguments, ToolContext(workspace=place))


def test_the_shell_complains_only_where_a_list_names_prefixes() -> None:
    assert said(("run_shell_command(echo)",), (), "rm x").startswith("Command(s) not in")
    assert said(("ShellTool",), (), "rm x") == ""
    assert said(("run_shell_command(echo)", "ShellTool"), (), "rm x") == ""
    assert said((), ("ShellTool(rm)",), "rm x") == "Command 'rm x' is blocked by configuration"
    assert said((), (), "rm x") == ""
    assert said((), ("ShellTool(rm)",), " ") == "Command cannot be empty."


def test_without_a_shell_nothing_changes() -> None:
    tools = builtins().without(["run_shell_command"])
    assert limited(tools, (), ("run_shell_command(rm)",)) is tools


@pytest.mark.parametrize("command", ["'rm' x", "X=1 rm x", "r\\m x"])
def test_quotes_and_assignments_hide_no_blocked_command(command: str) -> None:
    assert complaint(command, (), ("rm",)) == BLOCKED.format(command)


@pytest.mark.parametrize("command", ["$X log", "git status; $Y"])
def test_a_name_known_only_when_it_runs_is_outside_the_list(command: str) -> None:
    assert "not in the allowed commands list" in complaint(command, ("git status",), ())
