import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools.workspaces import call, context_in, put, refused
from toolwire.events import Finished, ModelEvent, StopReason, TextDelta, Usage
from toolwire.request import ModelRequest
from toolwire.tools.builtin import replace
from toolwire.tools.files.text import read_document
from toolwire.tools.proposals import DiffStat, Proposal
from toolwire.tools.spec import ToolContext, ToolSettings

CODE = "def f():\n    return 1\n\ndef g():\n    return 1\n"


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    return context_in(tmp_path)


def edited(context: ToolContext, before: str | bytes, old: str, new: str, **more: Any) -> bytes:
    path = put(context, a_py=before) / "a.py"
    arguments = {"instruction": "i", "old_string": old, "new_string": new, **more}
    output = call(replace.TOOL, context, file_path=str(path), **arguments)
    assert output.text == f"Successfully modified file: {path} (1 replacements)."
    return path.read_bytes()


def failure(context: ToolContext, before: str, old: str, new: str) -> list[str]:
    path = put(context, a_py=before) / "a.py"
    arguments = {"instruction": "i", "old_string": old, "new_string": new}
    said = refused(replace.TOOL, context, file_path=str(path), **arguments)
    assert path.read_text() == before
    return said.split("\n")


def test_text_is_replaced_literally(context: ToolContext) -> None:
    assert edited(context, "a $& \\1 b\n", "$& \\1", "\\g<0> $1") == b"a \\g<0> $1 b\n"


def test_line_ends_are_matched_loosely_and_kept(context: ToolContext) -> None:
    assert edited(context, b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz") == b"x\r\ny\r\nz\r\nc\r\n"


def test_mixed_line_ends_stay_where_nothing_is_replaced(context: ToolContext) -> None:
    before = b"a\nb\r\nc\nd\r\ne\n"
    assert edited(context, before, "b\nc", "B\nC") == b"a\nB\r\nC\nd\r\ne\n"


def test_white_space_at_the_end_of_lines_is_forgiven(context: ToolContext) -> None:
    assert edited(context, "a  \nb\t\nc\n", "a\nb", "x") == b"x\nc\n"


def test_the_newline_that_the_original_swallows_stays(context: ToolContext) -> None:
    before = "class A:\n    def f(self):\n        return 1\n\n    x = 1\n"
    after = edited(context, before, "def f(self):\n    return 1", "def f(self):\n    return 2")
    assert after == b"class A:\n    def f(self):\n        return 2\n\n    x = 1\n"


def test_new_lines_take_the_indentation_of_the_place(context: ToolContext) -> None:
    before = "if x:\n\tif y:\n\t\tgo()\n\t\tstop()\n"
    assert edited(context, before, "  go()\n  stop()", "  go()\n\n    wait()") == (
        b"if x:\n\tif y:\n\t\tgo()\n\n\t\t  wait()\n"
    )


def test_a_last_newline_in_both_texts_is_not_a_blank_line(context: ToolContext) -> None:
    assert edited(context, "  a\n  b\n  c\n", "a\nb\n", "x\n") == b"  x\n  c\n"


def test_a_loose_match_must_be_unique(context: ToolContext) -> None:
    said = failure(context, "  a\n  b\n\n\ta\n\tb\n", "a\nb", "x")
    path = context.workspace.roots[0] / "a.py"
    assert said == [
        f"Failed to edit, Expected 1 occurrence but found 2 for old_string in file: {path}",
        "It is found at lines 1, 4. Add lines around the one that is meant.",
    ]


def test_white_space_alone_is_matched_exactly_only(context: ToolContext) -> None:
    assert failure(context, "a\n\nb\n", "   ", "x")[0].startswith("Failed to edit, 0 occurrences")


def test_a_failure_shows_the_nearest_text_with_a_diff(context: ToolContext) -> None:
    before = "import os\n\ndef total(items):\n    return sum(items)\n\nprint(1)\n"
    said = failure(context, before, "def total(items):\n    return len(items)", "x")
    path = context.workspace.roots[0] / "a.py"
    old = "def total(items):\n    return len(items)"
    assert "\n".join(said) == (
        f"Failed to edit, 0 occurrences found for old_string ({old}). Original old_string was "
        f"({old}) in {path}. No edits made. The exact text in old_string was not found. Ensure "
        "you're not escaping content incorrectly and check whitespace, indentation, and context. "
        "Use read_file tool to verify.\n"
        "The nearest text in the file is at lines 3-4:\n"
        "--- old_string\n+++ file, lines 3-4\n@@ -1,2 +1,2 @@\n def total(items):\n"
        "-    return len(items)\n+    return sum(items)"
    )


def test_nothing_near_is_shown_when_nothing_is_near(context: ToolContext) -> None:
    said = failure(context, "completely\ndifferent\n", "zzz_qqq(www)", "x")
    assert len(said) == 1


def test_equal_texts_change_nothing(context: ToolContext) -> None:
    path = context.workspace.roots[0] / "a.py"
    assert failure(context, CODE, "def f():", "def f():") == [
        "No changes to apply. The old_string and new_string are identical in file: " + str(path)
    ]


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [("a\nb\n", "b\n", "c", b"a\nc\n"), ("a\nb", "b", "c\n", b"a\nc")],
)
def test_a_file_goes_on_ending_as_it_ended(
    before: str, old: str, new: str, after: bytes, context: ToolContext
) -> None:
    assert edited(context, before, old, new) == after


