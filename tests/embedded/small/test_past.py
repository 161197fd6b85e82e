import json

import pytest

from tests.embedded.small.test_small import (
    BUILT_IN,
    PROJECT,
    Model,
    ask,
    branches,
    called,
    request,
    result,
    user,
)
from toolwire.events import TextDelta, ToolCallDelta
from toolwire.messages import Message

LOOK = called("search_file_content", {"pattern": "x"})
REPLY = '{"reply": "hi"}'


def offered(*messages: Message, kind: str) -> set[str]:
    model = Model(REPLY, kind=f'{{"kind": "{kind}"}}')
    ask(model, request(*messages))
    return {*branches(model.asked[0])}


def test_without_the_tool_that_reads_another_one_is_called():
    tools = [tool for tool in BUILT_IN if tool.name == "glob"]
    model = Model(REPLY, kind='{"kind": "question"}')
    ask(model, request(user("what does main.py do?"), tools=tools))
    assert {*branches(model.asked[0])} == {"glob"}


@pytest.mark.parametrize(
    ("said", "may_reply"), [("No matches found", False), ("main.py:1: x", True)]
)
def test_a_question_is_not_answered_from_a_look_that_found_nothing(said: str, may_reply: bool):
    found = offered(user("where is x?"), LOOK, result(said), kind="question")
    assert ("reply" in found) is may_reply


def test_after_three_such_looks_it_is():
    said: list[Message] = []
    for at, pattern in enumerate("xyz"):
        look = called("search_file_content", {"pattern": pattern}, id=f"c{at}")
        said += (look, result("No matches found", id=f"c{at}"))
    assert "reply" in offered(user("where is x?"), *said, kind="question")


@pytest.mark.parametrize(("kind", "may_look"), [("question", False), ("command", True)])
def test_a_list_too_long_to_look_into_is_the_answer(kind: str, may_look: bool):
    paths = [f"{PROJECT.root}/src/part{n}.py" for n in range(200)]
    listed = result("\n".join(['Found 200 file(s) matching "*" within x:', *paths]))
    look = called("glob", {"pattern": "*"})
    model = Model('{"reply": "hi"}', kind=f'{{"kind": "{kind}"}}')
    ask(model, request(user("which files are here?"), look, listed))
    assert ("glob" in branches(model.asked[0])) is may_look
    assert ("Now reply: " in model.asked[0].messages[-1].text) is not may_look


def test_a_folder_is_listed_with_its_numbers_and_without_caches():
    model = Model('{"reply": "hi"}', kind='{"kind": "question"}')
    look = called("list_directory", {"path": PROJECT.root})
    names = "[DIR] .venv\n[DIR] __pycache__\n[DIR] build\n[DIR] src\nmain.py\nREADME.md"
    listed = f"Directory listing for {PROJECT.root}:\n{names}\n\n(3 git-ignored)"
    ask(model, request(user("what is in this directory?"), look, result(listed)))
    told = model.asked[0].messages[-1].text.partition("\n\n(The request")[0]
    assert told == (
        "Result of list_directory:\nDirectory listing for .: 1 folders, 2 files\n"
        "src/ (1 files)\nmain.py\nREADME.md"
    )


@pytest.mark.parametrize(
    ("reply", "question", "shown"),
    [
        ("The setting is 25. It has been doubled to 50.", True, "The setting is 25. Nothing was"),
        ("The crash has been fixed in 2.1.", True, "The crash has been fixed in 2.1."),
        ("Set in line 3 of main.py.", True, "Set in line 3 of main.py."),
        ("I updated main.py.", True, "Nothing was changed: no call changed a file."),
        ("I did not change it. It was not renamed.", False, "I did not change it. It was not"),
        ("Renamed it. Done.", False, "Nothing was changed: no call changed a file."),
        ("b.txt was written.", False, "Nothing was changed: no call changed a file."),
        ("The answer is 4.", False, "The answer is 4."),
    ],
)
def test_a_claim_that_no_call_supports_is_held_back(reply: str, question: bool, shown: str):
    kind = "question" if question else "command"
    model = Model(json.dumps({"reply": reply}), kind=f'{{"kind": "{kind}"}}')
    events = ask(model, request(user("which one?"), LOOK, result("fixed the crash in 2.1")))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text.startswith(shown)
    assert ("Nothing was changed" in text) == ("Nothing was" in shown)


def test_a_claim_about_a_command_is_replaced_by_what_ran():
    model = Model(
        '{"reply": "It prints 4. It has been saved to out.txt."}', kind='{"kind": "command"}'
    )
    run = called("run_shell_command", {"command": "python3 main.py > out.txt"})
    done = result("Command: x\nOutput: (empty)\nError: (none)\nExit Code: 0")
    events = ask(model, request(user("run main.py into out.txt"), run, done))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == "It prints 4. Ran `python3 main.py > out.txt`."


def test_what_a_command_printed_may_be_repeated():
    model = Model('{"reply": "main.py was modified."}', kind='{"kind": "command"}')
    run = called("run_shell_command", {"command": "git status"})
    done = result("Command: x\nOutput: modified: main.py\nError: (none)\nExit Code: 0")
    events = ask(model, request(user("show the git status"), run, done))
    assert TextDelta("main.py was modified.") in events


def test_figures_of_a_table_and_of_marked_words_are_given():
    model = Model('{"reply": "hi"}', kind='{"kind": "question"}')
    read = called("read_file", {"absolute_path": f"{PROJECT.root}/main.py"})
    table = "month,units\njan,120\nfeb,95\njan,30\n"
    ask(model, request(user("which month sold most?"), read, result(table)))
    assert model.asked[0].messages[-1].text.splitlines()[1] == (
        "(4 lines; units: highest 120 (jan), lowest 30 (jan), sum 245; by month: jan 150, feb 95)"
    )
    log = Model('{"reply": "hi"}', kind='{"kind": "question"}')
    ask(log, request(user("how many ERROR lines?"), read, result("a ERROR b\nc\nERROR d")))
    assert log.asked[0].messages[-1].text.splitlines()[1] == "(3 lines; ERROR in 2 of them)"


def test_after_a_search_in_vain_the_rarest_word_of_the_request_is_searched_for():
    model = Model(kind='{"kind": "question"}')
    look = called("search_file_content", {"pattern": "printing.of"})
    events = ask(model, request(user("where is the print call?"), look, result("No matches found")))
    assert ToolCallDelta("id1", '{"pattern":"print"}') in events


def test_a_name_that_a_file_does_not_contain_is_reported_as_absent():
    model = Model('{"reply": "hi"}', kind='{"kind": "command"}')
    read = called("read_file", {"absolute_path": f"{PROJECT.root}/main.py"})
    ask(model, request(user("which page_limit does main.py set?"), read, result("row_limit = 3")))
    assert model.asked[0].messages[-1].text.splitlines()[1] == (
        "(1 lines; page_limit does not occur in it)"
    )
