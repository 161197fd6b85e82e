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
        "src/\nmain.py\nREADME.md"
    )
