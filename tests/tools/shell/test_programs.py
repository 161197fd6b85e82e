import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.simulated import Place
from tests.tools.workspaces import call, context_in, git, put, write
from toolwire.cli.login import open_browser
from toolwire.tools.builtin import search_file_content
from toolwire.tools.shell.environment import find_program, helper_environment
from toolwire.tools.spec import SearchWay, ToolSettings


def executable(path: Path, text: str) -> Path:
    write(path, text)
    path.chmod(0o755)
    return path


def test_a_program_is_found_by_absolute_path_outside_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, system = tmp_path / "work", tmp_path / "system"
    for folder in (work, work / "bin", system):
        executable(folder / "rg", "#!/bin/sh\n")
    (tmp_path / "link").symlink_to(work / "bin")
    monkeypatch.chdir(work)
    before = ["", ".", "bin", "../work/bin", str(work), str(work / "bin"), str(tmp_path / "link")]
    path = os.pathsep.join([*before, str(system)])
    assert find_program("rg", {"PATH": path}, (work,)) == str(system / "rg")
    assert find_program("rg", {"PATH": os.pathsep.join(before)}, (work,)) == ""


def test_a_helper_gets_no_secrets_and_nothing_that_changes_what_runs() -> None:
    environ = {
        **{"PATH": "/usr/bin", "HOME": "/h", "HTTPS_PROXY": "http://me:word@proxy:1"},
        **{"OPENAI_API_KEY": "sk-1", "PYTHONPATH": "/w", "LD_PRELOAD": "/w/x.so", "GIT_DIR": "/w"},
        **{"PYTHONSTARTUP": "/w/x.py", "BASH_ENV": "/w/x.sh", "STRIPE_SK": "x"},
    }
    kept = {"PATH", "HOME", "HTTPS_PROXY"}
    assert helper_environment(environ) == {name: environ[name] for name in kept}


@pytest.mark.parametrize("way", ["git", "rg", ""])
def test_a_search_runs_nothing_that_the_repository_brings(
    way: SearchWay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = context_in(tmp_path, settings=ToolSettings(search_with=way))
    root = put(context, a_txt="needle\n")
    canary = tmp_path / "canary"
    spring = f"#!/bin/sh\ntouch {canary}\n"
    for name in ("rg", "git", "less", "cat"):
        executable(root / name, spring)
    script = executable(root / "spring", spring)
    git(root)
    write(root / ".gitattributes", "* diff=evil filter=evil\n")
    for key, value in {
        "core.fsmonitor": script,
        "core.hooksPath": root,
        "core.pager": script,
        "pager.grep": script,
        "alias.grep": f"!{script}",
        "diff.external": script,
        "diff.evil.textconv": script,
        "diff.evil.command": script,
        "filter.evil.clean": script,
        "filter.evil.smudge": script,
        "filter.evil.process": script,
        "credential.helper": script,
        "core.sshCommand": script,
        "remote.origin.url": f"ext::{script}",
        "remote.origin.uploadpack": script,
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "grep.patternType": "fixed",
    }.items():
        subprocess.run(["git", "-C", root, "config", key, str(value)], check=True)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", f".:{root}:{os.environ['PATH']}")
    assert "L1: needle" in call(search_file_content.TOOL, context, pattern="needle").text
    assert not canary.exists()


def test_python_m_toolwire_takes_no_module_of_the_current_folder(tmp_path: Path) -> None:
    place = Place(tmp_path)
    canary = tmp_path / "canary"
    spring = f"open({str(canary)!r}, 'w').close()\n"
    for name in ("html_to_markdown", "msgspec", "click", "platformdirs", "evil"):
        write(place.work / f"{name}.py", spring)
    write(place.work / "evil-1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: evil\n")
    write(
        place.work / "evil-1.dist-info" / "entry_points.txt",
        "[toolwire.tools]\nevil = evil:TOOL\n[toolwire.providers]\nevil = evil:PROVIDER\n",
    )
    done = subprocess.run(
        [sys.executable, "-m", "toolwire", "tools", "list"],
        cwd=place.work,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TOOLWIRE_HOME": str(tmp_path)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"read_file" in done.stdout
    assert not canary.exists()


def test_the_browser_is_started_by_absolute_path_away_from_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, told = tmp_path / "work", tmp_path / "told"
    executable(work / "xdg-open", f"#!/bin/sh\ntouch {tmp_path / 'canary'}\n")
    os.mkfifo(told)
    own = executable(tmp_path / "bin" / "own", f'#!/bin/sh\n(pwd; echo "$@"; env) > {told}\n')
    monkeypatch.chdir(work)
    environ = {"BROWSER": "own --new", "PATH": f".:{work}:{own.parent}:/usr/bin:/bin", "AKEY": "x"}
    assert open_browser("https://a.example/?x=1", environ)
    where, words, *variables = told.read_text().splitlines()
    assert (where, words) == ("/", "--new https://a.example/?x=1")
    assert not any(line.startswith("AKEY=") for line in variables)
    assert not (tmp_path / "canary").exists()
