from itertools import product

import pytest

from tests.bypass.case import Case, shell
from tests.bypass.container import why_not
from tests.bypass.judge import failures
from tests.bypass.worker import run_cases

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

FOLDERS = (
    ".:",
    ":",
    "./:",
    "evil:",
    "./evil/:",
    "/srv/project/evil:",
    "/srv/project:",
    "src/../evil:",
)
COMMANDS = (
    "ls",
    "cat a.txt",
    "git status",
    "git log -1",
    "grep alpha a.txt",
    "rg alpha a.txt",
    "sed -n 1p a.txt",
    "head -1 a.txt",
    "find . -maxdepth 1",
    "awk 1 a.txt",
    "python3 --version",
    "wc -l a.txt | cat",
    "cd src && ls",
    "cd evil && ls",
    "find . -maxdepth 0 -exec ls {} +",
    "find . -name a.txt | xargs cat",
    "timeout 5 ls",
    "env ls",
    "command ls",
    "true && ls",
    "which ls",
)


def test_programs_of_the_workspace_do_not_take_the_place_of_known_ones():
    cases = [Case(calls=(shell(text),), path=path) for text, path in product(COMMANDS, FOLDERS)]
    broken = {
        (case.path, case.title): found
        for case, one in zip(cases, run_cases(cases), strict=True)
        if (found := failures(case, one))
    }
    assert broken == {}
