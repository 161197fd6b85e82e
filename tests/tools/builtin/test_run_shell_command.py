import asyncio
import os
import select
from pathlib import Path
from typing import Any

import pytest

from toolwire.tools.builtin import background
from toolwire.tools.builtin.run_shell_command import TOOL
from toolwire.tools.shell.output import plain_text
from toolwire.tools.shell.shells import end_shells, shells_of
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolSettings, Workspace


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    (tmp_path / "ws").mkdir()
    place = Workspace(roots=(tmp_path / "ws",), temp=tmp_path / "temp", home=tmp_path)
    return ToolContext(
        workspace=place, call_id="c1", environ=dict(os.environ), emit=lambda text: None
    )


def changed(context: ToolContext, **more: Any) -> ToolContext:
    members = {name: getattr(context, name) for name in context.__struct_fields__}
    return ToolContext(**{**members, **more})


async def call(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> str:
    """The text of a call, checked as a scheduler does."""
    if complaint := tool.check(arguments, context):
        raise ToolFailed(complaint)
    return (await tool.run(arguments, context)).text


def run(context: ToolContext, command: str, **more: str) -> str:
    async def once() -> str:
        try:
            return (await TOOL.run({"command": command, **more}, context)).text
        finally:
            await end_shells("")

    return asyncio.run(once())


def field(text: str, name: str) -> str:
    return next(
        line.removeprefix(f"{name}: ")
        for line in reversed(text.split("\n"))
        if line.startswith(f"{name}: ")
    )


def said(text: str) -> str:
    return text.split("\nOutput: ", 1)[1].rsplit("\nError: ", 1)[0]


def test_it_says_that_it_executes() -> None:
    assert (TOOL.name, TOOL.effect) == ("run_shell_command", Effect.EXECUTE)


def test_a_heredoc_at_the_end_works_where_the_original_breaks(context: ToolContext) -> None:
    assert said(run(context, "cat <<'END'\n$(no) `no`\nEND")) == "$(no) `no`"


def test_substitution_runs_where_the_original_refuses(context: ToolContext) -> None:
    assert said(run(context, "echo $(echo a) `echo b` <(:) | cut -c1-3")) == "a b"


def test_the_group_is_led_by_the_shell_itself(context: ToolContext) -> None:
    text = run(context, "echo $$; ps -o pgid= -p $$ | tr -d ' '")
    assert said(text).split("\n") == [field(text, "Process Group PGID")] * 2


def test_the_background_is_reported_by_its_own_numbers(context: ToolContext) -> None:
    text = run(context, "sleep 1000 & echo $!")
    assert said(text) == field(text, "Background PIDs")


def test_standard_error_follows_standard_output_on_a_line_of_its_own(
    context: ToolContext,
) -> None:
    assert said(run(context, "echo err >&2; printf out")) == "out\nerr"


def test_terminal_escapes_are_left_out(context: ToolContext) -> None:
    command = r"printf '\033[1;31mred\033[0m \033]0;title\007\033]8;;http://x\033\\link\033(B'"
    assert said(run(context, command)) == "red link"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x9b31mred\x9b0m", "red"),
        ("\x1b]0;a\x1b\\b\x1b]0;c\x07d\x1b]0;e\x9cf", "bdf"),
        ("a\x1b[2K\x1b[1Gb\x1b[?25hc\x1b[38;5;196md", "abcd"),
        ("\x1b7a\x1b8\x1b=b\x1bMc", "abc"),
        ("a\x1b", "a\x1b"),
        ("\x1b\x1b[0mx", "\x1bx"),
        ("C:\\x", "C:\\x"),
    ],
)
def test_every_kind_of_escape_is_known(text: str, plain: str) -> None:
    assert plain_text(text) == plain


def test_the_child_knows_where_it_runs_and_pages_nothing(context: ToolContext) -> None:
    assert said(run(context, 'echo "$GEMINI_CLI $TERM $PAGER"')) == "1 xterm-256color cat"


def test_only_the_given_environment_is_handed_on(context: ToolContext) -> None:
    given = changed(context, environ={"PATH": os.environ["PATH"], "MINE": "1"})
    names = {line.partition("=")[0] for line in said(run(given, "env")).split("\n")}
    ours = {"PATH", "MINE", "GEMINI_CLI", "TERM", "PAGER", "TOOLWIRE_COMMAND"}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD", "LC_CTYPE"} == ours


def test_a_directory_is_a_name_below_the_root(context: ToolContext) -> None:
    (context.workspace.roots[0] / "ws").mkdir()
    text = run(context, "pwd", directory="ws")
    assert said(text) == str(context.workspace.roots[0] / "ws")
    assert field(text, "Directory") == "ws"


