"""What the request and the files decide is not left to a small model."""

import pytest

from tests.embedded.small.test_change import Agent, steps
from toolwire.embedded.small.programs import LIMITED

EDIT = {"do": "edit", "what": "as requested"}


@pytest.mark.parametrize(
    ("words", "path", "before", "after"),
    [
        ("set timeout to 60 in a.yaml", "a.yaml", "timeout: 20\nx: 2\n", "timeout: 60\nx: 2\n"),
        ("the mode in a.toml should be slow", "a.toml", 'mode = "fast"\n', 'mode = "slow"\n'),
        ("change port from 80 to 90 in a.json", "a.json", '{"a": 80,\n"port": 80}\n', None),
        ("make RETRIES 7 in a.py", "a.py", "RETRIES = 3  # calls\n", "RETRIES = 7  # calls\n"),
        ("set host to db2, level to 3 in a.ini", "a.ini", "[x]\nhost = db1\nlevel = 1\n", None),
        ("double batch_rows in a.ini", "a.ini", "[x]\nbatch_rows = 25\n", "[x]\nbatch_rows = 50\n"),
        ("raise the limit in a.yaml by 10%", "a.yaml", "limit: 200\n", "limit: 220\n"),
        ("set VERSION to 2.0.1", "VERSION", "2.0.0\n", "2.0.1\n"),
    ],
)
def test_a_value_that_the_request_names_is_set_without_the_model(
    words: str, path: str, before: str, after: str | None
):
    agent = Agent({path: before}, plan=steps({**EDIT, "path": path}))
    assert agent.run(words).startswith(f"Changed {path}.")
    expected = {
        '{"a": 80,\n"port": 80}\n': '{"a": 80,\n"port": 90}\n',
        "[x]\nhost = db1\nlevel = 1\n": "[x]\nhost = db2\nlevel = 3\n",
    }
    assert agent.files[path] == (after or expected[before])


@pytest.mark.parametrize(
    "words",
    [
        "change PORT in a.js to the number that conf.json gives",
        "move PORT from a.js to conf.json",
    ],
)
def test_a_value_that_the_request_only_describes_is_left_to_the_model(words: str):
    files = {"a.js": "const PORT = 1;\n", "conf.json": '{"port": 8123}\n'}
    new = {"changes": [{"new": "const PORT = 8123;", "old": "const PORT = 1;"}]}
    agent = Agent(files, plan=steps({**EDIT, "path": "a.js"}), change=[new, new])
    agent.run(words)
    assert agent.files["a.js"] == "const PORT = 8123;\n"


def test_the_key_is_not_exchanged_for_the_value():
    plan = steps({"do": "edit", "path": "a.yaml", "what": "change timeout to 60"})
    agent = Agent({"a.yaml": "timeout: 20\n"}, plan=plan)
    agent.run("requests in a.yaml need longer, a timeout of 60")
    assert agent.files["a.yaml"] == "timeout: 60\n"


def test_a_second_file_that_a_clause_orders_to_change_gets_a_step():
    files = {"notes.md": "# Notes\n", "VERSION": "1.2.0\n"}
    agent = Agent(
        files,
        plan=steps({"do": "edit", "path": "notes.md", "what": "add the line"}),
        change={"add": "- Dark theme"},
    )
    words = agent.run("add the line Dark theme to notes.md and set VERSION to 1.3.0")
    assert words.startswith("Changed notes.md and VERSION.")
    assert agent.files["VERSION"] == "1.3.0\n"


def test_a_number_that_changes_in_one_file_changes_in_the_other():
    files = {"a.ini": "[x]\nsize = 250\n", "README.md": "It holds 250 entries, for 60 s.\n"}
    plan = steps({**EDIT, "path": "a.ini"}, {**EDIT, "path": "README.md"})
    agent = Agent(files, plan=plan)
    agent.run("double the size in a.ini and correct the number in README.md")
    assert agent.files["README.md"] == "It holds 500 entries, for 60 s.\n"


