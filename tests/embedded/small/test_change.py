import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count

import pytest

from tests.embedded.small.test_small import BUILT_IN, user
from toolwire.embedded import small
from toolwire.embedded.small.about import kind_of, to_read
from toolwire.embedded.small.past import RequestKind
from toolwire.embedded.small.programs import LIMITED
from toolwire.embedded.small.tools import KnownFiles
from toolwire.embedded.small.wording import forbidden, is_question
from toolwire.events import (
    Finished,
    ModelEvent,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
)
from toolwire.messages import Message, Outcome, Text, ToolCall, ToolResult
from toolwire.request import ModelRequest, ToolSpec

ROOT = "/home/me/app"


class Agent:
    """Runs a request to its end: the model answers by the name of the question, calls act on files
    in memory, commands have scripted results.
    """

    def __init__(
        self,
        files: Mapping[str, str],
        kind: str = "change",
        *,
        shell: Callable[[str, dict[str, str]], tuple[int, str]] = lambda *_: (0, "(empty)"),
        denied: str = "",
        **answers: object,
    ) -> None:
        self.files = dict(files)
        self.answers = {
            name: iter(given if isinstance(given, list) else [given])
            for name, given in {"kind": {"kind": kind}, **answers}.items()
        }
        self.shell = shell
        self.denied = denied
        self.calls: list[tuple[str, str]] = []
        self.questions: list[tuple[str, str]] = []
        self.now = 0.0

    async def model(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        assert request.output is not None
        self.questions.append((request.output.name, request.messages[-1].text))
        self.now += 1
        answer = next(self.answers[request.output.name])
        yield TextDelta(answer if isinstance(answer, str) else json.dumps(answer))
        yield Finished(reason=StopReason.END)

    def project(self) -> KnownFiles:
        folders = {path.rpartition("/")[0] for path in self.files if "/" in path}
        return KnownFiles(
            root=ROOT, files=(*self.files,), folders=(*sorted(folders),), text=self.files.get
        )

    def run(self, words: str, tools: tuple[ToolSpec, ...] = tuple(BUILT_IN)) -> str:
        ids = count(1)
        wrapped = small.wrap(
            self.model, lambda: f"id{next(ids)}", self.project, clock=lambda: self.now
        )

        async def go() -> str:
            messages = [user(words)]
            for _ in range(30):
                asked = ModelRequest(model="m", messages=tuple(messages), tools=tools)
                events = [event async for event in wrapped(asked)]
                names = [event.name for event in events if isinstance(event, ToolCallStarted)]
                texts = [event.arguments for event in events if isinstance(event, ToolCallDelta)]
                if not names:
                    return "".join(it.text for it in events if isinstance(it, TextDelta))
                calls = [
                    ToolCall(id=f"c{next(ids)}", name=name, arguments=text)
                    for name, text in zip(names, texts, strict=True)
                ]
                messages.append(Message(role="assistant", parts=tuple(calls)))
                messages.append(user(*map(self.result, calls)))
            raise AssertionError("it does not end")

        return asyncio.run(go())

    def result(self, call: ToolCall) -> ToolResult:
        given = json.loads(call.arguments)
        path = given.get("absolute_path", given.get("file_path", given.get("path", "")))
        path = path.removeprefix(ROOT).removeprefix("/")
        self.calls.append((call.name, path or given.get("command", given.get("pattern", ""))))
        if call.name == self.denied:
            return ToolResult(call_id=call.id, is_error=True, outcome=Outcome.DENIED)
        text = "ok"
        match call.name:
            case "read_file":
                text = self.files[path]
            case "replace":
                assert self.files[path].count(given["old_string"]) == 1
                after = self.files[path].replace(given["old_string"], given["new_string"])
                self.files[path] = after
            case "write_file":
                assert path not in self.files
                self.files[path] = given["content"]
            case "run_shell_command":
                code, printed = self.shell(given["command"], self.files)
                text = f"Command: x\nOutput: {printed}\nError: (none)\nExit Code: {code}"
            case _:
                text = "Found 1 match\nFile: conf.toml\nL1: port = 80"
        return ToolResult(call_id=call.id, parts=(Text(text),))


CHECK = "python3 -B -m pytest -q -p no:cacheprovider -p no:benchmark test_a.py"
TWO = {"a.py": "def load():\n    return 1\n", "main.py": "from a import load\nprint(load())\n"}


def steps(*found: dict[str, str]) -> dict[str, object]:
    return {"steps": [*found]}


def test_every_named_file_is_read_first_and_every_file_of_the_plan_is_changed():
    plan = steps(
        {"do": "substitute", "old": "load", "new": "fetch", "path": "a.py"},
        {"do": "substitute", "old": "load", "new": "fetch", "path": "main.py"},
    )
    agent = Agent(TWO, plan=plan)
    assert agent.run("load must be called fetch in a.py and main.py") == (
        "Changed a.py and main.py. No test was run."
    )
    assert [name for name, _ in agent.calls] == ["read_file"] * 2 + ["replace"] * 2
    assert agent.files["main.py"] == "from a import fetch\nprint(fetch())\n"


def test_a_file_that_the_request_joins_to_a_changed_one_is_changed_too():
    plan = steps({"do": "substitute", "old": "load", "new": "fetch", "path": "a.py"})
    agent = Agent(TWO, plan=plan)
    agent.run("load must be called fetch in a.py and main.py")
    assert agent.files["main.py"] == "from a import fetch\nprint(fetch())\n"


def test_a_file_that_cannot_be_changed_is_named_in_the_closing_words():
    plan = steps(
        {"do": "edit", "path": "a.py", "what": "return 2"},
        {"do": "edit", "path": "main.py", "what": "print it twice"},
    )
    broken = {"changes": [{"old": "print(load())", "new": "print(load()"}]}
    good = {"changes": [{"old": "def load():", "new": "def load():\n    return 2"}]}
    agent = Agent(TWO, plan=plan, change=[good, broken, broken, broken])
    assert agent.run("a.py must return 2 and main.py must print it twice") == (
        "Changed a.py. Not changed: main.py (With that, main.py would be wrong: '(' was never "
        "closed (line 2). Write it differently). `python3 main.py` ran without an error."
    )
    assert agent.files["main.py"] == TWO["main.py"]
    complaints = [text for name, text in agent.questions if name == "change"][2:]
    assert all("was never closed" in text for text in complaints)


@pytest.mark.parametrize(
    ("path", "text"), [("a.json", '{"a": 1}\n'), ("a.toml", "a = 1\n"), ("a.yaml", "a: 1\n")]
)
def test_a_settings_file_is_never_left_unreadable(path: str, text: str):
    line = text.rstrip()
    bad = {"changes": [{"old": line, "new": "{a = : b: ["}]}
    agent = Agent(
        {path: text}, plan=steps({"do": "edit", "path": path, "what": "x"}), change=[bad] * 3
    )
    assert agent.run(f"tidy up the values in {path}").startswith(
        f"Nothing was changed. Not changed: {path} ("
    )
    assert agent.files == {path: text}


def test_a_denied_change_is_reported_as_denied():
    agent = Agent(
        {}, plan=steps({"do": "create", "path": "greet.py", "what": "greets"}),
        text={"text": "print('hi')"}, denied="write_file",
    )  # fmt: skip
    assert agent.run("make greet.py that greets") == (
        "Nothing was changed. Not created: greet.py (not allowed)."
    )


def test_an_absent_file_is_not_deleted_and_no_other_one_instead():
    plan = steps({"do": "delete", "path": "a.py"})
    agent = Agent(TWO, plan=plan)
    assert agent.run("delete old.csv") == "Nothing was changed. There is no old.csv."
    assert agent.calls == []


def test_what_is_named_is_deleted_moved_and_copied_without_overwriting():
    plan = steps(
        {"do": "delete", "path": "a.py"},
        {"do": "move", "path": "main.py", "to": "old/"},
        {"do": "move", "path": "main.py", "to": "a.py"},
    )
    agent = Agent(TWO, plan=plan)
    assert agent.run("delete a.py and move main.py to old/") == (
        "Deleted a.py. Moved main.py to old/main.py."
    )
    assert [command for _, command in agent.calls[2:]] == [
        "rm -r -- a.py",
        "mkdir -p old && mv -n -- main.py old/main.py",
    ]


def test_nothing_is_deleted_that_the_request_does_not_ask_to_delete():
    plan = steps({"do": "delete", "path": "a.py"}, {"do": "run", "command": "rm -r main.py"})
    agent = Agent(TWO, plan=plan)
    assert agent.run("look after a.py and main.py") == "Nothing was changed."
    assert {name for name, _ in agent.calls} == {"read_file"}


def test_a_new_file_that_the_plan_forgot_is_written():
    plan = steps({"do": "run", "command": "python3 main.py"})
    agent = Agent(TWO, plan=plan, text={"text": "1"}, shell=lambda *_: (0, "1"))
    words = agent.run("run main.py and write the number into out.txt")
    assert words == "Created out.txt. Ran `python3 main.py`; it printed: 1."
    assert agent.files["out.txt"] == "1\n"


def test_the_test_of_a_changed_file_is_run_and_a_failure_is_given_back():
    def check(command: str, files: dict[str, str]) -> tuple[int, str]:
        assert command == f"{LIMITED}{CHECK}"
        return (0, "1 passed") if "return 3" in files["a.py"] else (1, "assert 2 == 3")

    def change(value: int) -> object:
        return {"changes": [{"old": "def load():", "new": f"def load():\n    return {value}"}]}

    files = {**TWO, "test_a.py": "from a import load\ndef test_load():\n    assert load() == 3\n"}
    plan = steps({"do": "edit", "path": "a.py", "what": "correct load"})
    agent = Agent(files, plan=plan, change=[change(2), change(3)], shell=check)
    assert agent.run("load in a.py is wrong, fix it") == (
        f"Changed a.py. `{CHECK}` ran without an error."
    )
    assert "the check still fails: assert 2 == 3" in agent.questions[-1][1]


def test_a_check_that_was_not_allowed_is_reported_as_not_run():
    files = {**TWO, "test_a.py": "from a import load\nassert load() == 2\n"}
    change = {"changes": [{"old": "def load():", "new": "def load():\n    return 2"}]}
    plan = steps({"do": "edit", "path": "a.py", "what": "correct load"})
    agent = Agent(files, plan=plan, change=change, denied="run_shell_command")
    assert agent.run("load in a.py is wrong, fix it") == (
        "Changed a.py. `python3 test_a.py` was not run: it was not allowed."
    )


def test_without_a_file_to_change_all_files_are_searched_and_the_plan_is_made_again():
    files = {"conf.toml": "port = 80\n", "b.txt": "x\n"}
    plans = [
        steps({"do": "look", "what": "port"}),
        steps({"do": "substitute", "old": "port = 80", "new": "port = 90", "path": "conf.toml"}),
    ]
    agent = Agent(files, plan=plans)
    assert agent.run("we listen on 90 from now on") == "Changed conf.toml."
    assert [name for name, _ in agent.calls] == ["search_file_content", "read_file", "replace"]


def test_when_the_time_is_used_up_the_work_ends_with_what_was_done():
    plan = steps(
        {"do": "edit", "path": "a.py", "what": "return 2"},
        {"do": "edit", "path": "main.py", "what": "print it twice"},
    )
    good = {"changes": [{"old": "def load():", "new": "def load():\n    return 2"}]}
    agent = Agent(TWO, plan=plan, change=[good] * 3)
    agent.now = 0.0
    answer = agent.model

    async def slow(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        agent.now += small.BUDGET / 2.5
        async for event in answer(request):
            yield event

    agent.model = slow  # type: ignore[method-assign]
    assert agent.run("a.py must return 2 and main.py must print it twice") == (
        "Changed a.py. Not changed: main.py (the time for one request is used up). No test was run."
    )


def test_what_only_a_tool_from_elsewhere_can_do_is_left_to_it():
    own = ToolSpec(name="deploy", description="Ship it.", parameters={})
    agent = Agent(
        TWO, plan=steps({"do": "other", "what": "deploy"}), answer={"reply": "It is on its way."}
    )
    assert agent.run("bring it live", tools=(*BUILT_IN, own)) == "It is on its way."
    assert [name for name, _ in agent.questions] == ["kind", "plan", "answer"]


@pytest.mark.parametrize(
    ("words", "answered", "kind"),
    [
        ("should we drop the folder old/", "change", "question"),
        ("would a.py overwrite b.txt", "change", "question"),
        ("To which host do we deploy? It is in a.md.", "change", "question"),
        ("which of these files could I delete", "change", "question"),
        ("Can you change the port?", "change", "change"),
        ("could you please rename a.py", "change", "change"),
        ("rm a.py", "command", "change"),
        ("run rm_all.py", "command", "command"),
        ("on which branch am I", "command", "command"),
        ("set the port to 80", "change", "change"),
        ("Do what todo.md says", "change", "question"),
        ("with which exit code does a.sh end? Run it.", "question", "command"),
        ("what does python3 a.py 53 print", "question", "command"),
        ("load in a.py should return 2", "question", "change"),
        ("both a.py and main.py must use tabs", "talk", "change"),
        ("should a.py return 2?", "question", "question"),
        ("main.py, please", "talk", "question"),
        ("what is Node.js?", "talk", "talk"),
        ("on which git branch am I", "question", "command"),
        ("what does HTTP stand for", "question", "talk"),
        ("capital city of Poland?", "question", "talk"),
        ("where do we set the port", "question", "question"),
        ("would a.py overwrite b.txt", "question", "question"),
        ("find the setting and double it", "question", "change"),
        ("i need b.csv (item,amount) with 5 rows", "question", "change"),
        ("i need to know what b.csv is", "question", "question"),
    ],
)
def test_a_question_is_never_a_change(words: str, answered: str, kind: str):
    project = KnownFiles(root=ROOT, files=(*TWO,), text=TWO.get)
    assert kind_of(words, RequestKind(answered), project) == RequestKind(kind)


@pytest.mark.parametrize(
    ("command", "words", "allowed"),
    [
        ("git status", "on which branch am I", True),
        ("wc -l a.py", "how many lines has a.py", True),
        ("python3 a.py 53", "what does python3 a.py 53 print", True),
        ("python3 a.py", "would a.py replace main.py", False),
        ("rm a.py", "which files can I delete", False),
        ("rm a.py", "run a.py", False),
        ("rm a.py", "delete a.py", True),
        ("rm main.py", "delete a.py", False),
        ("rm -r *", "delete a.py", False),
        ("python3 a.py > main.py", "run a.py", False),
        ("python3 a.py > out.txt", "run a.py and keep it in out.txt", True),
        ("rm -r <trace>", "delete trace", False),
        ("mv a.py main.py", "run the tests", False),
        ("bash -c 'rm a.py'", "run the tests", False),
        ("find . -name '*.py' -delete", "run the tests", False),
        ("git reset --hard", "show the git status", False),
        ("git checkout -- a.py", "run the tests", False),
        ("git log --oneline", "show the last commits", True),
        ("python3 -c 'import os; os.remove(1)'", "run the tests", False),
    ],
)
def test_a_command_changes_only_what_the_request_names(command: str, words: str, allowed: bool):
    project = KnownFiles(root=ROOT, files=(*TWO,), text=TWO.get)
    assert (forbidden(command, words, project) == "") is allowed


def test_is_question_knows_polite_orders():
    assert not is_question("Would you move it?")
    assert is_question("Is it safe to move it?")


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("fix main.py", ["main.py", "a.py"]),
        ("rename load", ["a.py"]),
        ("the `load` function is wrong", ["a.py"]),
        ("what is here", []),
        ("make hello.sh that prints hello", []),
    ],
)
def test_what_a_change_depends_on_is_read(words: str, files: list[str]):
    assert to_read(words, KnownFiles(root=ROOT, files=(*TWO,), text=TWO.get)) == files


