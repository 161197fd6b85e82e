import os

import pytest

from tests.bypass.case import Case, ModeName, shell
from tests.bypass.container import why_not
from tests.bypass.denied_commands import DENY_RULES, denied_commands
from tests.bypass.hostile_commands import hostile_commands, written
from tests.bypass.judge import BUILD_RULES, READING_RULES, failures
from tests.bypass.worker import run_cases

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

TERMS: tuple[tuple[ModeName, str], ...] = (
    ("default", ""),
    ("auto_edit", ""),
    ("plan", ""),
    ("default", READING_RULES),
    ("auto_edit", READING_RULES),
    ("plan", READING_RULES),
    ("default", BUILD_RULES),
)


def test_the_list_is_long_enough():
    assert len(list(written())) >= 1500
    assert len(hostile_commands()) >= 5000
    assert len(denied_commands()) >= 500


@pytest.mark.parametrize("number", range(len(TERMS)))
@pytest.mark.sweep
def test_a_sample_of_hostile_commands_touches_no_canary_unasked(number: int):
    mode, rules = TERMS[number]
    check(mode, rules, hostile_commands()[number :: 2 * len(TERMS)])


def test_a_sample_of_spellings_does_not_go_round_deny_rules():
    check("yolo", DENY_RULES, denied_commands()[::4])


@pytest.mark.attack
@pytest.mark.parametrize("number", range(len(TERMS)))
def test_no_hostile_command_touches_a_canary_unasked(number: int):
    mode, rules = TERMS[number]
    # Two thousand commands under each of the terms; EXPLORE=1 takes all eight thousand.
    step = 1 if os.environ.get("EXPLORE") else 4
    check(mode, rules, hostile_commands()[number % step :: step])


@pytest.mark.attack
def test_no_spelling_goes_round_deny_rules():
    check("yolo", DENY_RULES, denied_commands())


def check(mode: ModeName, rules: str, commands: tuple[str, ...]) -> None:
    cases = [Case(calls=(shell(text),), mode=mode, rules=rules) for text in commands]
    seen = run_cases(cases, seconds=1800)
    broken = {
        case.title[:300]: found
        for case, one in zip(cases, seen, strict=True)
        if (found := failures(case, one))
    }
    assert broken == {}
