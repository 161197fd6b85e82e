from pathlib import Path

import pytest

from tests.app.test_toolbox import Bench, shell
from toolwire.agent.questions import Choice
from toolwire.app.toolbox import ignored_rules, read_rules
from toolwire.policy.rules import Rule

TWO = "touch x.tmp && python3 hello.py"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    (bench.root / "hello.py").write_text("print('hello')\n")
    return bench


def elsewhere(bench: Bench, folder: Path) -> Bench:
    other = Bench(folder)
    other.environ = bench.environ
    return other


def test_always_stores_what_the_question_showed_for_this_project(bench: Bench):
    assert not bench.run(shell(TWO), choice=Choice.ALWAYS)[0].is_error
    assert bench.asked[0].remembers == ("exactly: touch x.tmp", "exactly: python3 hello.py")
    rules = read_rules(bench.home / "policy.toml")
    assert [(rule.command, rule.exact, rule.project) for rule in rules] == [
        (("touch", "x.tmp"), True, str(bench.root)),
        (("python3", "hello.py"), True, str(bench.root)),
    ]
    assert not bench.run(shell(TWO), choice=None)[0].is_error
    bench.run(shell("rm -f x.tmp"), choice=Choice.ALWAYS)
    for wider in (
        "rm -rf v",
        "rm -f x.tmp y",
        "rm x.tmp",
        "python3 other.py",
        "python3 hello.py x",
    ):
        assert bench.run(shell(wider), choice=None)[0].is_error, wider


def test_a_command_whose_files_another_may_move_is_approved_once_only(bench: Bench):
    bench.run(shell("python3 hello.py && rm -f x.tmp"), choice=Choice.ALWAYS)
    assert bench.asked[0].remembers == ()
    assert not (bench.home / "policy.toml").exists()


def test_another_project_is_asked_again_unless_all_were_chosen(bench: Bench, tmp_path: Path):
    other = tmp_path / "second"
    other.mkdir()
    second = elsewhere(bench, other)
    (second.root / "hello.py").write_text("print('hello')\n")
    bench.run(shell("python3 hello.py"), choice=Choice.ALWAYS)
    assert second.run(shell("python3 hello.py"), choice=None)[0].is_error
    bench.run(shell("python3 hello.py -v"), choice=Choice.EVERYWHERE)
    assert not second.run(shell("python3 hello.py -v"), choice=None)[0].is_error


def test_a_subcommand_that_runs_nothing_else_is_stored_by_its_first_two_words(bench: Bench):
    bench.run(shell("git add a.txt"), choice=Choice.SESSION)
    assert bench.asked[-1].remembers == ("every command that begins: git add",)


@pytest.mark.parametrize(
    "command",
    ["npx cowsay", "npm run build", "npm install x", "cargo run", "uv run x.py", "git config a b"],
)
def test_what_runs_other_programs_is_never_stored_by_its_beginning(bench: Bench, command: str):
    # Asked about and refused: these would use the network.
    bench.run(shell(command), choice=Choice.CANCEL)
    assert all(scope.startswith("exactly: ") for scope in bench.asked[-1].remembers)


OLD = """# mine
[[rule]]
decision = "allow"
tool = "run_shell_command"
command = ["make"]

# answered: always
[[rule]]
decision = "allow"
tool = "run_shell_command"
command = ["rm"]

# answered: always
[[rule]]
decision = "allow"
tool = "run_shell_command"
command = ["git", "commit"]
"""


def test_wide_answers_of_earlier_versions_are_not_honoured(bench: Bench):
    bench.home.mkdir()
    file = bench.home / "policy.toml"
    file.write_text(OLD)
    assert _commands(read_rules(file)) == [("make",), ("git", "commit")]
    assert _commands(ignored_rules(file)) == [("rm",)]
    assert bench.run(shell("rm -rf v"), choice=None)[0].is_error
    assert file.read_text() == OLD
    file.write_text(OLD.replace("# answered: always\n", "", 1))
    assert _commands(ignored_rules(file)) == []


def _commands(rules: tuple[Rule, ...]) -> list[tuple[str, ...]]:
    return [rule.command for rule in rules]