def test_no_closing_word_is_written_by_the_model():
    agent = Agent(TWO, plan="not a plan")
    assert re.fullmatch("Nothing was changed.", agent.run("improve it all"))


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        ("rename the function load to fetch in a.txt", "load() loaded", "fetch() loaded"),
        ("a.txt: the version goes from 4.6.3 to 5.1.0", "v 4.6.3", "v 5.1.0"),
        ("use 20 instead of 10 in a.txt", "wait 10", "wait 20"),
        ("load must be called fetch in a.txt", "load", "fetch"),
        ('replace "old name" with "new name" in a.txt', "the old name", "the new name"),
        ("fix a.txt (teh -> the)", "teh cat", "the cat"),
    ],
)
def test_a_text_that_the_request_names_is_replaced_without_the_model(
    words: str, before: str, after: str
):
    plan = steps({"do": "edit", "path": "a.txt", "what": "change it"})
    agent = Agent({"a.txt": f"{before}\n"}, plan=plan)
    assert agent.run(words) == "Changed a.txt."
    assert agent.files == {"a.txt": f"{after}\n"}


def test_a_number_that_occurs_twice_is_left_to_the_model():
    change = {"changes": [{"new": "wait 20", "old": "wait 10"}]}
    plan = steps({"do": "substitute", "old": "10", "new": "20", "path": "a.txt"})
    agent = Agent({"a.txt": "wait 10\nsize 10\n"}, plan=plan, change=change)
    agent.run("wait 20 instead of 10 in a.txt")
    assert agent.files == {"a.txt": "wait 20\nsize 10\n"}


