import os
import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest

from toolwire.app.workspace_facts import locations_of
from toolwire.messages import ToolCall
from toolwire.policy import Mode
from toolwire.policy.engine import Policy
from toolwire.policy.locations import HiddenPaths, Locations
from toolwire.policy.ruling import Terms
from toolwire.tools.files.protection import Protection
from toolwire.tools.spec import Effect, Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def ground(root: Path, path: str = "/usr/bin:/bin") -> Locations:
    workspace = Workspace(roots=(root,), temp=root.parent / "temp", home=root.parent / "home")
    return locations_of(workspace, {"PATH": path})


def git(root: Path, *words: str) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(root.parent)}
    subprocess.run(("git", "-C", root, *words), check=True, capture_output=True, env=environ)


def test_what_may_not_be_read_is_found_below_a_folder(root: Path):
    (root / "a").mkdir()
    (root / "a" / ".env").write_text("x")
    (root / "a" / "b.txt").write_text("x")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "test.pem").write_text("x")
    (root / "out").symlink_to("/etc")
    (root / "key").symlink_to("a/.env")
    assert ground(root).hidden_below(str(root), None, False) == (
        HiddenPaths("a/.env", "credentials"),
    )
    followed = ground(root).hidden_below(str(root), None, True)
    assert followed is not None
    assert {(each.path, each.link) for each in followed} == {
        ("a/.env", False),
        ("node_modules/test.pem", False),
        ("out", True),
        ("key", True),
    }
    denied = ground(root).hidden_below(str(root), lambda path: path.endswith("b.txt"), False)
    assert denied is not None
    assert HiddenPaths("a/b.txt", "a rule denies it", denied=True) in denied


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("filter.x.clean", "evil"),
        ("include.path", "evil"),
        ("gpg.program", "evil"),
        ("diff.x.textconv", "evil"),
        ("diff.x.command", "evil"),
        ("diff.external", "evil"),
        ("core.worktree", "/"),
        ("core.attributesFile", "evil"),
        ("remote.origin.uploadpack", "evil"),
        ("remote.origin.vcs", "evil"),
        ("extensions.partialClone", "origin"),
        ("interactive.diffFilter", "evil"),
        ("trailer.x.command", "evil"),
        ("uploadpack.packObjectsHook", "evil"),
    ],
)
def test_settings_of_a_repository_that_may_start_programs_are_named(
    root: Path, name: str, value: str
):
    git(root, "init", "-q")
    git(root, "config", name, value)
    found = ground(root).programs_of(str(root))
    assert [each.lower() for each in found if each.lower() == name.lower()] == [name.lower()]


def test_ordinary_settings_of_a_repository_start_nothing(root: Path):
    git(root, "init", "-q")
    for name, value in (
        ("core.hooksPath", ".husky"),
        ("core.autocrlf", "input"),
        ("user.name", "Ada"),
        ("remote.origin.url", "git@example.com:a/b.git"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ("branch.main.remote", "origin"),
        ("alias.st", "status"),
        ("diff.x.xfuncname", "x"),
        ("pull.rebase", "true"),
    ):
        git(root, "config", name, value)
    assert ground(root).programs_of(str(root)) == ()
    assert ground(root).programs_of(str(root.parent)) == ()


def test_a_program_of_the_workspace_is_not_one_of_the_system(root: Path):
    tools = root / "bin"
    tools.mkdir()
    for name in ("ls", "own"):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    facts = ground(root, f"{tools}:.:/usr/bin:/bin")
    assert facts.search_path == "/usr/bin:/bin"
    assert facts.foreign("ls") == ""
    assert facts.foreign("own") == str(tools / "own")
    assert facts.foreign("./bin/ls") == "./bin/ls"
    assert facts.foreign("/usr/bin/env") == ""
    assert ground(root).search_path == ""


def test_a_pattern_matches_as_in_the_shell_or_is_not_known(root: Path):
    for name in ("b.py", "a.py", ".c.py", "-x.py"):
        (root / name).write_text("")
    matches = ground(root).matches
    assert matches(str(root), "*.py") == ("-x.py", "a.py", "b.py")
    assert matches(str(root), "?.py") == ("a.py", "b.py")
    assert matches(str(root), "*.rs") == ()
    for pattern in (".*", "[ab].py", "**/a", "a\\*", "*/../*", "src/.*"):
        assert matches(str(root), pattern) is None


def test_a_folder_with_settings_of_its_own_is_noticed(root: Path):
    inner = root / "vendor"
    inner.mkdir()
    assert ground(root).brings_settings(str(inner)) == ""
    (inner / ".npmrc").write_text("")
    assert ground(root).brings_settings(str(inner)) == ".npmrc"
    (root / ".npmrc").write_text("")
    assert ground(root).brings_settings(str(root)) == ""


def test_what_is_protected_is_determined_once_per_ruling(root: Path):
    policy = Policy(Terms(locations=ground(root)), lambda rule: None)
    made: list[str] = []

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code is Protection.__init__.__code__:
            made.append(event)

    call = ToolCall(id="1", name="run_shell_command", arguments="")
    sys.setprofile(count)
    try:
        policy(call, Effect.EXECUTE, (root,), {"command": "cat a.txt b.txt > c.txt"})
    finally:
        sys.setprofile(None)
    assert len(made) == 1


def test_a_ruling_follows_links_to_protected_folders_as_they_are_now(root: Path):
    locations = ground(root)
    policy = Policy(Terms(locations=locations, mode=Mode.AUTO_EDIT), lambda rule: None)
    call = ToolCall(id="1", name="write_file", arguments="")
    file = root / "elsewhere" / ".docker" / "notes"
    assert policy(call, Effect.WRITE, (file,), {}).decision == "allow"
    file.parent.mkdir(parents=True)
    (root.parent / "home").symlink_to(root / "elsewhere")
    assert locations.protected(str(file)) == ""
    assert policy(call, Effect.WRITE, (file,), {}).decision == "ask"
    assert locations.protected(str(file)) == "credentials"