def test_the_imports_of_a_renamed_module_follow_it():
    files = {"util.py": "x = 1\n", "app.py": "from util import x\n", "b.py": "import util\n"}
    agent = Agent(files, plan=steps({"do": "move", "path": "util.py", "to": "kit.py"}))
    agent.run("rename util.py to kit.py and fix the imports")
    assert agent.files["app.py"] == "from kit import x\n"
    assert agent.files["b.py"] == "import kit\n"


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("call a.csv b.csv from now on", "mv -n -- a.csv b.csv"),
        ("a.csv should be named b.csv", "mv -n -- a.csv b.csv"),
        ("copy a.csv to b.csv", "cp -n -r -- a.csv b.csv"),
    ],
)
def test_a_new_name_for_a_file_is_no_edit(words: str, command: str):
    agent = Agent({"a.csv": "x\n"}, plan=steps({**EDIT, "path": "a.csv"}))
    agent.run(words)
    assert ("run_shell_command", command) in agent.calls


def test_files_with_an_ending_are_deleted_by_it():
    plan = steps({"do": "delete", "path": ".bak"})
    agent = Agent({"a.bak": "1\n", "old/b.bak": "2\n", "c.py": "x = 1\n"}, plan=plan)
    agent.run("delete the .bak files")
    commands = [what for name, what in agent.calls if name == "run_shell_command"]
    assert commands == ["rm -r -- a.bak"]


STACK = {
    "stack.py": "def last(items):\n    return items[0]\n",
    "test_stack.py": "from stack import last\n\n\ndef test_last():\n    assert last([1, 2]) == 2\n",
}
FIXED = {"changes": [{"new": "def last(items):\n    return items[-1]", "old": "def last(items):"}]}


def _pytest(command: str, files: dict[str, str]) -> tuple[int, str]:
    return (0, "1 passed") if "items[-1]" in files["stack.py"] else (1, "assert 1 == 2")


def test_a_failing_test_is_run_first_and_its_code_is_changed_not_the_test():
    plan = steps({"do": "edit", "path": "test_stack.py", "what": "change the assertion"})
    agent = Agent(STACK, plan=plan, change=FIXED, shell=_pytest)
    words = agent.run("a test fails, find out why and fix it")
    command = "python3 -B -m pytest -q -p no:cacheprovider -p no:benchmark test_stack.py"
    assert words == f"Changed stack.py. `{command}` ran without an error."
    kinds = [name for name, _ in agent.calls]
    assert kinds.index("run_shell_command") < kinds.index("replace")
    assert agent.files["test_stack.py"] == STACK["test_stack.py"]


def test_a_denied_trial_does_not_stop_the_change():
    plan = steps({"do": "edit", "path": "stack.py", "what": "the last item"})
    agent = Agent(STACK, plan=plan, change=FIXED, denied="run_shell_command")
    words = agent.run("last in stack.py is wrong, see test_stack.py")
    assert words.startswith("Changed stack.py.")
    assert "was not run: it was not allowed" in words


@pytest.mark.parametrize(
    ("words", "command", "ran"),
    [
        ("the lines of a.txt, sorted, into b.txt", "sort a.txt > b.txt", "sort a.txt > b.txt"),
        ("sort a.txt", "sort a.txt > s.txt", "sort a.txt > s.txt && mv -- s.txt a.txt"),
    ],
)
def test_a_text_may_be_made_by_a_command_that_only_reads(words: str, command: str, ran: str):
    agent = Agent({"a.txt": "b\na\n"}, plan=steps({"do": "run", "command": command}))
    assert agent.run(words).startswith(f"Ran `{ran}`")


@pytest.mark.parametrize("command", ["curl x > b.txt", "sort a.txt > c.txt", "rm a.txt > b.txt"])
def test_no_other_command_runs_for_it(command: str):
    files = {"a.txt": "b\na\n", "c.txt": "keep\n"}
    agent = Agent(files, plan=steps({"do": "run", "command": command}), text={"text": "a\nb\n"})
    agent.run("the lines of a.txt, sorted, into b.txt")
    assert not [name for name, _ in agent.calls if name == "run_shell_command"]


