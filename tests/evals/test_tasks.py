import re
from difflib import SequenceMatcher
from pathlib import Path
from pkgutil import get_data

import pytest

from evals import multi_step, one_step
from evals.projects import PROJECTS, build
from evals.task import Call, Outcome, Task, gone, holds, lacks, says, shows, unchanged, untouched

ALL = (*one_step.TASKS, *multi_step.TASKS)


def call(name: str = "read_file", *, valid: bool = True, **arguments: object) -> Call:
    return Call(
        name=name, arguments=arguments, started=True, success=True, result="text", valid=valid
    )


def test_there_are_sixty_and_twenty_tasks_and_each_has_its_own_name():
    assert len(one_step.TASKS) >= 60
    assert len(multi_step.TASKS) >= 20
    assert len({task.id for task in ALL}) == len(ALL)
    assert {task.project for task in ALL} == set(PROJECTS)


@pytest.mark.parametrize("name", PROJECTS)
def test_doing_nothing_solves_no_task(name: str, tmp_path: Path):
    build(name, tmp_path)
    outcome = Outcome(folder=tmp_path)
    solved = [task.id for task in ALL if task.project == name and not task.missing(outcome)]
    assert solved == []


@pytest.mark.parametrize("name", PROJECTS)
def test_empty_words_solve_no_task_that_needs_a_tool(name: str, tmp_path: Path):
    build(name, tmp_path)
    outcome = Outcome(folder=tmp_path, reply="Done! I did what you asked for.")
    mine = [task for task in ALL if task.project == name and not task.id.startswith("talk-")]
    assert [task.id for task in mine if not task.missing(outcome)] == []


def test_the_tasks_are_not_the_examples_of_the_prompt():
    names = ("prompt.md", "examples.md")
    text = "\n".join((get_data("toolwire.embedded.small", name) or b"").decode() for name in names)
    shown = re.findall(
        r"^(?:Request: (.+)|(.+): \{\"kind\")", text.lower(), re.MULTILINE | re.IGNORECASE
    )
    shown = [one or other for one, other in shown]
    assert len(shown) > 25
    close = [
        (task.id, example)
        for task in ALL
        for example in shown
        if SequenceMatcher(None, task.prompt.lower(), example).ratio() > 0.75
    ]
    assert close == []


def test_a_first_call_is_right_by_its_tool_and_then_by_its_arguments(tmp_path: Path):
    task = next(task for task in ALL if task.id == "read-version")
    good = call(absolute_path=f"{tmp_path}/VERSION")
    other = call(absolute_path=f"{tmp_path}/README.md")
    wrong = call("write_file", file_path=f"{tmp_path}/VERSION")

    def judged(*calls: Call) -> tuple[bool, bool]:
        outcome = Outcome(folder=tmp_path, calls=calls)
        return task.right_tool(outcome), task.right_arguments(outcome)

    assert judged(good, wrong) == (True, True)
    assert judged(other, good) == (True, False)
    assert judged(wrong) == (False, False)
    assert judged() == (False, False)


def test_where_no_tool_is_needed_none_is_right(tmp_path: Path):
    task = Task(id="t", project="shop", prompt="hi", done=(untouched,))
    idle, busy = Outcome(folder=tmp_path), Outcome(folder=tmp_path, calls=(call(),))
    assert (task.right_tool(idle), task.right_arguments(idle), task.missing(idle)) == (
        True,
        True,
        "",
    )
    assert not task.right_tool(busy)
    assert task.missing(busy)


def test_checks_look_at_files_and_words(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    outcome = Outcome(folder=tmp_path, calls=(call(),), reply="It is Two.")
    assert says("two")(outcome) == ""
    assert says("two", "four")(outcome) == "the reply does not say four"
    assert shows("text")(outcome) == ""
    assert shows("absent")(outcome)
    assert holds("a.txt", "^two$")(outcome) == ""
    assert holds("a.txt", "^tw$")(outcome)
    assert holds("b.txt")(outcome) == "b.txt is not there"
    assert lacks("a.txt", "two")(outcome)
    assert lacks("a.txt", "four")(outcome) == ""
    assert gone("a.txt")(outcome)
    assert gone("b.txt")(outcome) == ""


def test_a_command_is_judged_by_its_end_and_its_words(tmp_path: Path):
    outcome = Outcome(folder=tmp_path)
    assert multi_step.runs("python3", "-c", "print(7)", prints="7")(outcome) == ""
    assert "does not print 8" in multi_step.runs("python3", "-c", "print(7)", prints="8")(outcome)
    assert "fails" in multi_step.runs("python3", "-c", "raise SystemExit('no')")(outcome)


def test_a_call_that_ran_with_wrong_arguments_is_counted(tmp_path: Path):
    calls = (call(), call(valid=False))
    assert Outcome(folder=tmp_path, calls=calls).invalid_executed == 1


def test_a_question_that_leaves_a_change_is_not_done(tmp_path: Path):
    build("shop", tmp_path)
    outcome = Outcome(folder=tmp_path, reply="an order is large from 500 on")
    task = next(task for task in ALL if task.id == "answer-large")
    assert unchanged(outcome) == ""
    assert task.missing(outcome) == ""
    (tmp_path / "shop" / "__pycache__").mkdir()
    (tmp_path / "shop" / "__pycache__" / "a.pyc").write_text("")
    assert unchanged(outcome) == ""
    (tmp_path / "shop" / "orders.py").write_text("broken")
    assert task.missing(outcome) == "changed without being asked: shop/orders.py"
