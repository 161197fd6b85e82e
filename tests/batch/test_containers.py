"""Containers, before a stand-in for docker that has folders for images and containers."""

import asyncio
import stat
import sys
from pathlib import Path

import pytest

from toolwire.batch.tasks import TaskWorkspace
from toolwire.batch.workspaces import WorkspaceFailed, Workspaces
from toolwire.tools.shell.shells import confined_by
from toolwire.tools.spec import SandboxSpec, ToolContext, Workspace

DOCKER = """#!{python}
import pathlib, shutil, sys
here = pathlib.Path(__file__).parent
words = sys.argv[1:]
with (here / "log").open("a") as log:
    log.write(" ".join(words) + "\\n")
match words[0]:
    case "build":
        print("sha256:built")
    case "image":
        print("/app")
    case "create":
        print("made")
    case "cp":
        if "missing" in words[1]:
            sys.exit("no such image")
        pathlib.Path(words[2]).joinpath("from-image.txt").write_text("x")
    case "run":
        name = words[words.index("--name") + 1]
        (here / f"container-{{name}}").touch()
    case "rm":
        (here / f"container-{{words[-1]}}").unlink(missing_ok=True)
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(DOCKER.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    return program.parent / "log"


def test_a_task_with_an_image_has_a_container_that_goes_with_it(tmp_path: Path, log: Path):
    spaces = Workspaces(tmp_path / "out", "b1")
    spec = TaskWorkspace(build="/recipe", memory=512, cpus=1.5)
    place = asyncio.run(spaces.make(1, spec))
    name = f"toolwire-{spaces.token(1)}"
    assert place.container == name
    assert (Path(place.folder) / "from-image.txt").exists()
    run = next(line for line in log.read_text().splitlines() if line.startswith("run "))
    for words in (
        *("--init --rm", "--network none", "--memory 512m", "--cpus 1.5", "--pids-limit 2048"),
        *("--label toolwire.batch=b1", f"-v {place.root}:/app", f"-v {place.root}:{place.root}"),
        "--entrypoint sleep sha256:built infinity",
    ):
        assert words in run
    assert (log.parent / f"container-{name}").exists()
    asyncio.run(spaces.remove(1))
    assert not (log.parent / f"container-{name}").exists()
    assert not spaces.place(1).exists()


def test_an_image_for_all_tasks_mounts_their_files(tmp_path: Path, log: Path):
    spaces = Workspaces(tmp_path / "out", "b1", "docker", "python:3")
    place = asyncio.run(spaces.make(2, TaskWorkspace(files={"a.txt": "a"})))
    assert (Path(place.folder) / "a.txt").read_text() == "a"
    assert "python:3 infinity" in log.read_text()
    assert "cp " not in log.read_text()


@pytest.mark.usefixtures("log")
def test_an_image_that_is_not_there_is_an_error_of_the_workspace(tmp_path: Path):
    spaces = Workspaces(tmp_path / "out", "b1")
    with pytest.raises(WorkspaceFailed, match="docker cp: no such image"):
        asyncio.run(spaces.make(3, TaskWorkspace(image="x", folder="/missing")))


def test_a_daemon_that_does_not_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    words = "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
    advice = "Run 'docker run --help' for more information"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n\\n%s\\n" "{words}" "{advice}" >&2\nexit 125\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    with pytest.raises(WorkspaceFailed) as caught:
        asyncio.run(Workspaces(tmp_path / "out", "b1", "docker", "debian").make(1, TaskWorkspace()))
    assert str(caught.value) == f"docker run: {words.removeprefix('docker: ')}"


def test_commands_run_in_the_container(tmp_path: Path):
    context = ToolContext(
        workspace=Workspace(roots=(tmp_path,), temp=tmp_path, home=tmp_path),
        environ={"LANG": "C", "PATH": "/bin"},
        sandbox=SandboxSpec(container="c1"),
    )
    confined = asyncio.run(confined_by(context))
    assert confined is not None
    assert confined.prefix == ("docker", "exec", "-e", "LANG=C", "-w", str(tmp_path), "c1")
