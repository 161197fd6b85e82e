"""A task of the former evaluation: fixed in its wording, about one of four projects."""

from evals.task import Task


class FixedTask(Task, frozen=True, kw_only=True):
    """A task about a named project."""

    project: str