def test_a_directory_that_is_not_there_is_reported_with_a_way_out(context: ToolContext) -> None:
    with pytest.raises(ToolFailed) as failed:
        run(context, "pwd", directory="ws")
    assert str(failed.value).split("\n")[0] == "spawn bash ENOENT"
    assert "leave `directory` out" in str(failed.value)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"command": ""}, "Command cannot be empty."),
        ({"command": " \n"}, "Command cannot be empty."),
        ({"command": "a\0b"}, "Command cannot contain a NUL character."),
        (
            {"command": "a", "directory": "/"},
            "Directory cannot be absolute. Please refer to workspace directories by their name.",
        ),
        (
            {"command": "a", "directory": "other"},
            "Directory 'other' is not a registered workspace directory.",
        ),
        (
            {"command": "a", "directory": "../ws"},
            "Directory '../ws' is not a registered workspace directory.",
        ),
        ({"command": "a", "directory": "ws"}, ""),
    ],
)
def test_senseless_arguments_are_refused(
    arguments: dict[str, str], complaint: str, context: ToolContext
) -> None:
    assert TOOL.check(arguments, context) == complaint
    if complaint:
        with pytest.raises(ToolFailed, match=r"^Command|^Directory"):
            asyncio.run(call(TOOL, arguments, context))


def test_a_name_of_two_roots_is_refused(context: ToolContext, tmp_path: Path) -> None:
    roots = (tmp_path / "ws", tmp_path / "other" / "ws")
    two = Workspace(roots=roots, temp=tmp_path, home=tmp_path)
    complaint = TOOL.check({"command": "a", "directory": "ws"}, changed(context, workspace=two))
    assert complaint == (
        "Directory name 'ws' is ambiguous as it matches multiple workspace directories."
    )


def test_a_command_without_bash_says_why(context: ToolContext) -> None:
    with pytest.raises(ToolFailed, match=r"^spawn bash ENOENT$"):
        run(changed(context, environ={"PATH": "/nonexistent"}), "echo")


def test_a_command_longer_than_the_system_takes_says_what_to_do(context: ToolContext) -> None:
    with pytest.raises(ToolFailed, match="spawn bash E2BIG\nThe command is too long"):
        run(context, f"echo {'x' * 300_000}")


def test_a_lone_surrogate_is_no_reason_to_break(context: ToolContext) -> None:
    assert said(run(context, "echo '\ud800'")) == "\ufffd"


def test_output_up_to_the_cap_is_whole(context: ToolContext) -> None:
    text = run(context, "head -c 399000 /dev/zero | tr '\\0' x")
    assert said(text) == "x" * 399_000
    assert not context.workspace.temp.exists()


def test_output_over_the_cap_is_kept_whole_in_a_file(context: ToolContext) -> None:
    text = run(context, "seq 1 100000; seq 5 >&2")
    file = context.workspace.temp / "c1.output"
    assert f"The full output has been saved to: {file}\n" in text
    whole = "".join(f"{n}\n" for n in [*range(1, 100_001), 1, 2, 3, 4, 5])
    assert file.read_text() == whole
    shown = text.split("Truncated part of the output:\n")[1]
    start, end = shown.split("\n... [CONTENT TRUNCATED] ...\n")
    assert (len(start), len(end)) == (80_000, 320_000)
    assert start.startswith("Command: seq 1 100000; seq 5 >&2\nDirectory: (root)\nOutput: 1\n2\n")
    assert "100000\n1\n2\n3\n4\n5\nError: (none)\nExit Code: 0\n" in end
    assert [path.name for path in context.workspace.temp.iterdir()] == ["c1.output"]


def test_the_cap_is_a_setting(context: ToolContext) -> None:
    small = changed(context, settings=ToolSettings(output_characters=300))
    text = run(small, "seq 1 4000 >&2; seq 1 4000")
    shown = text.split("Truncated part of the output:\n")[1]
    assert len(shown) == 300 + len("\n... [CONTENT TRUNCATED] ...\n")
    file = context.workspace.temp / "c1.output"
    assert file.read_text() == 2 * "".join(f"{n}\n" for n in range(1, 4001))


def test_few_long_lines_are_wrapped_before_lines_are_counted(context: ToolContext) -> None:
    lines = changed(context, settings=ToolSettings(output_characters=1000, output_lines=10))
    text = run(lines, "printf '%01200d' 0")
    shown = text.split("Truncated part of the output:\n")[1].split("\n")
    assert shown[2:] == [
        "... [CONTENT TRUNCATED] ...",
        *("0" * 120 for _ in range(2)),
        "0" * 8,
        *shown[-5:],
    ]


def test_a_call_id_is_no_way_out_of_the_temp_folder(context: ToolContext) -> None:
    sly = changed(context, call_id="../../e:v/il", settings=ToolSettings(output_characters=10))
    text = run(sly, "echo 0123456789")
    assert f"{context.workspace.temp / 'il.output'}\n" in text


def test_output_that_cannot_be_stored_is_reported(context: ToolContext) -> None:
    context.workspace.temp.write_text("a file in the way")
    text = run(changed(context, settings=ToolSettings(output_characters=100)), "seq 1 1000")
    assert text.endswith("\n[Note: Could not save full output to file]")


