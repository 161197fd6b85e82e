from collections import Counter

import pytest

from tests.bypass.case import Case, Seen, shell
from tests.bypass.container import why_not
from tests.bypass.ordinary import Label, Ordinary, ordinary_commands
from tests.bypass.worker import run_cases
from tests.bypass.world import PROJECT

needs_container = pytest.mark.skipif(bool(why_not()), reason=why_not())


def test_the_list_holds_enough_commands_and_none_twice():
    commands = ordinary_commands("/w")
    counts = Counter(one.label for one in commands)
    assert counts["read"] >= 500
    assert counts["other"] >= 200
    assert not [one for one, times in Counter(one.command for one in commands).items() if times > 1]


@needs_container
@pytest.mark.sweep
def test_nine_of_ten_reading_commands_run_unasked_and_change_nothing():
    commands, seen = ran("read")
    results = list(zip(commands, seen, strict=True))
    asked = [one.command for one, got in results if "denied" in got.outcomes]
    print(f"{len(commands) - len(asked)} of {len(commands)} run unasked")
    changed = {
        one.command: effects
        for one, got in results
        # A search through everything opens the file of credentials too, and finds nothing there.
        if (effects := [effect for effect in got.effects if effect != f"read: {PROJECT}/.env"])
    }
    assert changed == {}
    assert len(asked) <= len(commands) / 10, asked


@needs_container
@pytest.mark.sweep
@pytest.mark.parametrize("label", ["other", "outside"])
def test_no_other_command_runs_unasked(label: Label):
    commands, seen = ran(label)
    assert [
        one.command
        for one, got in zip(commands, seen, strict=True)
        if set(got.outcomes) != {"denied"}
    ] == []


def ran(label: Label) -> tuple[list[Ordinary], list[Seen]]:
    commands = [one for one in ordinary_commands(str(PROJECT)) if one.label == label]
    cases = [Case(calls=(shell(one.command),)) for one in commands]
    return commands, run_cases(cases, "ordinary")
