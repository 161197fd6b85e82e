"""Batches before a real daemon of docker."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.batch.batches import Bench, answer, lines_of, until, write_tasks
from tests.batch.docker_image import IMAGE, containers, docker, missing
from tests.fakes.simulated import Simulated, interrupt

pytestmark = [pytest.mark.sweep, pytest.mark.slow]

CLIENT = {name: os.environ[name] for name in ("DOCKER_HOST", "DOCKER_CONFIG") if name in os.environ}
SLEEP = f"29{os.getpid()}"
"""Seconds that no other program sleeps."""


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    if reason := missing():
        pytest.skip(reason)
    with Simulated(answer) as sim:
        yield Bench(tmp_path, sim)
    # Nothing is left, whatever the test did.
    assert containers(tmp_path / "out") == []
    assert [*(tmp_path / "out" / "work").iterdir()] == []


def run(bench: Bench, tasks: list[dict[str, Any]], *options: str) -> dict[str, dict[str, Any]]:
    done = bench.run(tasks, "--sandbox", f"docker={IMAGE}", *options, **CLIENT)
    assert done.code == 0, (done.out, done.err, (bench.out / "hosts.log").read_text())
    return lines_of(bench.out)


def start(bench: Bench, tasks: list[dict[str, Any]], *options: str) -> Any:
    file = write_tasks(bench.place.work / "tasks.jsonl", tasks)
    given = ("--upstream", bench.sim.upstream(), "-q", "--sandbox", f"docker={IMAGE}", *options)
    return bench.place.start("batch", "run", str(file), "-o", str(bench.out), *given, env=CLIENT)


def resumed(bench: Bench, code: int = 0) -> dict[str, dict[str, Any]]:
    given = ("--upstream", bench.sim.upstream(), "-q")
    done = bench.batch("resume", str(bench.out), *given, env=CLIENT)
    assert done.code == code, (done.out, done.err)
    return lines_of(bench.out)


def folder(root: Path) -> Path:
    """A Dockerfile with files of several kinds and owners."""
    root.mkdir()
    root.joinpath("Dockerfile").write_text(
        f"FROM {IMAGE}\n"
        "RUN mkdir -p /app/sub && printf 'a\\0b' > /app/data.bin && echo hi > /app/a.txt"
        " && chmod 640 /app/a.txt && chown 1234:1234 /app/data.bin /app/sub && ln -s a.txt /app/l"
        " && touch /app/run.sh && chmod 750 /app/run.sh\n"
        "WORKDIR /app\nUSER app\n"
    )
    return root


def test_tasks_work_in_containers_of_their_own(tmp_path: Path, bench: Bench):
    repo = tmp_path / "repo"
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q", str(repo)), ("-C", str(repo), "commit", "-q", "--allow-empty")):
        more = ("-m", "one") if "commit" in words else ()
        subprocess.run(["git", *who, *words, *more], check=True)
    build = folder(tmp_path / "image")
    lines = run(
        bench,
        [
            {
                "id": "files",
                "prompt": "RUN cat a.txt; echo new > b.txt; printf 'x\\0y' > c.bin; chmod +x b.txt",
                "workspace": {"files": {"a.txt": "first\n"}},
                "setup": "echo prepared > ready.txt; echo state > /state",
                "check": {
                    "command": "bash check.sh",
                    "files": {"check.sh": "test -x b.txt -a -f ready.txt -a -f /state\n"},
                },
                "artefacts": ["*.bin"],
            },
            {
                "id": "build",
                "prompt": "RUN ls -ln /app; cd /app && printf 'c\\0d' > data.bin && rm l && "
                "chown 1234:1234 a.txt && chmod 600 a.txt && mkdir -m 700 own && echo x > own/f",
                "workspace": {"build": str(build), "memory": 256, "cpus": 1},
                "check": {
                    "command": "test -f /app/own/f && test $PWD != /app && id -u | grep -x 0"
                },
            },
            {
                "id": "image",
                "prompt": "RUN ls /etc; echo $HOSTNAME > passwd",
                "workspace": {"image": IMAGE, "folder": "/etc"},
                "check": {"command": "test -f /etc/passwd && ! grep app /etc/passwd"},
            },
            {
                "id": "git",
                "prompt": "RUN ls $(cat .git/objects/info/alternates)",
                "workspace": {"git": str(repo)},
                "check": {"command": "cd $(cat .git/objects/info/alternates) && ! touch x"},
            },
            {
                "id": "network",
                "prompt": "RUN cat /proc/net/dev; env",
                "check": {"command": "test $(grep -c : /proc/net/dev) = 1"},
            },
            {
                "id": "fails",
                "prompt": "RUN exit 3",
                "check": {"command": "false"},
            },
        ],
        *("-j", "6"),
    )
    states = {id: line["state"] for id, line in lines.items()}
    assert states == {**dict.fromkeys(lines, "passed"), "fails": "failed"}, lines
    assert (bench.out / "tasks/files/artefacts/c.bin").read_bytes() == b"x\0y"
    patch = (bench.out / "tasks/files/patch.diff").read_text()
    assert "new file mode 100755" in patch
    assert "GIT binary patch" in patch
    assert "ready.txt" not in patch
    patch = (bench.out / "tasks/build/patch.diff").read_text()
    assert [line for line in patch.splitlines() if line.startswith("diff ")] == [
        f"diff --git a/{name} b/{name}" for name in ("data.bin", "l", "own/f")
    ]
    listing = lines["build"]["response"]
    if os.getuid() == 0:
        assert "1234" in listing
    assert str(bench.place.home) not in lines["network"]["response"]


def test_a_command_over_its_time_is_ended_inside(bench: Bench):
    (bench.place.home / "config.toml").write_text("[tools]\nshell_seconds = 2\n")
    loop = f"while :; do echo x >> ticks; sleep 0.{SLEEP}; done"
    lines = run(
        bench,
        [
            {
                "id": "slow",
                "prompt": f"RUN {loop}\nRUN wc -l < ticks > first; sleep 1; wc -l < ticks > second",
                "check": {"command": 'test "$(cat first)" = "$(cat second)"'},
            },
            {
                "id": "background",
                "prompt": f"RUN setsid bash -c '{loop}' </dev/null >/dev/null 2>&1 & sleep 1",
                "check": {
                    "command": "wc -l < ticks > a; sleep 1; wc -l < ticks > b; "
                    'test "$(cat a)" = "$(cat b)"'
                },
            },
            {
                "id": "check",
                "prompt": "SAY hi",
                "check": {"command": f"sleep {SLEEP}", "timeout": 1},
            },
            {
                "id": "bomb",
                "prompt": "RUN b() { b | b & b; }; b",
                "check": {"command": "echo fine"},
            },
        ],
    )
    states = {id: line["state"] for id, line in lines.items()}
    assert states == {"slow": "passed", "background": "passed", "check": "failed", "bomb": "passed"}
    assert lines["check"]["check"]["code"] == 124


def test_too_little_memory_is_named(bench: Bench):
    need = "head -c 300000000 /dev/zero | tail -c 250000000 | wc -c"
    small = {"files": {"a": "b"}, "memory": 64}
    done = bench.run(
        [
            {
                "id": "agent",
                "prompt": f"RUN set -o pipefail; {need}",
                "workspace": small,
                "check": {"command": "true"},
            },
            {
                "id": "setup",
                "prompt": "SAY hi",
                "workspace": small,
                "setup": f"set -o pipefail; {need}",
            },
            {
                "id": "check",
                "prompt": "SAY hi",
                "workspace": small,
                "check": {"command": f"set -o pipefail; {need}"},
            },
        ],
        *("--sandbox", f"docker={IMAGE}"),
        **CLIENT,
    )
    lines = lines_of(bench.out)
    words = "out of memory: the container may use 64 MB"
    assert done.code == 1
    assert lines["agent"]["state"] == "passed"
    assert words in lines["agent"]["response"]
    assert (lines["setup"]["state"], lines["setup"]["tries"]) == ("error", 1)
    assert lines["setup"]["error"] == {
        "type": "memory",
        "message": f"setup ran {words}",
        "where": "setup",
    }
    assert (lines["check"]["state"], lines["check"]["check"]["code"]) == ("failed", 137)
    assert words in (bench.out / "tasks/check/check.log").read_text()


@pytest.mark.parametrize("when", ["agent", "check"])
def test_a_task_whose_container_is_killed_begins_anew(bench: Bench, when: str):
    wait = "while [ ! -e go ]; do sleep 0.1; done"
    agent, check = (wait if when == name else "true" for name in ("agent", "check"))
    task = {
        "id": "t",
        "prompt": f"RUN echo a >> log; touch at; {agent}\nRUN touch z",
        "check": {"command": f"{check}; test -f z && wc -l < log | grep -x 1"},
    }
    driver = start(bench, [task])
    at = "at" if when == "agent" else "z"
    until(lambda: list(bench.out.glob(f"work/*/*/{at}")))
    (name,) = containers(bench.out)
    first = docker("inspect", "-f", "{{.Id}}", name)
    if when == "check":
        until(lambda: "sleep 0.1" in docker("top", name))
    docker("kill", name)

    def others() -> bool:
        return docker("inspect", "-f", "{{.Id}}", name, check=False) not in ("", first)

    until(
        lambda: (others() and list(bench.out.glob(f"work/*/*/{at}"))) or driver.poll() is not None
    )
    for path in bench.out.glob(f"work/*/*/{at}"):
        path.with_name("go").touch()
    out, err = driver.communicate(timeout=60)
    assert driver.returncode == 0, (out, err)
    line = lines_of(bench.out)["t"]
    assert (line["state"], line["tries"]) == ("passed", 2), line


def test_a_batch_that_is_killed_goes_on_in_its_containers(bench: Bench):
    tasks: list[dict[str, Any]] = [
        {
            "id": f"t{n}",
            "prompt": "RUN echo once >> /outside; echo once >> log\n"
            f"RUN echo twice >> log; touch started; sleep {SLEEP}\nRUN cat /outside log",
            "check": {"command": "wc -l < /outside | grep -x 1 && wc -l < log | grep -x 2"},
        }
        for n in range(3)
    ]
    driver = start(bench, tasks, "-j", "3")
    until(lambda: len(list(bench.out.glob("work/*/*/started"))) == 3)
    for pid in (driver.pid, *(int(note.name) for note in (bench.out / "hosts").iterdir())):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    driver.communicate()
    lines = resumed(bench)
    assert [line["state"] for line in lines.values()] == ["passed"] * 3, lines
    assert sum(line["unknown"] for line in lines.values()) == 3


def test_a_batch_that_is_stopped_goes_on_in_its_container(bench: Bench):
    task = {
        "id": "t",
        "prompt": "RUN echo once >> /outside\nRUN touch started; sleep 3\nRUN echo end >> /outside",
        "check": {"command": "wc -l < /outside | grep -x 2"},
    }
    driver = start(bench, [task])
    until(lambda: list(bench.out.glob("work/*/*/started")))
    interrupt(driver)
    driver.communicate(timeout=60)
    assert driver.returncode == 130
    (name,) = containers(bench.out)
    assert docker("inspect", "-f", "{{.State.Status}}", name) == "exited"
    line = resumed(bench)["t"]
    assert (line["state"], line["unknown"]) == ("passed", 0), line


def test_a_daemon_that_goes_away_is_an_error_and_comes_back(tmp_path: Path, bench: Bench):
    real = docker("context", "inspect", "-f", "{{.Endpoints.docker.Host}}")
    if not real.startswith("unix://"):
        pytest.skip("the daemon is not reached through a socket")
    link = tmp_path / "docker.sock"
    link.symlink_to(real.removeprefix("unix://"))
    environ = {**CLIENT, "DOCKER_HOST": f"unix://{link}"}
    task = {
        "id": "t",
        "prompt": "RUN touch started; while [ ! -e go ]; do sleep 0.1; done; exit 1\nRUN touch z",
        "check": {"command": "test -f z"},
    }
    file = write_tasks(bench.place.work / "tasks.jsonl", [task])
    given = ("--upstream", bench.sim.upstream(), "-q", "--retries", "1")
    options = ("-o", str(bench.out), "--sandbox", f"docker={IMAGE}")
    driver = bench.place.start("batch", "run", str(file), *options, *given, env=environ)
    until(lambda: list(bench.out.glob("work/*/*/started")))
    link.unlink()
    next(iter(bench.out.glob("work/*/*/started"))).with_name("go").touch()
    driver.communicate(timeout=60)
    assert driver.returncode == 1
    line = lines_of(bench.out)["t"]
    assert line["state"] == "error"
    assert "Cannot connect to the Docker daemon" in line["error"]["message"]
    link.symlink_to(real.removeprefix("unix://"))
    again = bench.batch("retry", str(bench.out), "--errors", env=environ)
    assert again.code == 0, again.err
    driver = bench.place.start("batch", "resume", str(bench.out), *given[:3], env=environ)
    until(lambda: list(bench.out.glob("work/*/*/started")) or driver.poll() is not None)
    for path in bench.out.glob("work/*/*/started"):
        path.with_name("go").touch()
    out, err = driver.communicate(timeout=60)
    assert driver.returncode == 0, (out, err)
    assert lines_of(bench.out)["t"]["state"] == "passed"


def test_an_unknown_image_is_an_error_that_names_it(bench: Bench):
    task = {"id": "t", "prompt": "SAY hi", "workspace": {"image": "toolwire-none:1"}}
    done = bench.run([task], "--retries", "0", **CLIENT)
    assert done.code == 1
    error = lines_of(bench.out)["t"]["error"]
    assert (error["type"], error["where"]) == ("docker", "workspace")
    assert "toolwire-none:1" in error["message"]


def test_a_folder_of_harbor_runs_in_the_image_it_builds(tmp_path: Path, bench: Bench):
    task = tmp_path / "harbor" / "hello"
    for name in ("environment", "tests", "solution"):
        (task / name).mkdir(parents=True)
    (task / "instruction.md").write_text("RUN echo hello > /app/hello.txt")
    (task / "task.toml").write_text(
        'version = "1.0"\n[metadata]\ntags = ["t"]\n[agent]\ntimeout_sec = 60.0\n'
        "[verifier]\ntimeout_sec = 60.0\n[environment]\nmemory = '256M'\n"
    )
    dockerfile = f"FROM {IMAGE}\nRUN mkdir /app && echo made > /app/data.txt\nWORKDIR /app\n"
    (task / "environment" / "Dockerfile").write_text(dockerfile)
    script = (
        "cd /app && grep -qx made data.txt && grep -qx hello hello.txt && test -f /tests/extra"
        " && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
    )
    (task / "tests" / "test.sh").write_text(script)
    (task / "tests" / "extra").write_text("")
    lines = bench.batch("import", "harbor", str(task))
    file = bench.place.work / "tasks.jsonl"
    file.write_text(lines.out)
    given = ("--upstream", bench.sim.upstream(), "-q")
    done = bench.batch("run", str(file), "-o", str(bench.out), *given, env=CLIENT)
    assert done.code == 0, (done.out, done.err)
    assert lines_of(bench.out)["hello"]["state"] == "passed", lines_of(bench.out)
