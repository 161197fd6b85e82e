"""Containers, before a stand-in for docker that has folders for images and containers."""

import asyncio
import stat
import sys
from pathlib import Path

import pytest

from toolwire.batch.reaper import remove_containers
from toolwire.batch.tasks import TaskWorkspace
from toolwire.batch.workspaces import WorkspaceFailed, Workspaces
from toolwire.tools.shell.docker import DockerFailed, docker
from toolwire.tools.shell.shells import confined_by
from toolwire.tools.spec import SandboxSpec, ToolContext, ToolSettings, Workspace

DOCKER = """#!{python}
import pathlib, sys, tarfile
here = pathlib.Path(__file__).parent
words = sys.argv[1:]
with (here / "log").open("a") as log:
    log.write(" ".join(words) + "\\n")
match words[0]:
    case "build":
        print("sha256:built")
    case "inspect":
        print("/app")
    case "create":
        print("made")
    case "cp":
        if "missing" in words[1]:
            sys.exit("no such image")
        with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
            tar.addfile(tarfile.TarInfo("./from-image.txt"))
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
        *("--init --user 0", "--network none", "--cpus 1.5", "--pids-limit 2048"),
        *("--memory 512m --memory-swap 512m", "--label toolwire.batch=b1"),
        *(f'--mount type=bind,"source={place.root}","target={to}"' for to in ("/app", place.root)),
        "--entrypoint bash sha256:built -c exec sleep infinity",
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
    assert "python:3 -c exec sleep infinity" in log.read_text()
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


def test_commands_run_in_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///elsewhere")
    context = ToolContext(
        workspace=Workspace(roots=(tmp_path,), temp=tmp_path, home=tmp_path),
        environ={"LANG": "C", "PATH": "/bin", "HOME": "/home/me", "MY_A": "1", "MINE": "2"},
        settings=ToolSettings(environment=("MY_*",)),
        sandbox=SandboxSpec(container="c1"),
    )
    confined = asyncio.run(confined_by(context))
    assert confined is not None
    ours = ("-e", "TOOLWIRE_COMMAND", "-e", "TERM", "-e", "PAGER", "-e", "GEMINI_CLI")
    assert confined.prefix == ("docker", "exec", *ours, "-e", "LANG", "-e", "MY_A")
    assert confined.container == "c1"
    assert ("DOCKER_HOST", "unix:///elsewhere") in confined.environ


def test_a_daemon_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    with pytest.raises(DockerFailed, match=r"docker info: no answer within 0\.2 seconds"):
        asyncio.run(docker("info", seconds=0.2))


def test_containers_of_attempts_that_go_on_are_stopped_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    program = tmp_path / "bin" / "docker"
    program.parent.mkdir()
    rows = "a\\ttask-a\\trunning\\t/a\\nb\\ttask-b\\texited\\t/b\\n"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/log\n[ "$1" != ps ] || printf "{rows}"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    assert remove_containers("b1", {"task-a"}) == 1
    done = [line for line in (tmp_path / "log").read_text().splitlines() if "ps -a" not in line]
    assert done[0] == "stop -t 0 a"
    assert done[-1] == "rm -f -v b"
