"""What an evaluation found: a line a task, and a table in the end."""

import json
from collections.abc import Sequence

import msgspec

from evals.task import Outcome, Task


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """One task, judged."""

    id: str
    kind: str
    """`one-step` or `multi-step`."""
    prompt: str
    tool: bool
    arguments: bool
    done: bool
    missing: str
    invalid_executed: int
    seconds: float
    calls: tuple[str, ...]
    reply: str
    end: str


def judge(task: Task, outcome: Outcome, kind: str) -> Score:
    """The task's own checks, applied once."""
    missing = task.missing(outcome)
    return Score(
        id=task.id,
        kind=kind,
        prompt=task.prompt,
        tool=task.right_tool(outcome),
        arguments=task.right_arguments(outcome),
        done=not missing,
        missing=missing,
        invalid_executed=outcome.invalid_executed,
        seconds=round(outcome.seconds, 1),
        calls=tuple(
            f"{call.name} {json.dumps(call.arguments, ensure_ascii=False)[:200]}"
            for call in outcome.calls
        ),
        reply=outcome.reply[:400],
        end=outcome.end,
    )


def line(score: Score) -> str:
    """One task for the screen."""
    mark = "done" if score.done else "MISS"
    why = "" if score.done else f": {score.missing}"
    return f"{mark} {score.seconds:6.1f} s  {score.id}{why}"


def table(scores: Sequence[Score], model: str) -> str:
    """Markdown: right tool, right arguments, task done, invalid calls executed, time."""
    rows = [
        "| model | tasks | right tool | right arguments | done | invalid executed | median s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in ("one-step", "multi-step"):
        some = [score for score in scores if score.kind == kind]
        if not some:
            continue
        count = len(some)
        judged = kind == "one-step"
        tool = f"{sum(it.tool for it in some)}/{count}" if judged else "–"
        arguments = f"{sum(it.arguments for it in some)}/{count}" if judged else "–"
        done = f"{sum(it.done for it in some)}/{count}"
        invalid = sum(it.invalid_executed for it in some)
        middle = sorted(it.seconds for it in some)[count // 2]
        cells = (model, f"{count} {kind}", tool, arguments, done, str(invalid), f"{middle:.0f}")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
