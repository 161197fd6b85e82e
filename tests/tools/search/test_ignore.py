import os
import subprocess
from pathlib import Path

import pytest

from tests.tools.workspaces import call, context_in, git, put, refused, write
from toolwire.tools.builtin import (
    glob,
    list_directory,
    read_file,
    read_many_files,
    search_file_content,
)
from toolwire.tools.search.grep import ripgrep
from toolwire.tools.search.ignore import Ignored, IgnoreRules
from toolwire.tools.search.walk import Walk, walk
from toolwire.tools.spec import SearchWay, ToolSettings

RULES = {
    ".gitignore": "*.log\n!keep.log\n/only-top.txt\nbuild/\n"
    "docs/**/draft.md\n# a comment\n\\#odd\n",
    "sub/.gitignore": "local.txt\n!again.log\n",
    "sub/deep/.gitignore": "*\n!.gitignore\n",
}
FILES = (
    "a.log",
    "keep.log",
    "only-top.txt",
    "sub/only-top.txt",
    "build/out.txt",
    "build/keep.log",
    "sub/build/out.txt",
    "docs/a/b/draft.md",
    "docs/draft.md",
    "docs/final.md",
    "#odd",
    "sub/local.txt",
    "local.txt",
    "sub/again.log",
    "sub/other.log",
    "sub/deep/hidden.txt",
    "plain.txt",
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for name in FILES:
        write(root / name, "needle\n")
    for name, rules in RULES.items():
        write(root / name, rules)
    git(root)
    write(root / ".git" / "info" / "exclude", "excluded.txt\n")
    write(root / "excluded.txt", "needle\n")
    return root


def git_ignores(root: Path) -> set[str]:
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    names = [name for name in names if not name.startswith(".git/")]
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=root,
        input="\n".join(names),
        capture_output=True,
        text=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"},
    )
    return {line.strip('"').replace("\\\\", "\\") for line in asked.stdout.splitlines()}


def test_our_rules_are_those_of_git(repository: Path, tmp_path: Path) -> None:
    rules = IgnoreRules(repository)
    files = [path for path in repository.rglob("*") if path.is_file()]
    ours = {
        str(path.relative_to(repository))
        for path in files
        if ".git" not in path.relative_to(repository).parts and rules.ignored(path)
    }
    assert ours == git_ignores(repository)
    workspace = context_in(tmp_path).workspace
    plan = Walk(start=repository, workspace=workspace, rules=rules, into_ignored=True)
    assert {file.path for file in walk(plan) if file.ignored} == ours


def test_every_tool_hides_the_same_files(repository: Path, tmp_path: Path) -> None:
    context = context_in(tmp_path)
    write(repository / ".toolwireignore", "plain.txt\n")
    write(repository / ".geminiignore", "docs/\n")
    hidden = git_ignores(repository) | {"plain.txt", "docs/final.md"}
    wanted = {name for name in FILES if name not in hidden}
    found = call(glob.TOOL, context, pattern="**/*").text
    assert {name for name in FILES if f"{repository}/{name}\n" in f"{found}\n"} == wanted
    ways: list[SearchWay] = ["own", "git", "rg"] if ripgrep({}) else ["own", "git"]
    for way in ways:
        asked = context_in(tmp_path, settings=ToolSettings(search_with=way))
        searched = call(search_file_content.TOOL, asked, pattern="needle").text
        assert {name for name in FILES if f"File: {name}\n" in searched} == wanted
    many = call(read_many_files.TOOL, context, paths=["**/*"], useDefaultExcludes=False)
    shown = "".join(getattr(part, "text", "") for part in many.beside)
    assert {name for name in FILES if f"--- {repository}/{name} ---" in shown} == wanted
    listed = call(list_directory.TOOL, context, path=str(repository)).text.split("\n")
    top = {name for name in FILES if "/" not in name}
    assert top & set(listed) == top & wanted


def test_outside_of_a_repository_gitignore_says_nothing(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = put(context, a_txt="needle\n")
    write(root / ".gitignore", "a.txt\n")
    assert "a.txt" in call(glob.TOOL, context, pattern="*.txt").text
    assert "File: a.txt" in call(search_file_content.TOOL, context, pattern="needle").text


def test_a_workspace_inside_a_repository_heeds_the_rules_above_it(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = put(context, a_txt="needle\n", b_md="needle\n")
    git(tmp_path)
    write(tmp_path / ".gitignore", "workspace/*.txt\n")
    assert IgnoreRules(root).ignored(root / "a.txt") is Ignored.GIT
    assert call(glob.TOOL, context, pattern="*").text.endswith(f"{root}/b.md")


@pytest.mark.parametrize("name", [".geminiignore", ".toolwireignore"])
def test_read_file_names_the_file_that_hides(name: str, tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = put(context, sub__s_txt="secret\n")
    write(root / name, "sub/\n")
    path = f"{root}/sub/s.txt"
    said = refused(read_file.TOOL, context, absolute_path=path)
    assert said == f"File path '{path}' is ignored by {name} pattern(s)."


def test_hidden_files_are_counted_by_kind(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    root = put(context, a_txt="", b_txt="", c_txt="", d_txt="")
    git(root)
    write(root / ".gitignore", "a.txt\n")
    write(root / ".geminiignore", "b.txt\n")
    write(root / ".toolwireignore", "c.txt\n")
    found = call(glob.TOOL, context, pattern="*.txt").text
    assert found == (
        f'Found 1 file(s) matching "*.txt" within {root} (1 additional files were git-ignored) '
        "(2 additional files were gemini-ignored), sorted by modification time (newest first):\n"
        f"{root}/d.txt"
    )
    assert call(glob.TOOL, context, pattern="a.*").text == (
        f'No files found matching pattern "a.*" within {root} (1 files were git-ignored)'
    )
    listed = call(list_directory.TOOL, context, path=str(root)).text
    assert listed.endswith("\nd.txt\n\n(2 git-ignored, 2 gemini-ignored)")
