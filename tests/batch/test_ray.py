"""Two nodes of Ray on this machine, one of them killed in the middle."""

import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.batch.batches import answer, lines_of, write_tasks
from tests.batch.test_examples import TASKS as EXAMPLE
from tests.batch.test_examples import figures, slow
from tests.fakes.postgres import postgres_url
from tests.fakes.simulated import Place, Simulated

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
pytestmark = pytest.mark.usefixtures("alone_on_ray")

TASKS = 16
LONGEST = 300.0
LEASE = 10.0
ENVIRON = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TOOLWIRE_LEASE_SECONDS": str(LEASE),
}


@contextmanager
def cluster(place: Place, store: str = "") -> Generator[Any]:
    """A head without cores and two nodes, with the settings of this place."""
    settings = '[tools]\nsandbox = "off"\n' + (f'[sessions]\nstore = "{store}"\n' if store else "")
    (place.home / "config.toml").write_text(settings)
    before = dict(os.environ)
    # Workers inherit the environment of their node.
    names = ("TOOLWIRE_HOME", "HOME")
    os.environ.update(ENVIRON, **{name: place.environ()[name] for name in names})
    from ray.cluster_utils import Cluster  # pyright: ignore

    made: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        made.nodes = [made.add_node(num_cpus=2) for _ in range(2)]
        made.wait_for_nodes()
        yield made
    finally:
        made.shutdown()
        os.environ.clear()
        os.environ.update(before)


def start(place: Place, tasks: str, out: Path, sim: Simulated, address: str, jobs: int) -> Any:
    options = ("--upstream", sim.upstream(), "-j", str(jobs), "--sandbox", "copy", "-q")
    where = ("--executor", f"ray={address}")
    return place.start("batch", "run", tasks, "-o", str(out), *options, *where, env=ENVIRON)


def until(process: Any, test: Callable[[], bool], seconds: float = LONGEST) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


def tasks_of(marks: Path, calls: int, count: int = TASKS) -> list[dict[str, Any]]:
    return [
        {
            "id": f"t{n}",
            "prompt": "\n".join(
                f"RUN echo x >> {marks}/{n}.{call}; sleep 0.2" for call in range(calls)
            ),
            "check": {"command": "true"},
        }
        for n in range(count)
    ]


@pytest.mark.sweep
def test_tasks_of_a_lost_node_go_on_on_the_other(tmp_path: Path):
    place, out, marks = Place(tmp_path), tmp_path / "out", tmp_path / "marks"
    marks.mkdir()
    with cluster(place) as nodes, Simulated(answer) as sim:
        file = write_tasks(place.work / "tasks.jsonl", tasks_of(marks, 4))
        process = start(place, str(file), out, sim, nodes.address, 8)
        until(process, lambda: len(list(marks.iterdir())) >= 12)
        nodes.remove_node(nodes.nodes[0], allow_graceful=False)
        _, err = process.communicate(timeout=LONGEST)
        assert process.returncode == 0, err
    lines = lines_of(out)
    assert {line["state"] for line in lines.values()} == {"passed"}
    assert len(lines) == TASKS
    assert len({line["host"].split("/")[1] for line in lines.values()}) >= 1
    ran = {path.name: path.read_text().count("x") for path in marks.iterdir()}
    assert set(ran.values()) == {1}
    # Of the eight sessions under way each had one call at most: unknown, or not started yet.
    assert sum(line["unknown"] for line in lines.values()) <= 8
    assert len(ran) >= TASKS * 4 - 8
    for path in out.rglob("*.json"):
        msgspec.json.decode(path.read_bytes())
    assert list((out / "work").iterdir()) == []


@pytest.mark.long
def test_tasks_of_a_lost_node_are_back_within_the_lease(
    tmp_path: Path, counted: Callable[[str], None]
):
    place, out, marks = Place(tmp_path), tmp_path / "out", tmp_path / "marks"
    marks.mkdir()
    count, calls = 8, 200
    with cluster(place, postgres_url()) as nodes, Simulated(answer) as sim:
        file = write_tasks(place.work / "tasks.jsonl", tasks_of(marks, calls, count))
        process = start(place, str(file), out, sim, nodes.address, count)
        done = [0] * count

        def working() -> list[int]:
            """The tasks that made a further call since the last look."""
            now = [
                sum(path.name.startswith(f"{n}.") for path in marks.iterdir()) for n in range(count)
            ]
            found = [n for n in range(count) if now[n] > done[n]]
            done[:] = now
            return found

        until(process, lambda: len(list(marks.glob("*.2"))) == count)
        nodes.remove_node(nodes.nodes[0], allow_graceful=False)
        began, missing, last = time.monotonic(), set(range(count)), 0.0
        # Hosts of a lost node end a little later than it does.
        time.sleep(1.0)
        working()
        while missing and time.monotonic() < began + LEASE + 15:
            time.sleep(0.1)
            if back := missing.intersection(working()):
                missing -= back
                last = time.monotonic() - began
        counted(f"tasks of a lost node of Ray are back after {last:.1f} s, lease {LEASE:.0f} s")
        assert missing == set()
        assert process.poll() is None
        stopped = place.toolwire("batch", "stop", str(out), "--now", env=ENVIRON)
        assert stopped.code == 0, stopped.err
        process.communicate(timeout=LONGEST)
        assert process.returncode == 130
    assert {path.read_text() for path in marks.iterdir()} == {"x\n"}


@pytest.mark.sweep
def test_the_example_on_ray_with_a_node_killed_ends_as_on_one_machine(tmp_path: Path):
    alone, place = Place(tmp_path / "alone"), Place(tmp_path / "ray")
    alone.root.mkdir()
    place.root.mkdir()
    with Simulated(slow) as sim:
        given = ("-o", str(tmp_path / "local"), "--upstream", sim.upstream(), "-q")
        local = alone.toolwire("batch", "run", EXAMPLE, *given)
        assert local.code == 0, local.err
        with cluster(place, postgres_url()) as nodes:
            before = len(sim.requests)
            process = start(place, EXAMPLE, tmp_path / "out", sim, nodes.address, 4)
            until(process, lambda: len(sim.requests) > before)
            nodes.remove_node(nodes.nodes[0], allow_graceful=False)
            out, err = process.communicate(timeout=LONGEST)
    assert (process.returncode, out.decode()) == (0, local.out), err
    assert figures(tmp_path / "out") == figures(tmp_path / "local")


@pytest.mark.sweep
def test_without_an_address_no_cluster_of_others_is_joined(tmp_path: Path):
    place, out = Place(tmp_path), tmp_path / "out"
    with cluster(place) as nodes, Simulated(slow) as sim:
        theirs = {node.node_id[:8] for node in nodes.list_all_nodes()}
        given = ("--upstream", sim.upstream(), "-j", "2", "-q", "--executor", "ray")
        done = place.toolwire("batch", "run", EXAMPLE, "-o", str(out), *given, env=ENVIRON)
    assert done.code == 0, done.err
    assert theirs
    assert theirs.isdisjoint(line["host"].split("/")[1] for line in lines_of(out).values())
