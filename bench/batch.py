"""Batches: what the layer adds to a task, its speed beside a plain pool, memory and resumption."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import msgspec

from bench.batch_driver import DriverMark
from bench.batch_pool import PROMPT
from bench.batch_store import server
from bench.batch_ways import SLOTS, local, on_ray, pool
from bench.measure import Samples
from bench.report import Goal, Section, Table

_SCRIPT = f"""
model = "bench"
[[reply]]
when = "{PROMPT}"
calls = [{{ name = "run_shell_command", arguments = {{ command = "echo one" }} }}]
[[reply]]
text = "one line"
default = true
"""
_RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
_WAYS = {
    "pool": "plain process pool",
    "local": "toolwire batch, local",
    "ray": "toolwire batch, Ray on one node",
}


def measure(rounds: int, *, quick: bool = False) -> Section:
    """Tasks of two requests and one shell call, with and without the batch layer."""
    with tempfile.TemporaryDirectory(prefix="toolwire-bench-") as made:
        root = Path(made).resolve()
        costs, cost_goals = _costs(root, rounds, 240 if quick else 400)
        driver, driver_goals = _driver(root, 5_000 if quick else 100_000)
        stores, store_goals = _stores(root, rounds, 2_000 if quick else 8_000)
    return Section("batch", (costs, driver, stores), (*cost_goals, *driver_goals, *store_goals))


@contextmanager
def _simulator(root: Path, environ: dict[str, str]) -> Generator[str]:
    script = root / "script.toml"
    script.write_text(_SCRIPT)
    command = [sys.executable, "-m", "toolwire", "simulate", str(script), "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ, text=True
    )
    assert process.stdout is not None
    try:
        yield f"openai-chat={process.stdout.readline().split()[-1].rstrip('/')}/v1"
    finally:
        process.terminate()
        process.wait()


def _costs(root: Path, rounds: int, tasks: int) -> tuple[Table, tuple[Goal, ...]]:
    home = root / "home"
    home.mkdir()
    # The same session in each way: a batch needs no checkpoints, so the pool has none either.
    (home / "config.toml").write_text('[tools]\nsandbox = "off"\n[checkpoints]\nenabled = false\n')
    environ = {**os.environ, "HOME": str(root), "TOOLWIRE_HOME": str(home), **_RAY}
    ways = {"pool": pool, "local": local}
    if find_spec("ray") is not None:
        ways["ray"] = on_ray
    cpu, rate = Samples(), Samples()
    with _simulator(root, environ) as upstream:
        for number in range(rounds):
            # Each way is first as often as last, and meets the same machine as the others.
            for name in sorted(ways, reverse=bool(number % 2)):
                spent = ways[name](root / f"{name}{number}", upstream, tasks, environ)
                cpu.add(name, spent.cpu * 1e3)
                rate.add(name, spent.rate)
    table = Table(
        f"A task of 2 requests and 1 shell call, {SLOTS} at once",
        ("way", "CPU ms per task", "over the pool", "tasks per second", "of the pool's"),
        tuple(
            (
                _WAYS[name],
                cpu[name],
                cpu.difference(name, "pool"),
                rate[name],
                rate.ratio(name, "pool"),
            )
            for name in ways
        ),
        f"{tasks} tasks, median of {rounds} rounds in turns, differences and ratios taken within "
        "each round; the start of a run is left out. The simulator runs on the same cores. CPU of "
        "driver, hosts and their tools" + ("" if "ray" in ways else "; Ray is not installed") + ".",
    )
    return table, tuple(
        goal
        for name, most in (("local", 3.0), ("ray", 6.0))
        if name in ways
        for goal in (
            Goal(
                f"{name}: CPU per task over the session",
                most,
                cpu.difference(name, "pool"),
                unit="ms",
            ),
            Goal(
                f"{name}: speed beside a plain pool", 0.85, rate.ratio(name, "pool"), at_least=True
            ),
        )
    )


def _driver(root: Path, count: int) -> tuple[Table, tuple[Goal, ...]]:
    marks = _marks(root / "flat", count, 0)
    resumed = _marks(root / "resumed", count, count * 9 // 10)[0]
    table = Table(
        f"The driver over {count:,} tasks, with an executor that does nothing",
        ("tasks", "RSS MB", "CPU ms per task"),
        tuple((mark.tasks, mark.rss_mb, mark.cpu * 1e3 / mark.tasks) for mark in marks[1:]),
        f"Resumed with 90 % done: {resumed.first:.2f} s to the first attempt.",
    )
    last = marks[-1]
    return table, (
        Goal("driver: memory", 150, last.rss_mb, f"{count:,} tasks", unit="MB"),
        Goal("driver: memory grows", 1.2, last.rss_mb / marks[1].rss_mb),
        Goal("driver: resumed with 90 % done", 10, resumed.first, f"{count:,} tasks", unit="s"),
    )


def _stores(root: Path, rounds: int, records: int) -> tuple[Table, tuple[Goal, ...]]:
    title = "A record of 800 bytes in the process that writes it"
    spent = Samples()
    with server() as url:
        if not url:
            return Table(title, ("store",), (), "No PostgreSQL to measure with."), ()
        for number in range(rounds):
            for name, store in (("sqlite", str(root / f"store{number}")), ("postgres", url)):
                command = [sys.executable, "-m", "bench.batch_store", store, str(records)]
                ran = subprocess.run(command, capture_output=True, text=True, check=True)
                spent.add(name, float(ran.stdout))
    ratio = spent.ratio("postgres", "sqlite")
    rows = tuple((name, spent[name] * 1e3) for name in ("sqlite", "postgres"))
    note = f"{records:,} records, half of them synced; median of {rounds} rounds in turns."
    table = Table(title, ("store", "CPU µs per record"), rows, note)
    return table, (Goal("postgres: CPU per record beside SQLite", 1.5, ratio),)


def _marks(folder: Path, count: int, done: int) -> list[DriverMark]:
    command = [sys.executable, "-m", "bench.batch_driver", str(folder), str(count), str(done)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return [msgspec.json.decode(line, type=DriverMark) for line in ran.stdout.splitlines()]
