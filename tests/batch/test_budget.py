"""Budgets in dollars, with a provider whose prices are set."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.batch.batches import Bench, answer, lines_of, write_tasks
from tests.fakes.simulated import Done, Simulated
from toolwire.batch.sqlite import SqliteBatch

TASKS = 8
SETTINGS = """
[tools]
sandbox = "off"
[providers.priced]
dialect = "openai-chat"
base_url = "{origin}/v1"
local = true
models = ["m", "unpriced"]
[models."priced/m"]
context = 131072
prices = {{ input = 100.0, output = 100.0 }}
"""


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulated]:
    with Simulated(answer) as running:
        yield running


def run(root: Path, sim: Simulated, *options: str, prompts: list[str]) -> tuple[Bench, Done]:
    root.mkdir(exist_ok=True)
    bench = Bench(root, sim)
    (bench.place.home / "config.toml").write_text(SETTINGS.format(origin=sim.origin))
    tasks = [{"id": f"t{n}", "prompt": prompt} for n, prompt in enumerate(prompts)]
    file = write_tasks(bench.place.work / "tasks.jsonl", tasks)
    given = ("-o", str(bench.out), "-m", "priced/m", "-j", "4", "-q", *options)
    return bench, bench.batch("run", str(file), *given)


@pytest.fixture(scope="module")
def each(sim: Simulated, tmp_path_factory: pytest.TempPathFactory) -> float:
    """What one task costs."""
    bench, done = run(tmp_path_factory.mktemp("one"), sim, prompts=["SAY"])
    assert done.code == 0, done.err
    (line,) = lines_of(bench.out).values()
    assert line["cost"] > 0
    return line["cost"]


@pytest.mark.sweep
@pytest.mark.parametrize("tasks", [3.5, 5.0])
def test_a_budget_in_dollars_stops_within_one_task(
    sim: Simulated, tmp_path: Path, each: float, tasks: float
):
    bench, done = run(tmp_path, sim, "--budget", f"{each * tasks:.6f}", prompts=["SAY"] * TASKS)
    assert done.code == 3
    assert "the budget is reached; resume with a higher --budget" in done.err
    costs = [line["cost"] for line in lines_of(bench.out).values()]
    assert each * (tasks - 1) < sum(costs) <= each * (tasks + 0.1)
    assert SqliteBatch(bench.out).totals().states["waiting"] == TASKS - len(costs)
    more = bench.batch("resume", str(bench.out), "--budget", f"{each * 100:.6f}", "-q")
    assert more.code == 0, more.err
    assert len(lines_of(bench.out)) == TASKS


def test_a_hard_budget_ends_running_attempts_too(sim: Simulated, tmp_path: Path, each: float):
    # What the first one costs lets the others start; the second is over the limit by itself.
    prompts = [
        "SAY",
        "\n".join(f"RUN echo {n}" for n in range(12)),
        "RUN sleep 600",
        "RUN sleep 600",
    ]
    began = time.monotonic()
    bench, done = run(
        tmp_path, sim, "--budget", f"{each * 5:.6f}", "--budget-hard", prompts=prompts
    )
    assert done.code == 3, done.err
    assert time.monotonic() - began < 300
    assert {id: line["state"] for id, line in lines_of(bench.out).items()} == {
        "t0": "finished",
        "t1": "finished",
    }
    report = msgspec.json.decode(bench.inside("report", str(bench.out), "--json").out)
    assert report["states"] == {"finished": 2, "stopped": 2}


def test_a_model_without_a_price_needs_a_budget_of_tokens(sim: Simulated, tmp_path: Path):
    bench = Bench(tmp_path, sim)
    settings = SETTINGS.format(origin=sim.origin).replace("local = true", 'key_env = "A_KEY"')
    (bench.place.home / "config.toml").write_text(settings)
    file = write_tasks(bench.place.work / "tasks.jsonl", [{"id": "t", "prompt": "SAY"}])
    given = ("-o", str(bench.out), "-m", "priced/unpriced", "--budget", "1")
    done = bench.batch("run", str(file), *given, env={"A_KEY": "k"})
    assert (done.code, done.err.splitlines()[-1:]) == (
        42,
        [
            "toolwire: the price of priced/unpriced is not known, so --budget cannot hold; "
            "use --budget-tokens"
        ],
    )
