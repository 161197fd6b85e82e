import pytest

from tests.embedded.small.test_style import (
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
from toolwire.embedded.small.past import RequestKind, likely
from toolwire.messages import Message

LOOK = called("search_file_content", {"pattern": "x"})
REPLY = '{"reply": "hi"}'


def offered(*messages: Message, kind: str) -> set[str]:
    model = Model(REPLY, kind=f'{{"kind": "{kind}"}}')
    ask(model, request(*messages))
    return {*branches(model.asked[0])}


@pytest.mark.parametrize(
    "words", ["what does main.py do?", "open src/a.py, and tell me", 'see "main.py".']
)
def test_a_file_that_a_question_names_is_read_first(words: str):
    model = Model(REPLY, kind='{"kind": "question"}')
    ask(model, request(user(words)))
    path = "src/a.py" if "a.py" in words else "main.py"
    named = {"path": {"type": "string", "enum": [path]}}
    assert branches(model.asked[0]) == {"read_file": named}


def test_after_that_the_other_tools_are_there():
    read = called("read_file", {"absolute_path": f"{PROJECT.root}/main.py"})
    found = offered(user("what does main.py do?"), read, result("a = 1"), kind="question")
    assert {"reply", "glob", "read_file"} <= found


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("mend main.py", "change"),
        ("run main.py", "command"),
        ("compare main.py with src/a.py", "question"),
        ("where is main.python?", "question"),
    ],
)
def test_else_nothing_has_to_be_read_first(words: str, kind: str):
    assert {"glob", "read_file"} <= offered(user(words), kind=kind)


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


@pytest.mark.parametrize(("kind", "may_look"), [("question", False), ("change", True)])
def test_a_list_too_long_to_look_into_is_the_answer(kind: str, may_look: bool):
    paths = [f"{PROJECT.root}/src/part{n}.py" for n in range(200)]
    listed = result("\n".join(['Found 200 file(s) matching "*" within x:', *paths]))
    look = called("glob", {"pattern": "*"})
    model = Model('{"reply": "hi"}', kind=f'{{"kind": "{kind}"}}')
    ask(model, request(user("which files are here?"), look, listed))
    assert ("glob" in branches(model.asked[0])) is may_look
    assert ("Now reply: " in model.asked[0].messages[-1].text) is not may_look


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("To which host do we deploy? It is in a.md.", None),
        ("Whom do I ask? I wrote it into notes.txt.", None),
        ("where is the port set? change it to 80", None),
        ("Can you change the port?", RequestKind.CHANGE),
        ("Do what stands in todo.md. Where is it?", RequestKind.CHANGE),
        ("Whatever is in there, remove it", RequestKind.CHANGE),
    ],
)
def test_a_change_that_begins_as_a_question_may_be_either(words: str, kind: RequestKind | None):
    assert likely(words, RequestKind.CHANGE) is kind
    assert likely(words, RequestKind.QUESTION) is RequestKind.QUESTION
