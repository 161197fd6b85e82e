"""All families of tasks."""

from evals import former

FAMILIES = (*former.FAMILIES,)
