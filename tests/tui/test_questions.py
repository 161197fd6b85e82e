"""Keys answer a question only when they were meant for it."""

import asyncio
import random
import re
import socket
import time
from pathlib import Path

import pytest
from rich.cells import cell_len

from toolwire.agent.questions import (
    Choice,
    Confirmation,
    EditDetails,
    ExecDetails,
    McpDetails,
    UserAnswer,
)
from toolwire.messages import ToolCall
from toolwire.tools.proposals import DiffStat
from toolwire.tui.live import Size
from toolwire.tui.question_rows import approval_rows
from toolwire.tui.questions import QUIET, AnswerKey, QuestionPanel
from toolwire.tui.render import Painter
from toolwire.tui.themes import THEMES

PAINTER = Painter(THEMES["none"], "", 80)
CALL = ToolCall(id="1", name="run_shell_command", arguments="{}")
COMMAND = Confirmation(
    call=CALL,
    title="Shell",
    reason="it writes",
    details=ExecDetails(command="git log", roots=("git",)),
    remembers=("git log",),
)
ONCE_ONLY = Confirmation(
    call=CALL, title="Shell", reason="", details=ExecDetails(command="rm x", roots=("rm",))
)
EDIT = Confirmation(
    call=CALL,
    title="Edit",
    reason="",
    details=EditDetails(paths=(Path("a"),), diff="", stat=DiffStat(), editable=True),
)
SERVER = Confirmation(
    call=CALL,
    title="Tool",
    reason="",
    details=McpDetails(server="files", tool="read", arguments="{}"),
    remembers=("read of files",),
)


async def answered(question: Confirmation, *keys: str) -> UserAnswer | None:
    """What keys answer that come after the question was on the screen."""
    panel = QuestionPanel(lambda: None)
    task = asyncio.create_task(panel.approve(question))
    await asyncio.sleep(0)
    panel.rows(PAINTER, Size(80, 24))
    await asyncio.sleep(QUIET * 1.5)
    for key in keys:
        panel.press(key)
    await asyncio.sleep(0)
    if not task.done():
        panel.cancel()
        await task
        return None
    return task.result()


@pytest.mark.parametrize(
    ("question", "key", "choice"),
    [
        (COMMAND, "y", Choice.ONCE),
        (COMMAND, AnswerKey.ENTER, Choice.ONCE),
        (COMMAND, "s", Choice.SESSION),
        (COMMAND, "a", Choice.ALWAYS),
        (COMMAND, "g", Choice.EVERYWHERE),
        (COMMAND, "n", Choice.CANCEL),
        (COMMAND, AnswerKey.ESCAPE, Choice.CANCEL),
        (EDIT, "e", Choice.MODIFY),
        (SERVER, "m", Choice.SERVER),
        (COMMAND, "e", None),
        (COMMAND, "m", None),
        (ONCE_ONLY, "s", None),
        (ONCE_ONLY, "a", None),
        (ONCE_ONLY, "g", None),
        (COMMAND, "x", None),
    ],
)
def test_each_key_has_its_answer(question: Confirmation, key: str, choice: Choice | None):
    found = asyncio.run(answered(question, key))
    assert (found.choice if found else None) == choice


def test_words_after_tab_are_a_no_with_a_reason():
    keys = [AnswerKey.TAB, *"use y", AnswerKey.BACKSPACE, *"ours", AnswerKey.ENTER]
    assert asyncio.run(answered(COMMAND, *keys)) == UserAnswer(
        choice=Choice.CANCEL, feedback="use ours"
    )


def test_a_thousand_bursts_of_keys_that_came_early_answer_nothing():
    async def bursts() -> None:
        chance = random.Random(7)
        keys = [*"yYsagmend1 ", *AnswerKey]
        panel = QuestionPanel(lambda: None)
        for _ in range(1000):
            task = asyncio.create_task(panel.approve(COMMAND))
            await asyncio.sleep(0)
            if chance.random() < 0.8:
                panel.rows(PAINTER, Size(80, 24))
            for _ in range(chance.randrange(1, 30)):
                assert not panel.press(chance.choice(keys))
                assert not panel.paste("yyyy\n")
            await asyncio.sleep(0)
            assert not task.done()
            panel.cancel()
            assert (await task).choice is Choice.CANCEL

    asyncio.run(bursts())


def test_keys_that_waited_while_the_program_was_busy_answer_nothing():
    async def busy() -> None:
        panel = QuestionPanel(lambda: None)
        task = asyncio.create_task(panel.approve(COMMAND))
        await asyncio.sleep(0)
        panel.rows(PAINTER, Size(80, 24))
        loop = asyncio.get_running_loop()
        ready, other = socket.socketpair()
        loop.add_reader(ready, lambda: (ready.recv(9), panel.press("y")))
        other.send(b"y")
        # The time is over, and the key was there before: the loop reads it first.
        time.sleep(QUIET * 2)  # noqa: ASYNC251 - busy on purpose
        await asyncio.sleep(0.05)
        assert not task.done()
        loop.remove_reader(ready)
        panel.cancel()
        await task
        ready.close()
        other.close()

    asyncio.run(busy())


def test_a_question_shows_the_rule_that_would_be_stored():
    async def shown() -> list[str]:
        panel = QuestionPanel(lambda: None)
        task = asyncio.create_task(panel.approve(COMMAND))
        await asyncio.sleep(0)
        rows = panel.rows(PAINTER, Size(80, 24))
        panel.cancel()
        await task
        return rows

    rows = asyncio.run(shown())
    assert "  session/always allows: git log" in rows
    assert "  $ git log" in rows
    assert "  starts: git" in rows


def test_a_command_shows_its_programs_in_colour_and_what_cannot_be_seen():
    command = "git log\u202e && cat a\u200d\u00a0b | tail\x1b[2J"
    question = Confirmation(
        call=CALL, title="Shell", reason="",
        details=ExecDetails(command=command, roots=("git", "cat", "tail")),
    )  # fmt: skip
    _, plain, *_ = approval_rows(question, PAINTER)
    shown = "git log‹U+202E› && cat a‹U+200D›‹U+00A0›b | tail‹U+001B›[2J"
    assert plain == f"  $ {shown}"
    coloured = approval_rows(question, Painter(THEMES["ansi"], "standard", 80))[1]
    assert re.findall("\x1b\\[1;35m(.*?)\x1b", coloured) == ["git", "cat", "tail"]


def test_a_long_command_is_whole_and_no_row_fills_the_width():
    command = "echo " + "日本語" * 60
    question = Confirmation(
        call=CALL, title="Shell", reason="", details=ExecDetails(command=command, roots=("echo",))
    )
    rows = [row for row in approval_rows(question, PAINTER)[1:] if not row.startswith("  starts")]
    assert all(cell_len(row) < 80 for row in rows)
    assert "".join(row[4:] for row in rows) == command
