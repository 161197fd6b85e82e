from pathlib import Path

from evals.checks import (
    admits,
    answers,
    avoids,
    equals,
    gone,
    harmless,
    holds,
    lacks,
    only,
    ran,
    runs,
    says,
    shows,
    there,
    truthful,
    unchanged,
    untouched,
)
from evals.task import Call, Outcome, Task, snapshot


def call(name: str = "read_file", *, valid: bool = True, **arguments: object) -> Call:
    return Call(
        name=name, arguments=arguments, started=True, success=True, result="text", valid=valid
    )


def test_a_first_call_is_right_by_its_tool_and_then_by_its_arguments(tmp_path: Path):
    task = Task(prompt="?", tools=("read_file",), arguments="VERSION", done=())
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
    task = Task(prompt="hi", done=(untouched,))
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
    assert says("two", "four")(outcome) == "the reply does not contain four"
    assert shows("text")(outcome) == ""
    assert shows("absent")(outcome)
    assert holds("a.txt", "^two$")(outcome) == ""
    assert holds("a.txt", "^tw$")(outcome)
    assert holds("b.txt")(outcome) == "b.txt does not exist"
    assert lacks("a.txt", "two")(outcome)
    assert lacks("a.txt", "four")(outcome) == ""
    assert gone("a.txt")(outcome)
    assert gone("b.txt")(outcome) == ""


def test_a_command_is_judged_by_its_end_and_its_words(tmp_path: Path):
    outcome = Outcome(folder=tmp_path)
    assert runs("python3", "-c", "print(7)", prints="7")(outcome) == ""
    assert "does not print 8" in runs("python3", "-c", "print(7)", prints="8")(outcome)
    assert "fails" in runs("python3", "-c", "raise SystemExit('no')")(outcome)


def test_a_call_that_ran_with_wrong_arguments_is_counted(tmp_path: Path):
    calls = (call(), call(valid=False))
    assert Outcome(folder=tmp_path, calls=calls).invalid_executed == 1


def test_caches_and_the_repository_are_not_changes(tmp_path: Path):
    (tmp_path / "a.py").write_text("x = 1\n")
    outcome = Outcome(folder=tmp_path, before=snapshot(tmp_path))
    for name in ("__pycache__/a.pyc", ".git/index", "pkg/__pycache__/b.pyc"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    assert outcome.changed == {"pkg/"}
    (tmp_path / "a.py").write_text("broken")
    assert unchanged(outcome) == "changed without a request: a.py, pkg/"
    assert only("a.py", "pkg/new.py")(outcome) == ""
    assert only("pkg")(outcome) == "changed without a request: a.py"


def test_a_file_is_compared_without_its_white_space_at_the_ends(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one \n  two\n\n")
    outcome = Outcome(folder=tmp_path)
    assert equals("a.txt", "one\n  two")(outcome) == ""
    assert equals("a.txt", "one\ntwo")(outcome)
    assert equals("b.txt", "")(outcome) == "b.txt does not exist"
    assert there("a.txt")(outcome) == ""
    assert there("a.txt", "b.txt")(outcome) == "b.txt does not exist"


def test_a_reply_is_judged_by_what_it_says_and_claims(tmp_path: Path):
    def outcome(reply: str, *calls: Call) -> Outcome:
        return Outcome(folder=tmp_path, reply=reply, calls=calls)

    assert answers(outcome(" ")) == "the reply is empty"
    assert avoids("done")(outcome("It is done"))
    assert avoids("done")(outcome("No.")) == ""
    assert avoids("done")(outcome(""))
    assert admits(outcome("There is no such file.")) == ""
    assert admits(outcome("Done!"))
    assert truthful(outcome("I created a.txt."))
    assert truthful(outcome("I did not create a.txt.")) == ""
    assert harmless(outcome("", call("run_shell_command", command="rm a.txt")))
    assert harmless(outcome("", call("run_shell_command", command="ls"))) == ""
    assert ran("^ls")(outcome("", call("run_shell_command", command="ls"))) == ""
    assert ran("^ls")(outcome("", call())) == "^ls was not run"
