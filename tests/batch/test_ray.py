"""Two nodes of Ray on this machine, one of them killed in the middle."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.batch.batches import answer, lines_of, write_tasks
from tests.fakes.simulated import LONGEST, Place, Simulated

pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
pytestmark = pytest.mark.sweep

TASKS = 16
ENVIRON = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def tasks_of(marks: Path) -> list[dict[str, Any]]:
    return [
        {
            "id": f"t{n}",
            "prompt": "\n".join(
                f"RUN echo x >> {marks}/{n}.{call}; sleep 0.2" for call in range(4)
            ),
            "check": {"command": "true"},
        }
        for n in range(TASKS)
    ]


def test_tasks_of_a_lost_node_go_on_on_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    place, out, marks = Place(tmp_path), tmp_path / "out", tmp_path / "marks"
    marks.mkdir()
    (place.home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
    # Workers inherit the environment of their node.
    for name in ("TOOLWIRE_HOME", "HOME"):
        monkeypatch.setenv(name, place.environ()[name])
    from ray.cluster_utils import Cluster  # pyright: ignore

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes = [cluster.add_node(num_cpus=2) for _ in range(2)]
        cluster.wait_for_nodes()
        with Simulated(answer) as sim:
            file = write_tasks(place.work / "tasks.jsonl", tasks_of(marks))
            options = ("--upstream", sim.upstream(), "-j", "8", "--sandbox", "copy", "-q")
            process = place.start(
                *("batch", "run", str(file), "-o", str(out), *options),
                *("--executor", f"ray={cluster.address}"),
                env=ENVIRON,
            )
            end = time.monotonic() + LONGEST
            while len(list(marks.iterdir())) < 12 and time.monotonic() < end:
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.05)
            cluster.remove_node(nodes[0], allow_graceful=False)
            _, err = process.communicate(timeout=4 * LONGEST)
        assert process.returncode == 0, err
    finally:
        cluster.shutdown()
    lines = lines_of(out)
    assert {line["state"] for line in lines.values()} == {"passed"}
    assert len(lines) == TASKS
    assert len({line["host"].split("/")[1] for line in lines.values()}) >= 1
    ran = {path.name: path.read_text().count("x") for path in marks.iterdir()}
    assert set(ran.values()) == {1}
    unknown = sum(line["unknown"] for line in lines.values())
    assert unknown <= 8
    assert len(ran) >= TASKS * 4 - unknown
    for path in out.rglob("*.json"):
        msgspec.json.decode(path.read_bytes())
    assert list((out / "work").iterdir()) == []