def test_a_json_file_is_asked_for_as_a_value():
    plan = steps({"do": "create", "path": "conf/a.json", "what": "settings"})
    agent = Agent({"conf/b.py": "x = 1\n"}, plan=plan, text={"text": {"port": 1}})
    agent.run("write a.json with port 1")
    assert agent.files["a.json"] == '{\n  "port": 1\n}\n'


def test_a_question_ends_once_all_its_words_were_read():
    files = {"a.py": "def pack(width=47):\n    return width\n", "b.py": "x = 1\n"}
    agent = Agent(files, kind="question", answer={"reply": "It is the default."})
    words = agent.run("a.py: default for the width of pack")
    assert agent.calls == [("read_file", "a.py")]
    assert words.startswith("It is the default.")
    assert "a.py, line 1:\n```\ndef pack(width=47):" in words


def test_a_file_that_lacks_the_name_is_said_to():
    files = {"a.json": '{"x": 1}\n', "b.json": '{"buffer_pages": 2}\n'}
    agent = Agent(files, kind="question")
    assert agent.run("which buffer_pages does a.json configure?") == (
        'buffer_pages does not occur in a.json.\n\nb.json, line 1:\n```\n{"buffer_pages": 2}\n```'
    )


def test_an_identifier_may_be_spelled_another_way():
    agent = Agent({"a.env": "MAX-RETRIES=7\n"}, kind="question", answer={"reply": "7."})
    assert agent.run("which max_retries does a.env set?").startswith("7.")


@pytest.mark.parametrize(("code", "ran"), [("print(load())", True), ("print(input())", False)])
def test_a_program_that_uses_changed_code_is_run_if_it_ends_by_itself(code: str, ran: bool):
    files = {"a.py": "def load():\n    return 1\n", "main.py": f"from a import load\n{code}\n"}
    new = {"changes": [{"new": "def load():\n    return 2", "old": "def load():"}]}
    agent = Agent(files, plan=steps({**EDIT, "path": "a.py"}), change=new)
    agent.run("load in a.py shall return 2, main.py prints it")
    assert (("run_shell_command", f"{LIMITED}python3 main.py") in agent.calls) is ran


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        ("delete a.py", True),
        ("look into a.py, then delete it", True),
        ("get rid of the file a.py please", True),
        ("a.py imports a module that it does not use. Remove that import.", False),
        ("remove the first line of a.py", False),
        ("remove the line x from a.py", False),
    ],
)
def test_a_file_is_deleted_only_where_it_shall_go_not_a_part_of_it(words: str, gone: bool):
    agent = Agent({"a.py": "import os\nx = 1\n"}, plan=steps({"do": "delete", "path": "a.py"}))
    agent.run(words)
    assert (("run_shell_command", "rm -r -- a.py") in agent.calls) is gone


def test_an_order_to_collect_lines_is_a_change():
    files = {"a.md": "- TODO chairs\n", "b.md": "- TODO paint\n"}
    text = {"text": "- TODO chairs\n- TODO paint\n"}
    plan = steps({"do": "edit", "path": "a.md", "what": "collect"})
    agent = Agent(files, kind="question", plan=plan, text=text)
    assert agent.run("collect the TODO lines of a.md and b.md into c.md") == "Created c.md."
    assert agent.files["a.md"] == files["a.md"]


@pytest.mark.parametrize(
    "words",
    [
        "make a.txt from card.template: NAME is Ida Lund, CITY is Oslo",
        "copy card.template to a.txt and fill in NAME with Ida Lund and CITY with Oslo there",
    ],
)
def test_a_template_is_filled_without_the_model(words: str):
    files = {"card.template": "To: NAME\nPlace: CITY\nBye, NAME\n"}
    plan = steps({"do": "create", "path": "a.txt", "what": "fill in the names"})
    agent = Agent(files, plan=plan)
    assert agent.run(words) == "Created a.txt."
    assert agent.files["a.txt"] == "To: Ida Lund\nPlace: Oslo\nBye, Ida Lund\n"


def test_a_fault_without_a_plan_is_looked_for_in_the_code():
    plan = steps({"do": "read", "path": "test_stack.py"})
    agent = Agent(STACK, plan=plan, change=FIXED, shell=_pytest)
    assert agent.run("a test fails, find out why and fix it").startswith("Changed stack.py.")


