from pathlib import Path
from typing import Any

import pytest

from tests.tools.one_call import done
from toolwire.tools.builtin import ask_user, todo
from toolwire.tools.spec import ToolContext, ToolFailed, Workspace


def context(**more: Any) -> ToolContext:
    place = Workspace(roots=(Path("/w"),), temp=Path("/t"), home=Path("/h"))
    return ToolContext(workspace=place, **more)


def items(*statuses: str) -> dict[str, Any]:
    return {"items": [{"text": f"step {n}", "status": s} for n, s in enumerate(statuses, 1)]}


def test_the_list_is_said_back_with_marks() -> None:
    given = items("done", "in_progress", "pending", "cancelled")
    output = done(todo.TOOL, given, context())
    assert output.text == (
        "The list is now (1 of 4 done):\n[x] step 1\n[~] step 2\n[ ] step 3\n[-] step 4"
    )
    assert output.display.startswith("[x] step 1")


def test_an_empty_list_is_fine() -> None:
    assert done(todo.TOOL, items(), context()).text == "The list is now empty."


def test_only_one_step_is_in_progress() -> None:
    assert todo.TOOL.check(items("in_progress", "in_progress"), context()) == (
        "2 items are in_progress; leave one, and set the others to pending"
    )
    assert todo.TOOL.check(items("in_progress"), context()) == ""


def test_a_person_is_asked_and_their_words_come_back() -> None:
    async def person(question: str, choices: tuple[str, ...]) -> str:
        return f"{question}{choices}"

    given = {"question": "which?", "choices": ["a", "b"]}
    output = done(ask_user.TOOL, given, context(ask=person))
    assert output.text == "The user answered: which?('a', 'b')"


def test_without_a_user_the_model_has_to_decide() -> None:
    with pytest.raises(ToolFailed, match="no user is present to answer; decide by yourself"):
        done(ask_user.TOOL, {"question": "which?"}, context())
