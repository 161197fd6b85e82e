"""Sixty requests that one call answers, or none."""

from evals import one_step_doing, one_step_looking

TASKS = (*one_step_looking.TASKS, *one_step_doing.TASKS)