def test_a_change_of_a_line_that_another_one_resembles_is_asked_for_again():
    page = "<html>\n<title>High Fell Hotel</title>\n</html>\n"
    wrong = {"changes": [{"new": "<title>New Mill Hotel</title>", "old": "</html>"}]}
    right = {"changes": [{"new": "<title>New Mill Hotel</title>", "old": page.splitlines()[1]}]}
    plan = steps({"do": "edit", "path": "a.html", "what": "the title"})
    agent = Agent({"a.html": page}, plan=plan, change=[wrong, right])
    agent.run("make the title of a.html New Mill Hotel")
    assert agent.files["a.html"] == page.replace("High Fell", "New Mill")
    assert "resembles: <title>High Fell Hotel</title>." in agent.questions[-1][1]


def test_text_from_a_pipe_is_answered_and_no_file_is_written():
    diff = "diff --git a/a.py b/a.py\n" + "".join(f"-line {n}\n+line {n}!\n" for n in range(900))
    agent = Agent(TWO, answer={"reply": "Updated all lines. They have been marked."})
    assert agent.run(f"{diff}\n\nwrite a commit message for this") == (
        "Updated all lines. They have been marked."
    )
    assert agent.calls == []
    assert [name for name, _ in agent.questions] == ["answer"]
    assert len(agent.questions[0][1]) < 4300


