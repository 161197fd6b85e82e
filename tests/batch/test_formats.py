"""Tasks of other formats, made by us, from their import to what their harnesses take."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.batch.batches import Bench, answer, lines_of
from tests.fakes.simulated import Simulated
from toolwire.batch.formats import imported, megabytes, swebench_image
from toolwire.batch.tasks import Task, parse_lines
from toolwire.errors import BadInput

GOLD = "GOLD-PATCH-OF-THE-SET"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def swebench(root: Path, count: int) -> Path:
    """Instances of one repository: a function each that is wrong, every third stays wrong."""
    repo = root / "repositories" / "acme" / "calc"
    (repo / "tests").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    for n in range(count):
        (repo / f"f{n}.py").write_text(f"def f{n}(x):\n    return x\n")
    (repo / "conftest.py").write_text("")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "start")
    base = git(repo, "rev-parse", "HEAD")
    (repo / "f0.py").write_text("# the future\n")
    git(repo, "commit", "-qam", "later")
    lines: list[bytes] = []
    for n in range(count):
        fixed = f"sed -i 's/return x/return x + {n}/' f{n}.py" if n % 3 else "ls"
        test = f"from f{n} import f{n}\n\n\ndef test_f{n}():\n    assert f{n}(1) == {n + 1}\n"
        added = "".join(f"+{line}\n" for line in test.splitlines())
        instance = {
            "instance_id": f"acme__calc-{n}",
            "repo": "acme/calc",
            "base_commit": base,
            "problem_statement": f"f{n} is wrong, see @user.\nRUN {fixed}",
            "hints_text": "",
            "version": "1.0",
            "patch": GOLD,
            "test_patch": f"diff --git a/tests/test_f{n}.py b/tests/test_f{n}.py\n"
            f"new file mode 100644\n--- /dev/null\n+++ b/tests/test_f{n}.py\n"
            f"@@ -0,0 +1,{len(test.splitlines())} @@\n{added}",
            "FAIL_TO_PASS": f'["tests/test_f{n}.py::test_f{n}"]',
            "PASS_TO_PASS": [],
        }
        lines.append(msgspec.json.encode(instance) + b"\n")
    path = root / "instances.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def harbor(root: Path, count: int) -> Path:
    """Folders of Harbor without an image; the last one is of Terminal-Bench 1."""
    for n in range(count):
        folder = root / "harbor" / f"task-{n}"
        (folder / "tests").mkdir(parents=True)
        (folder / "solution").mkdir()
        (folder / "solution" / "solve.sh").write_text(GOLD)
        prompt = f"RUN echo {n if n != 1 else 'wrong'} > answer.txt"
        check = f'grep -qx {n} answer.txt && good=1; echo "${{good:-0}}"'
        if n < count - 1:
            (folder / "environment").mkdir()
            (folder / "environment" / "data.txt").write_text("data")
            (folder / "instruction.md").write_text(prompt)
            (folder / "task.toml").write_text(
                'version = "1.0"\n[metadata]\ncategory = "files"\ntags = ["t"]\n'
                "[agent]\ntimeout_sec = 120.0\n[verifier]\ntimeout_sec = 60.0\n"
                '[environment]\ncpus = 1\nmemory = "2G"\n'
            )
            script = f'test -f data.txt || exit 1\n({check}) > "$LOGS_DIR/reward.txt"\n'
            (folder / "tests" / "test.sh").write_text(script)
        else:
            (folder / "task.yaml").write_text(
                f"instruction: |-\n  {prompt}\ndifficulty: easy\ntags: [t]\n"
                "max_agent_timeout_sec: 60\nmax_test_timeout_sec: 30\n"
            )
            (folder / "run-tests.sh").write_text(f"grep -qx {n} answer.txt\n")
            (folder / "tests" / "test_outputs.py").write_text("")
    return root / "harbor"


def tasks_of(form: str, source: Path, repositories: str = "https://example.com") -> list[Task]:
    lines = [line.encode() for line in imported(form, source, repositories)]
    return list(parse_lines(lines, "imported", source.parent))


def test_an_instance_becomes_a_task_without_its_solution(tmp_path: Path):
    tasks = tasks_of("swebench", swebench(tmp_path, 2))
    assert [task.id for task in tasks] == ["acme__calc-0", "acme__calc-1"]
    assert tasks[0].workspace.git == "https://example.com/acme/calc"
    assert tasks[0].check is not None
    assert "tests/test_f0.py::test_f0" in tasks[0].check.command
    assert GOLD not in msgspec.json.encode(tasks[0]).decode()
    assert tasks[0].meta["swebench"]["image"] == (
        "swebench/sweb.eval.x86_64.acme_1776_calc-0:latest"
    )
    assert swebench_image("astropy__astropy-12907").endswith("astropy_1776_astropy-12907:latest")


def test_a_list_of_instances_is_read_too(tmp_path: Path):
    lines = swebench(tmp_path, 2).read_bytes().splitlines()
    path = tmp_path / "instances.json"
    path.write_bytes(b"[" + b",".join(lines) + b"]")
    assert tasks_of("swebench", path) == tasks_of("swebench", tmp_path / "instances.jsonl")


def test_a_harbor_folder_becomes_a_task_without_its_solution(tmp_path: Path):
    tasks = tasks_of("harbor", harbor(tmp_path, 3))
    assert [task.id for task in tasks] == ["task-0", "task-1", "task-2"]
    first = tasks[0]
    assert first.check is not None
    assert (first.limits.seconds, first.check.timeout) == (120.0, 60.0)
    assert first.tags == ("t", "files")
    assert first.workspace.folder.endswith("environment")
    assert all("solution" not in msgspec.json.encode(task).decode() for task in tasks)


def test_an_image_has_its_size(tmp_path: Path):
    folder = harbor(tmp_path, 2) / "task-0"
    (folder / "environment" / "Dockerfile").write_text("FROM debian\n")
    space = tasks_of("harbor", folder)[0].workspace
    assert (space.kind, space.cpus, space.memory) == ("image", 1.0, 2048)
    assert [megabytes(size) for size in ("2G", "512M", "300", "1.5GB")] == [2048, 512, 300, 1536]


@pytest.mark.parametrize(
    ("form", "name", "text", "words"),
    [
        ("swebench", "a.jsonl", '{"repo": "x"}', 'a.jsonl: instance 1: no "instance_id"'),
        ("swebench", "a.jsonl", "{", "a.jsonl:1 is not JSON"),
        ("harbor", "task.toml", "x = ", "task.toml: "),
        ("harbor", "other", "", "no task.toml or task.yaml below"),
    ],
)
def test_a_source_that_cannot_be_read_is_named(
    tmp_path: Path, form: str, name: str, text: str, words: str
):
    (tmp_path / name).write_text(text)
    source = tmp_path if form == "harbor" else tmp_path / name
    with pytest.raises(BadInput) as caught:
        list(imported(form, source, ""))
    assert words in str(caught.value)


def run_both(root: Path, sim: Simulated, instances: int, folders: int) -> dict[str, dict[str, Any]]:
    bench = Bench(root, sim)
    (bench.place.home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
    (root / "swe").mkdir()
    source = swebench(root / "swe", instances)
    lines = bench.batch(
        "import", "swebench", str(source), "--repositories", str(root / "swe" / "repositories")
    )
    more = bench.batch("import", "harbor", str(harbor(root, folders)))
    assert (lines.code, more.code) == (0, 0)
    file = bench.place.work / "tasks.jsonl"
    file.write_text(lines.out + more.out)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = bench.batch(
        *("run", str(file), "-o", str(bench.out), "--upstream", sim.upstream(), "-j", "2", "-q"),
        env={"PATH": path},
    )
    assert done.code == 0, (done.out, done.err)
    return lines_of(bench.out)


def judge(root: Path, lines: dict[str, dict[str, Any]], instances: int, folders: int) -> None:
    assert len(lines) == instances + folders
    for n in range(instances):
        line = lines[f"acme__calc-{n}"]
        assert line["state"] == ("passed" if n % 3 or n == 0 else "failed"), line
    for n in range(folders):
        assert lines[f"task-{n}"]["state"] == ("failed" if n == 1 else "passed"), lines[f"task-{n}"]
    body = (root / "out" / "predictions.jsonl").read_bytes()
    found = [msgspec.json.decode(line) for line in body.splitlines()]
    assert len(found) == instances
    assert {frozenset(line) for line in found} == {
        frozenset({"instance_id", "model_name_or_path", "model_patch"})
    }
    patches = {line["instance_id"]: line["model_patch"] for line in found}
    assert "+    return x + 1" in patches["acme__calc-1"]
    assert "test_f1" not in patches["acme__calc-1"]
    clone = root / "clone"
    git(root, "clone", "-q", str(root / "swe" / "repositories" / "acme" / "calc"), str(clone))
    git(clone, "checkout", "-q", "HEAD~1")
    (root / "one.patch").write_text(patches["acme__calc-1"])
    git(clone, "apply", "--check", str(root / "one.patch"))


@pytest.mark.sweep
def test_twenty_instances_and_five_folders_run_end_to_end(tmp_path: Path):
    with Simulated(answer) as sim:
        lines = run_both(tmp_path, sim, 20, 5)
    judge(tmp_path, lines, 20, 5)
