"""The 80 tasks by which prompts were once chosen, as families of the tuning half."""

from functools import partial

import msgspec

from evals.checks import unchanged, untouched
from evals.draw import Draw
from evals.family import Family, Kind
from evals.former import doing, looking, multi_step
from evals.former.fixed import FixedTask
from evals.former.projects import PROJECTS
from evals.former.renaming import rename
from evals.former.solutions import solution
from evals.task import Task


def _make(fixed: FixedTask, draw: Draw) -> Task:
    question = unchanged in fixed.done or untouched in fixed.done
    whole = msgspec.structs.replace(
        fixed, question=question, solution=solution(fixed.id, fixed.project)
    )
    return rename(whole, fixed.project, PROJECTS[fixed.project], draw)


def _family(fixed: FixedTask, kind: Kind) -> Family:
    return Family(id=fixed.id, kind=kind, make=partial(_make, fixed), tuned=True)


FAMILIES = (
    *(_family(task, "one-step") for task in (*looking.TASKS, *doing.TASKS)),
    *(_family(task, "multi-step") for task in multi_step.TASKS),
)