@pytest.mark.parametrize(
    "words", ["rename pack -> wrap across the project", "in a.py rename pack to wrap"]
)
def test_a_renamed_function_is_renamed_where_it_is_imported(words: str):
    files = {"a.py": "def pack():\n    return 1\n", "b.py": "from a import pack\nprint(pack())\n"}
    agent = Agent(files, plan=steps({**EDIT, "path": "a.py"}))
    agent.run(words)
    assert agent.files["b.py"] == "from a import wrap\nprint(wrap())\n"


@pytest.mark.parametrize(
    ("words", "look"),
    [
        ("how many csv files do we have in metrics", ("glob", "metrics/**/*.csv")),
        ("list the Python files", ("glob", "**/*.py")),
        ("are there any .sql files?", ("glob", "**/*.sql")),
        ("ls metrics", ("list_directory", "metrics")),
        ("what is in this directory", ("list_directory", "")),
        ("which subfolders does metrics/ have?", ("list_directory", "metrics")),
        ("show me everything in metrics/raw", ("list_directory", "metrics/raw")),
        ("who calls total?", ("search_file_content", r"\btotal\b")),
        ("where is total defined", ("search_file_content", r"\btotal\b")),
    ],
)
def test_the_first_look_of_a_question_about_files_follows_from_it(
    words: str, look: tuple[str, str]
):
    files = {"metrics/a.csv": "1\n", "metrics/raw/b.txt": "2\n", "main.py": "def total(): ...\n"}
    agent = Agent(files, kind="question", answer={"reply": "These."})
    agent.run(words)
    assert agent.calls == [look]


@pytest.mark.parametrize(
    ("words", "after"),
    [
        ("sort the lines of a.txt alphabetically", "ann\nbob\nbob\nzoe\n"),
        ("remove the duplicate lines from a.txt", "zoe\nbob\nann\n"),
        ("order the names in a.txt in reverse", "zoe\nbob\nbob\nann\n"),
    ],
)
def test_lines_are_rearranged_without_the_model(words: str, after: str):
    agent = Agent({"a.txt": "zoe\nbob\nann\nbob\n"}, plan=steps({**EDIT, "path": "a.txt"}))
    assert agent.run(words) == "Changed a.txt."
    assert agent.files["a.txt"] == after


def test_what_two_files_differ_in_is_computed():
    files = {"a.txt": "ann\nbob\n", "b.txt": "bob\nzoe\n"}
    agent = Agent(files, kind="question", answer={"reply": "It is bob."})
    words = agent.run("which name is in a.txt but not in b.txt?")
    assert words.endswith("\n\nOnly in a.txt: ann\nOnly in b.txt: zoe\nIn both: bob")
    assert "Only in a.txt: ann" in agent.questions[-1][1]


def test_files_described_by_the_parts_of_their_names_are_moved_into_a_new_folder():
    files = {"report-2021.txt": "a\n", "report-2022.txt": "b\n", "report-2023.txt": "c\n"}
    plan = steps(*({"do": "move", "path": path, "to": "archive"} for path in files))
    agent = Agent(files, plan=plan)
    agent.run("move the reports of 2021 and 2022 into a folder called archive")
    commands = [what for name, what in agent.calls if name == "run_shell_command"]
    assert commands == [
        f"mkdir -p archive && mv -n -- report-{year}.txt archive/report-{year}.txt"
        for year in (2021, 2022)
    ]


def test_a_file_that_the_request_has_nothing_to_do_with_is_left_alone():
    plan = steps(
        {"do": "create", "path": "hi.sh", "what": "prints hi"},
        {"do": "edit", "path": "src/dates.js", "what": "print hi"},
    )
    agent = Agent({"src/dates.js": "exports.x = 1;\n"}, plan=plan, text={"text": "echo hi\n"})
    agent.run("write a script hi.sh that prints hi")
    assert agent.files["src/dates.js"] == "exports.x = 1;\n"
    assert agent.files["hi.sh"] == "echo hi\n"