def test_the_plain_form_replaces_as_many_as_expected(context: ToolContext) -> None:
    context = context_in(context.workspace.home.parent, settings=ToolSettings(plain_edit=True))
    path = put(context, a_py=CODE) / "a.py"
    arguments: dict[str, Any] = {"old_string": "return 1", "new_string": "return 2"}
    said = refused(
        replace.PLAIN, context, file_path=str(path), **arguments, expected_replacements=3
    )
    assert said.startswith(
        f"Failed to edit, Expected 3 occurrences but found 2 for old_string in file: {path}\n"
    )
    output = call(replace.PLAIN, context, file_path=str(path), **arguments, expected_replacements=2)
    assert output.text == f"Successfully modified file: {path} (2 replacements)."
    assert path.read_text() == CODE.replace("return 1", "return 2")


def test_the_form_goes_by_the_settings_and_both_have_the_alias() -> None:
    assert replace.tool_for(ToolSettings()) is replace.TOOL
    assert replace.tool_for(ToolSettings(plain_edit=True)) is replace.PLAIN
    assert replace.TOOL.aliases == replace.PLAIN.aliases == ("smart_edit",)
    assert replace.PLAIN.parameters["required"] == ["file_path", "old_string", "new_string"]
    assert "expected_replacements" in replace.PLAIN.parameters["properties"]


def test_a_preview_is_what_the_call_then_does(context: ToolContext) -> None:
    path = put(context, a_py=CODE) / "a.py"
    arguments = {
        "file_path": str(path),
        "instruction": "i",
        "old_string": "def f():\n    return 1",
        "new_string": "def f():\n    return 2",
    }
    assert replace.TOOL.preview is not None
    (proposal,) = replace.TOOL.preview(arguments, context)
    assert path.read_text() == CODE
    output = call(replace.TOOL, context, **arguments)
    assert proposal == Proposal(path=path, before=CODE, after=path.read_text())
    assert output.stat == DiffStat(model_added=1, model_removed=1)
    assert output.diff == (
        "--- a.py (before)\n+++ a.py (now)\n@@ -1,5 +1,5 @@\n def f():\n-    return 1\n"
        "+    return 2\n \n def g():\n     return 1\n"
    )


def test_the_text_of_a_person_is_written_and_reported(context: ToolContext) -> None:
    path = put(context, a_py=CODE) / "a.py"
    arguments = {
        "file_path": str(path),
        "instruction": "i",
        "old_string": "def f():",
        "new_string": "def h():",
    }
    assert replace.TOOL.preview is not None
    assert replace.TOOL.adopt is not None
    (proposal,) = replace.TOOL.preview(arguments, context)
    theirs = CODE.replace("def f():", "def k():")
    output = call(replace.TOOL, context, **replace.TOOL.adopt(arguments, proposal, theirs))
    assert path.read_text() == theirs
    assert output.text == (
        f"Successfully modified file: {path} (1 replacements). "
        f"User modified the `new_string` content to be: {theirs}."
    )
    assert output.stat == DiffStat(model_added=1, model_removed=1, user_added=1, user_removed=1)


def correcting(answer: dict[str, Any], asked: list[ModelRequest]):
    async def model(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        asked.append(request)
        yield TextDelta(json.dumps(answer))
        yield Finished(reason=StopReason.END, usage=Usage())

    return model


def test_the_model_is_asked_only_if_a_setting_says_so(tmp_path: Path) -> None:
    asked: list[ModelRequest] = []
    answer = {"search": "def f():", "replace": "def k():", "explanation": "e"}
    context = context_in(tmp_path, model=correcting(answer, asked))
    failure(context, CODE, "def h():", "def k():")
    assert asked == []
    context = context_in(
        tmp_path, model=correcting(answer, asked), settings=ToolSettings(edit_correction=True)
    )
    assert (
        edited(context, CODE, "def h():", "def k():")
        == CODE.replace("def f():", "def k():").encode()
    )
    assert len(asked) == 1


@pytest.mark.parametrize("search", ["return 1", "nowhere"])
def test_a_correction_that_fits_no_better_gives_the_first_error(
    search: str, tmp_path: Path
) -> None:
    answer = {"search": search, "replace": "x", "explanation": "e"}
    context = context_in(
        tmp_path, model=correcting(answer, []), settings=ToolSettings(edit_correction=True)
    )
    assert "old_string (def h():)" in failure(context, CODE, "def h():", "def k():")[0]


def test_a_model_that_finds_nothing_to_change_is_quoted(tmp_path: Path) -> None:
    answer = {"search": "", "replace": "", "explanation": "done", "noChangesRequired": True}
    context = context_in(
        tmp_path, model=correcting(answer, []), settings=ToolSettings(edit_correction=True)
    )
    assert failure(context, CODE, "def h():", "def k():")[0].startswith(
        "A secondary check determined that no changes were necessary to fulfill the instruction. "
        "Explanation: done. Original error with the parameters given: Failed to edit, 0 occ"
    )


def test_an_edit_of_a_long_file_shows_only_its_surroundings(context: ToolContext) -> None:
    before = "".join(f"line {number}\n" for number in range(20_000))
    path = put(context, a_py=before) / "a.py"
    arguments = {"instruction": "i", "old_string": "line 12345\n", "new_string": "x\ny\n"}
    output = call(replace.TOOL, context, file_path=str(path), **arguments)
    assert output.diff.split("\n")[2] == "@@ -12343,7 +12343,8 @@"
    assert output.stat == DiffStat(model_added=2, model_removed=1)
    document = asyncio.run(asyncio.to_thread(read_document, path, context.workspace))
    assert document.text == before.replace("line 12345\n", "x\ny\n")
