"""The closing words of a change: what each step did, and what is left undone."""

from collections.abc import Sequence

from toolwire.embedded.small.past import Ran, excerpt, listed
from toolwire.embedded.small.steps import PlanStep, StepKind

_DEEDS = {
    StepKind.EDIT: "Changed",
    StepKind.SUBSTITUTE: "Changed",
    StepKind.CREATE: "Created",
    StepKind.DELETE: "Deleted",
    StepKind.FOLDER: "Created the folder",
}


def deeds(done: Sequence[tuple[PlanStep, Ran]]) -> list[str]:
    """A sentence for each kind of step that was carried out."""
    groups: dict[str, list[str]] = {}
    others: list[str] = []
    for step, ran in done:
        if step.do in _DEEDS:
            groups.setdefault(_DEEDS[step.do], []).append(step.path)
        elif step.do is StepKind.RUN:
            printed = f"; it printed: {excerpt(ran.output)}" if ran.output else ""
            others.append(f"Ran `{step.command}`{printed}.")
        else:
            verb = "Moved" if step.do is StepKind.MOVE else "Copied"
            others.append(f"{verb} {step.path} to {step.to}.")
    return [
        *(f"{verb} {listed([*dict.fromkeys(paths)])}." for verb, paths in groups.items()),
        *others,
    ]


def undone(step: PlanStep, why: str) -> str:
    """A sentence about a step that was not carried out."""
    why = " ".join(why.split()).rstrip(".")
    match step.do:
        case StepKind.EDIT | StepKind.SUBSTITUTE:
            return f"Not changed: {step.path} ({why})."
        case StepKind.CREATE | StepKind.FOLDER:
            return f"Not created: {step.path} ({why})."
        case StepKind.DELETE:
            return f"Not deleted: {step.path} ({why})."
        case StepKind.MOVE | StepKind.COPY:
            return f"Not moved: {step.path} ({why})."
        case _:
            return f"Not run: `{step.command}` ({why})."
