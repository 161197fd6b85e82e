"""Tasks on generated projects, through the real agent: `make eval` runs the held-out half."""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

import msgspec

from evals.families import FAMILIES
from evals.family import HALVES, KINDS, SPLIT_SEED
from evals.report import Score, judge, line, table
from evals.runner import run
from evals.task import Task
from toolwire.cli.consent import consent
from toolwire.client.http.transport import HttpTransport

SEED = 20
"""Names and values of the tasks whose figures are published."""
# Without links in it: paths in calls are compared with it as text.
_TEMP = Path(tempfile.gettempdir()).resolve()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The file that `--out` writes."""

    model: str
    half: str
    seed: int
    split_seed: str
    variants: int
    table: str
    scores: tuple[Score, ...]


def main() -> None:
    """Run the tasks, print a line for each and a table, and write the report."""
    chosen = _arguments(sys.argv[1:])
    tasks = selected(chosen)
    if not tasks:
        raise SystemExit("no task matches")
    if chosen.list:
        for task in tasks:
            prompt = f"\n            {task.prompt}" if _detailed(chosen) else ""
            print(f"{task.kind:10}  {task.id}{prompt}")
        return
    scores = asyncio.run(_all(tasks, chosen))
    shown = table(scores, chosen.model)
    print(f"\n{chosen.half} half, seed {chosen.seed}\n\n{shown}")
    if chosen.out is not None:
        _write(chosen, shown, scores)
    raise SystemExit(1 if any(score.invalid_executed for score in scores) else 0)


def selected(chosen: argparse.Namespace) -> list[Task]:
    """The tasks of the half, kind and names that were requested."""
    return [
        family.task(chosen.seed, variant)
        for kind in KINDS
        for family in FAMILIES
        if family.half == chosen.half and family.kind == kind and chosen.kind in ("", kind)
        for variant in range(chosen.variants)
        if chosen.only in family.id
    ]


def _detailed(chosen: argparse.Namespace) -> bool:
    """Whether the screen may show requests and replies: held-out ones only when requested."""
    return chosen.show or chosen.half == "tuning"


async def _all(tasks: list[Task], chosen: argparse.Namespace) -> list[Score]:
    scores: list[Score] = []
    for task in tasks:
        score = await _one(task, chosen)
        scores.append(score)
        print(line(score, details=_detailed(chosen)), flush=True)
        if chosen.out is not None:
            _write(chosen, table(scores, chosen.model), scores)
    return scores


async def _one(task: Task, chosen: argparse.Namespace) -> Score:
    transport = HttpTransport()
    allowed = consent(None, chosen.yes)
    try:
        with tempfile.TemporaryDirectory(prefix="work-", dir=_TEMP) as folder:
            outcome = await run(
                task,
                Path(folder),
                model=chosen.model,
                environ=os.environ,
                transport=transport,
                consent=allowed,
            )
            return judge(task, outcome)
    finally:
        await transport.aclose()


def _write(chosen: argparse.Namespace, shown: str, scores: list[Score]) -> None:
    report = Report(
        model=chosen.model,
        half=chosen.half,
        seed=chosen.seed,
        split_seed=SPLIT_SEED,
        variants=chosen.variants,
        table=shown,
        scores=tuple(scores),
    )
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_bytes(msgspec.json.format(msgspec.json.encode(report)))


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    parser.add_argument("--model", default="local/qwen2.5-coder-1.5b", help="provider/model")
    parser.add_argument("--half", choices=HALVES, default="held-out", help="default: held-out")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed, other tasks")
    parser.add_argument("--variants", type=int, default=1, help="tasks of each family")
    parser.add_argument("--kind", choices=KINDS, default="", help="only tasks of this kind")
    parser.add_argument("--only", default="", help="families whose name contains this")
    parser.add_argument("--list", action="store_true", help="print the tasks and run none")
    parser.add_argument("--show", action="store_true", help="show held-out requests too")
    parser.add_argument("--out", type=Path, help="file for every call and reply, as JSON")
    parser.add_argument("--yes", action="store_true", help="download the embedded model")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
