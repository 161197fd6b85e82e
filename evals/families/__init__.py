"""All families of tasks."""

from evals import former
from evals.families import (
    changes,
    commands,
    creations,
    listings,
    lookups,
    lookups_data,
    refusals,
    risky_questions,
    searches,
    steps_answers,
    steps_changes,
    steps_code,
    steps_files,
    talks,
)

_GROUPS = (
    listings,
    lookups,
    lookups_data,
    searches,
    creations,
    commands,
    changes,
    talks,
    steps_changes,
    steps_answers,
    steps_files,
    steps_code,
    refusals,
    risky_questions,
)
FAMILIES = (*former.FAMILIES, *(family for it in _GROUPS for family in it.group.families))