def test_a_limit_ends_the_command_and_keeps_what_it_said(context: ToolContext) -> None:
    text = run(
        changed(context, settings=ToolSettings(shell_idle_seconds=0.5)), "echo a; sleep 1000"
    )
    assert said(text) == "a"
    assert field(text, "Error") == "stopped after 0.5 seconds without output"
    assert field(text, "Signal") == "15"
    assert field(text, "Exit Code") == "(none)"


@pytest.mark.slow
def test_live_output_comes_at_most_once_a_second(context: ToolContext) -> None:
    seen: list[str] = []
    live = changed(context, emit=seen.append)
    command = "for i in $(seq 24); do printf '\\033[31m%s\\033[0m\\n' $i; sleep 0.1; done"
    assert said(run(live, command)).split("\n") == [str(n) for n in range(1, 25)]
    assert 1 <= len(seen) <= 4
    assert "".join(seen).split() == [str(n) for n in range(1, 25)][: len("".join(seen).split())]


@pytest.mark.slow
def test_binary_output_is_not_put_on_the_screen(context: ToolContext) -> None:
    seen: list[str] = []
    run(changed(context, emit=seen.append), "head -c 100 /dev/zero; sleep 1.3")
    assert seen == ["[Binary output detected. Halting stream...]"]


def test_a_cancelled_command_without_output_says_so(context: ToolContext) -> None:
    async def cancelled() -> list[str]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(call(TOOL, {"command": "sleep 1000"}, context))
            await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError as error:
                return error.__notes__
        raise AssertionError("the command was not cancelled")

    assert asyncio.run(cancelled()) == [
        "Command was cancelled by user before it could complete. "
        "There was no output before it was cancelled."
    ]


@pytest.mark.slow
def test_a_screen_that_breaks_does_not_leave_the_command_running(context: ToolContext) -> None:
    def broken(text: str) -> None:
        raise RuntimeError(text)

    pids = context.workspace.roots[0] / "pids"
    command = "sleep 1000 & echo $! > pids; echo out; sleep 1000"
    with pytest.raises(RuntimeError, match="out"):
        run(changed(context, emit=broken), command)
    assert not Path(f"/proc/{pids.read_text().strip()}").exists()


def in_background(
    context: ToolContext, command: str, *actions: dict[str, Any]
) -> tuple[str, list[str]]:
    async def all_of_it() -> tuple[str, list[str]]:
        try:
            text = (await TOOL.run({"command": command}, context)).text
            pgid = int(field(text, "Process Group PGID"))
            answers: list[str] = []
            for action in actions:
                answers.append((await background.TOOL.run({"pgid": pgid, **action}, context)).text)
            return text, answers
        finally:
            await end_shells("")

    return asyncio.run(all_of_it())


def test_background_shells_are_listed_and_stopped(context: ToolContext) -> None:
    actions: list[dict[str, Any]] = [{"action": name} for name in ("list", "stop", "list", "stop")]
    command = "sleep 1000 & setsid -f sleep 1000"
    text, answers = in_background(context, command, *actions)
    pgid, pids = field(text, "Process Group PGID"), field(text, "Background PIDs")
    named = f"Background shell {pgid} (`{command}`)"
    assert answers == [
        f"- [PGID {pgid}] PIDs {pids}: `{command}`",
        f"{named} was stopped with all it started.\nOutput since its call returned: (empty)",
        "No background shells are running.",
        f"{named} had already ended.\nOutput since its call returned: (empty)",
    ]


def test_what_the_background_says_later_can_be_read(context: ToolContext) -> None:
    go = context.workspace.roots[0] / "go"
    done = context.workspace.roots[0] / "done"
    os.mkfifo(go)
    os.mkfifo(done)

    async def all_of_it() -> str:
        command = "echo now; (read x < go; seq 3; echo > done; sleep 1000) &"
        text = (await TOOL.run({"command": command}, context)).text
        assert said(text) == "now"
        pgid = int(field(text, "Process Group PGID"))
        await asyncio.to_thread(go.write_text, "x\n")
        await asyncio.to_thread(done.read_text)
        try:
            arguments = {"action": "stop", "pgid": pgid}
            return (await background.TOOL.run(arguments, context)).text
        finally:
            await end_shells("")

    text = asyncio.run(all_of_it())
    assert text.endswith(
        "was stopped with all it started.\nOutput since its call returned: 1\n2\n3"
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"action": "read"}, '"pgid" is needed to read; no background shell is running'),
        ({"action": "stop", "pgid": 1}, "no background shell has PGID 1; no background"),
    ],
)
def test_a_shell_that_is_not_ours_is_out_of_reach(
    arguments: dict[str, Any], complaint: str, context: ToolContext
) -> None:
    with pytest.raises(ToolFailed, match=complaint):
        asyncio.run(call(background.TOOL, arguments, context))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd")
def test_shells_of_a_closed_event_loop_are_let_go(context: ToolContext) -> None:
    text = asyncio.run(call(TOOL, {"command": "sleep 1000 &"}, context))
    process = os.pidfd_open(int(field(text, "Background PIDs")))
    assert shells_of("").running() == {}
    assert select.select([process], [], [], 10)[0] == [process]
    os.close(process)
