"""`python -m evals [--model P/M] [--only PART] [--kind one|multi] [--out FILE] [--yes]`."""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

import msgspec

from evals import multi_step, one_step
from evals.report import Score, judge, line, table
from evals.running import run
from evals.task import Task
from toolwire.cli.consent import consent
from toolwire.client.http.transport import HttpTransport

# Without links in it: paths in calls are compared with it as text.
_TEMP = Path(tempfile.gettempdir()).resolve()
_KINDS = {"one-step": one_step.TASKS, "multi-step": multi_step.TASKS}


def main() -> None:
    """Run the tasks, print a line for each and a table, keep everything."""
    chosen = _arguments()
    scores = asyncio.run(_all(chosen))
    print(f"\n{table(scores, chosen.model)}")
    if chosen.out is not None:
        chosen.out.write_bytes(msgspec.json.format(msgspec.json.encode(scores)))
    invalid = sum(score.invalid_executed for score in scores)
    raise SystemExit(1 if invalid else 0)


async def _all(chosen: argparse.Namespace) -> list[Score]:
    scores: list[Score] = []
    for kind, tasks in _KINDS.items():
        for task in tasks:
            if chosen.only in task.id and chosen.kind in kind:
                score = await _one(task, kind, chosen)
                scores.append(score)
                print(line(score), flush=True)
    return scores


async def _one(task: Task, kind: str, chosen: argparse.Namespace) -> Score:
    transport = HttpTransport()
    asked = consent({"yes": chosen.yes, "weights": None})
    try:
        with tempfile.TemporaryDirectory(prefix="evals-", dir=_TEMP) as folder:
            outcome = await run(
                task,
                Path(folder),
                model=chosen.model,
                environ=os.environ,
                transport=transport,
                consent=asked,
            )
            return judge(task, outcome, kind)
    finally:
        await transport.aclose()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    parser.add_argument("--model", default="local/qwen2.5-coder-1.5b", help="provider/model")
    parser.add_argument("--only", default="", help="tasks whose name holds this")
    parser.add_argument("--kind", default="", help="one-step or multi-step")
    parser.add_argument("--out", type=Path, help="file for every call and reply, as JSON")
    parser.add_argument("--yes", action="store_true", help="fetch the embedded model")
    return parser.parse_args(sys.argv[1:])


if __name__ == "__main__":
    main()
