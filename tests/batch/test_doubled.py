"""The same attempt submitted to two hosts runs once."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.batch.batches import answer, lines_of, write_tasks
from tests.fakes.simulated import Simulated
from toolwire.batch import batches
from toolwire.batch.local import LocalExecutor
from toolwire.batch.ray import RayExecutor
from toolwire.batch.spec import BatchSpec
from toolwire.batch.store import Claim

TASKS, CALLS = 8, 3
RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


class TwiceLocal(LocalExecutor):
    async def submit(self, claim: Claim, avoid: str = "") -> None:
        await super().submit(claim, avoid)
        (holder, *_) = [name for name, host in self._hosts.items() if claim.n in host.running]
        await super().submit(claim, holder)


class TwiceRay(RayExecutor):
    async def submit(self, claim: Claim, avoid: str = "") -> None:
        await super().submit(claim, avoid)
        holders = [name for name, host in self._hosts.items() if claim.n in host.running]
        await super().submit(claim, holders[0] if holders else "")


@pytest.fixture
def sim() -> Iterator[Simulated]:
    with Simulated(answer) as running:
        yield running


def tasks_of(marks: Path) -> list[dict[str, Any]]:
    marks.mkdir()
    return [
        {
            "id": f"t{n}",
            "prompt": "\n".join(
                f"RUN echo x >> {marks}/{n}.{call}; sleep 0.1" for call in range(3)
            ),
            "check": {"command": "true"},
        }
        for n in range(TASKS)
    ]


def run_twice(root: Path, sim: Simulated, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    home = root / "home"
    home.mkdir()
    (home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
    for name, value in {"TOOLWIRE_HOME": str(home), "HOME": str(root), **RAY}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(root)
    tasks, out = write_tasks(root / "t.jsonl", tasks_of(root / "marks")), root / "out"
    spec = BatchSpec(
        id=f"twice{os.getpid()}",
        tasks=str(tasks),
        folder=str(root),
        models=("simulated",),
        upstream=sim.upstream(),
        sandbox="copy",
    )
    batches.create(out, spec).close()
    spec, store = batches.resume(out)
    upstream = sim.upstream()
    executor = (
        TwiceLocal(out, hosts=2, slots=4, batch=spec.id, upstream=upstream)
        if kind == "local"
        else TwiceRay(out, slots=4, batch=spec.id, upstream=upstream)
    )
    notices: list[str] = []
    run = batches.run_batch(
        out,
        spec,
        store,
        executor,
        show=lambda _: None,
        notice=notices.append,
        started=lambda _: None,
    )
    try:
        assert asyncio.run(run) == "done"
    finally:
        store.close()
    assert notices == []
    lines = lines_of(out)
    assert {line["state"] for line in lines.values()} == {"passed"}
    assert [line["calls"] for line in lines.values()] == [CALLS] * TASKS
    ran = {path.name: path.read_text() for path in (root / "marks").iterdir()}
    assert len(ran) == TASKS * CALLS
    assert set(ran.values()) == {"x\n"}


def test_an_attempt_on_two_local_hosts_runs_once(
    tmp_path: Path, sim: Simulated, monkeypatch: pytest.MonkeyPatch
):
    run_twice(tmp_path, sim, monkeypatch, "local")


@pytest.mark.sweep
@pytest.mark.usefixtures("alone_on_ray")
def test_an_attempt_on_two_actors_runs_once(
    tmp_path: Path, sim: Simulated, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("ray", reason="Ray is not installed: pip install ray")
    run_twice(tmp_path, sim, monkeypatch, "ray")