def test_a_failing_test_is_read_with_what_it_imports():
    files = {**TWO, "test_a.py": "from a import load\ndef test_it():\n    assert load() == 2\n"}
    project = KnownFiles(root=ROOT, files=(*files,), text=files.get)
    assert to_read("the test fails, fix it", project) == ["test_a.py", "a.py"]


def test_a_file_beyond_the_listed_ones_is_known_by_its_path():
    files = {"far/away/b.py": "x = 1\n"}
    project = KnownFiles(root=ROOT, files=("a.py",), more=True, text=files.get)
    assert to_read("set x to 2 in far/away/b.py", project) == ["far/away/b.py"]


def test_what_is_written_is_not_copied_over_and_a_copy_that_cannot_be_made_is_not_claimed():
    plan = steps(
        {"do": "create", "path": "port.txt", "what": "the port"},
        {"do": "copy", "path": "a.py", "to": "port.txt"},
    )
    agent = Agent(TWO, plan=plan, text={"text": "80"})
    assert agent.run("write the port in a.py alone into port.txt") == "Created port.txt."


def test_an_addition_that_repeats_another_line_is_asked_for_again():
    page = "<p>Hi</p>\n<footer>Trento Mirrors 2012</footer>\n"
    new = "<footer>Trento Mirrors 2024</footer>"
    wrong = {"changes": [{"new": f"<p>Hi</p>{new}", "old": "<p>Hi</p>"}]}
    right = {"changes": [{"new": new, "old": page.splitlines()[1]}]}
    plan = steps({"do": "edit", "path": "a.html", "what": "the year"})
    agent = Agent({"a.html": page}, plan=plan, change=[wrong, right])
    agent.run("the footer of a.html says 2012, make that 2024")
    assert agent.files["a.html"] == page.replace("2012", "2024")


def test_texts_that_the_plan_names_are_replaced_without_a_further_question():
    what = "replace 'Mirrors 2012' with 'Mirrors 2024'"
    plan = steps({"do": "edit", "path": "a.html", "what": what})
    agent = Agent({"a.html": "Mirrors 2012\n"}, plan=plan)
    agent.run("a.html says 2012, make that 2024")
    assert agent.files["a.html"] == "Mirrors 2024\n"


def test_what_is_moved_is_not_written_first_and_goes_into_the_folder_itself():
    plan = steps(
        {"do": "create", "path": "cold/logs/web.log", "what": "a file"},
        {"do": "move", "path": "logs/web.log", "to": "cold/logs/web.log"},
    )
    agent = Agent({"logs/web.log": "x\n"}, plan=plan)
    assert agent.run("make a folder cold and move logs/web.log into it") == (
        "Moved logs/web.log to cold/web.log."
    )


def test_of_a_long_file_the_part_that_matters_is_shown_and_changed():
    code = "".join(f"def part{n}(a):\n    b = a + {n}\n    return b\n\n\n" for n in range(200))
    new = "def part117(a):\n    return a - 117"
    change = {"changes": [{"new": new, "old": "def part117(a):"}]}
    agent = Agent(
        {"a.py": code}, plan=steps({"do": "edit", "path": "a.py", "what": "x"}), change=change
    )
    assert agent.run("part117 in a.py must subtract").startswith("Changed a.py.")
    shown = agent.questions[-1][1]
    assert "def part117(a):\n    b = a + 117" in shown
    assert "a.py, lines 5" in shown
    old = "def part117(a):\n    b = a + 117\n    return b"
    assert agent.files["a.py"] == code.replace(old, new)


def test_lines_that_stay_may_be_written_in_the_place_of_the_one_that_goes():
    change = {"changes": [{"new": "thermos\napron", "old": "candle"}]}
    plan = steps({"do": "edit", "path": "a.txt", "what": "remove the line"})
    agent = Agent({"a.txt": "thermos\ncandle\napron\n"}, plan=plan, change=change)
    agent.run("take candle out of a.txt")
    assert agent.files == {"a.txt": "thermos\napron\n"}


def test_a_file_that_a_new_one_is_made_from_is_not_changed():
    plan = steps(
        {"do": "edit", "path": "a.txt", "what": "x"}, {"do": "edit", "path": "b.txt", "what": "x"}
    )
    agent = Agent({"a.txt": "1\n", "b.txt": "2\n"}, plan=plan, text={"text": "1\n2"})
    words = agent.run("put the lines of a.txt followed by those of b.txt into c.txt")
    assert words == "Created c.txt."
    assert agent.files == {"a.txt": "1\n", "b.txt": "2\n", "c.txt": "1\n2\n"}
