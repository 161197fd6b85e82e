"""Custom commands in sessions: shell parts through the policy, files, models and tools."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.sessions import commanded
from tests.fakes.simulated import Place, Simulated
from toolwire import config
from toolwire.agent.questions import Choice, Confirmation, UserAnswer
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.app.user_input import named_command, read_input
from toolwire.errors import BadInput
from toolwire.policy import Mode
from toolwire.providers.custom import read_upstream
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Say

DONE = Reply(pieces=(Say("Done."),))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def gemini(place: Place, name: str, prompt: str) -> None:
    write(place.work / ".gemini" / "commands" / f"{name}.toml", f"prompt = '''\n{prompt}'''\n")


def claude(place: Place, name: str, text: str) -> None:
    write(place.work / ".claude" / "commands" / f"{name}.md", text)


def sends(
    place: Place,
    line: str,
    *replies: Reply,
    text: str = "",
    mode: Mode | None = None,
    user: bool = False,
    model: str = "",
) -> list[dict[str, Any]]:
    """The requests of a session that is given a line."""
    (place.home / "config.toml").write_text(text)
    environ = place.environ()
    settings = config.load(environ, place.work, trusted=True)

    async def approve(question: Confirmation) -> UserAnswer:
        del question
        return UserAnswer(choice=Choice.ONCE)

    async def work(sim: Simulated) -> None:
        upstream = read_upstream(sim.upstream(**({"model": model} if model else {})))
        async with open_session(
            SessionOptions(upstream=upstream, kept=False, mode=mode),
            settings=settings,
            environ=environ,
            cwd=place.work,
            approver=approve if user else None,
        ) as session:
            approver = approve if user else None
            found = await named_command(line, session, settings, environ, approver)
            assert found is not None
            (prompt, own), options = found
            given = await read_input(session.toolbox, prompt, own=own)
            await session.send(given.message, options)

    with Simulated(replies or [DONE]) as sim:
        asyncio.run(work(sim))
        return sim.bodies


def prompt_of(bodies: list[dict[str, Any]]) -> str:
    content = bodies[0]["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(one["text"] for one in content)


def test_documented_examples_of_gemini_give_the_documented_prompts(place: Place):
    gemini(place, "git/fix", "Please provide a code fix for the issue described here: {{args}}.")
    gemini(
        place,
        "grep-code",
        "Please summarize the findings for the pattern `{{args}}`.\n\n"
        "Search Results:\n!{grep -rh {{args}} notes}\n",
    )
    gemini(place, "changelog", "# Task: Update Changelog\n\nYou are an expert maintainer.\n")
    gemini(place, "review", "Review {{args}} by these rules:\n@{docs/best-practices.md}\nGo.")
    write(place.work / "notes" / "a.txt", "It's complicated, they said\n")
    write(place.work / "docs" / "best-practices.md", "Be kind. @README !{date} {{args}}\n")
    fixed = sends(place, '/git:fix "Button is misaligned"')
    assert prompt_of(fixed) == (
        'Please provide a code fix for the issue described here: "Button is misaligned".'
    )
    assert prompt_of(sends(place, "/grep-code It's complicated")) == (
        "Please summarize the findings for the pattern `It's complicated`.\n\n"
        "Search Results:\nIt's complicated, they said\n"
    )
    assert prompt_of(sends(place, '/changelog 1.2.0 added "New feature"')) == (
        "# Task: Update Changelog\n\nYou are an expert maintainer.\n\n\n"
        '/changelog 1.2.0 added "New feature"'
    )
    assert prompt_of(sends(place, "/review FileCommandLoader.ts")) == (
        "Review FileCommandLoader.ts by these rules:\nBe kind. @README !{date} {{args}}\n\nGo."
    )


def test_what_is_typed_cannot_leave_its_quotes(place: Place):
    gemini(place, "say", "!{printf '%s' {{args}}}")
    write(place.work / "x", "still here")
    typed = "It's complicated; rm -rf x $(touch y) `touch y`"
    assert prompt_of(sends(place, f"/say {typed}")) == typed
    assert (place.work / "x").exists()
    assert not (place.work / "y").exists()


def test_a_failed_shell_part_says_so_in_the_prompt(place: Place):
    gemini(place, "list", "Files: !{ls none}")
    assert prompt_of(sends(place, "/list")).endswith("\n[Shell command exited with code 2]")


def test_a_shell_part_that_would_be_asked_is_asked_or_fails_the_command(place: Place):
    gemini(place, "clean", "Cleaned: !{rm -rf build && echo yes}")
    (place.work / "build").mkdir()
    with pytest.raises(BadInput, match=r"/clean was not sent: rm -rf build .* did not run: Tool"):
        sends(place, "/clean")
    assert (place.work / "build").exists()
    assert prompt_of(sends(place, "/clean", user=True)) == "Cleaned: yes"


def test_hooks_see_shell_parts(place: Place):
    gemini(place, "say", "!{echo hi}")
    text = '[[hooks.PreToolUse]]\ncommand = "echo never >&2; exit 2"\n'
    with pytest.raises(BadInput, match="hook error: never"):
        sends(place, "/say", text=text)


def test_an_output_of_a_megabyte_is_capped(place: Place):
    gemini(place, "flood", "!{head -c 1048576 /dev/zero | tr '\\0' y}")
    assert len(prompt_of(sends(place, "/flood", mode=Mode.YOLO))) < 101_000


def test_a_protected_file_is_not_inserted(place: Place):
    gemini(place, "leak", "@{.env}")
    write(place.work / ".env", "KEY=1")
    with pytest.raises(BadInput, match="is protected"):
        sends(place, "/leak")
    gemini(place, "out", "@{../home/config.toml}")
    with pytest.raises(BadInput, match="not a file of this folder"):
        sends(place, "/out")


def test_a_folder_is_inserted_with_its_files(place: Place):
    gemini(place, "docs", "Read @{my docs}.")
    write(place.work / "my docs" / "a.md", "first page")
    write(place.work / "my docs" / "in" / "b.md", "second page")
    prompt = prompt_of(sends(place, "/docs"))
    assert "first page" in prompt
    assert "second page" in prompt


def test_claude_commands_restrict_the_tools_of_their_turn(place: Place):
    claude(
        place,
        "commit",
        "---\ndescription: Commit\nallowed-tools: Bash(git status:*), Bash(echo:*), Read\n---\n"
        "State: !`echo clean`\nCommit $ARGUMENTS with @notes.txt",
    )
    write(place.work / "notes.txt", "my notes")
    tries = Reply(
        pieces=(
            Call.of("run_shell_command", command="echo one"),
            Call.of("run_shell_command", command="echo one && touch two"),
            Call.of("write_file", file_path=str(place.work / "a"), content="x"),
        )
    )
    bodies = sends(place, "/commit now", tries, DONE, mode=Mode.YOLO)
    assert prompt_of(bodies).startswith("State: clean\nCommit now with @notes.txt")
    assert "my notes" in prompt_of(bodies)
    assert [one["function"]["name"] for one in bodies[0]["tools"]] == [
        "read_file",
        "run_shell_command",
    ]
    results = [one["content"] for one in bodies[1]["messages"] if one["role"] == "tool"]
    assert "one" in results[0]
    assert "/commit does not allow the command echo one && touch two" in results[1]
    assert "/commit does not allow write_file" in results[2]
    assert not (place.work / "two").exists()


def test_allowed_tools_never_widen(place: Place):
    claude(place, "clean", "---\nallowed-tools: Bash(rm:*)\n---\nx !`rm -rf build`")
    (place.work / "build").mkdir()
    with pytest.raises(BadInput, match="Tool execution denied by policy"):
        sends(place, "/clean")
    claude(place, "other", "---\nallowed-tools: Read\n---\nx !`echo hi`")
    with pytest.raises(BadInput, match="/other does not allow run_shell_command"):
        sends(place, "/other", mode=Mode.YOLO)


def test_a_command_chooses_the_model_of_its_turn(place: Place):
    claude(place, "think", "---\nmodel: upstream/big\n---\nThink.")
    claude(place, "lost", "---\nmodel: nowhere/none\n---\nThink.")
    assert sends(place, "/think", model="small")[0]["model"] == "big"
    assert sends(place, "/lost", model="small")[0]["model"] == "small"


def test_places_of_codex_and_commands_of_opencode(place: Place):
    write(place.root / ".codex" / "prompts" / "pr.md", "PR $TITLE for $1, $$5, !`date` @x")
    write(place.work / "opencode.json", '// mine\n{"command": {"go": {"template": "Go $1"}}}')
    assert (
        prompt_of(sends(place, '/prompts:pr TITLE="a b" main')) == "PR a b for main, $5, !`date` @x"
    )
    assert prompt_of(sends(place, "/go home")) == "Go home"


def test_a_skill_is_activated_by_its_name(place: Place):
    folder = place.work / ".agents" / "skills" / "notes"
    write(folder / "SKILL.md", "---\nname: notes\ndescription: Take notes.\n---\nWrite it down.")
    prompt = prompt_of(sends(place, "/notes about the call"))
    assert prompt.startswith('<activated_skill name="notes">')
    assert "Write it down." in prompt
    assert prompt.endswith("</activated_skill>\n\nabout the call")


def test_a_command_in_a_run(place: Place):
    gemini(place, "deny", "!{rm -rf /}")
    gemini(place, "loop", "!{true}")
    gemini(place, "fix", "Fix {{args}}.")
    place.toolwire("config", "trust")
    with Simulated([DONE] * 3) as sim:
        sent = place.run(sim, "/fix it")
        denied = place.run(sim, "/deny")
        again = place.run(sim, "/loop", env={"TOOLWIRE_EXPANDING": "loop"})
        assert len(sim.bodies) == 1
        assert sim.bodies[0]["messages"][-1]["content"] == "Fix it."
    assert (sent.code, denied.code, again.code) == (0, 42, 42)
    assert "/deny was not sent: rm -rf / did not run" in denied.err
    assert "/loop runs itself" in again.err


def test_a_command_with_the_name_of_a_built_in_one_has_its_origin_before_it(place: Place):
    claude(place, "help", "Help with $1")
    commanded(place, "config", "trust")
    listed = commanded(place, "commands", "list", "--json")
    assert [row["name"] for row in json.loads(listed.out)] == ["claude:help"]
    assert "/help is built in" in listed.err
    for name in ("claude:help", "help"):
        assert commanded(place, "commands", "show", name, "x").out == "Help with x\n"
    with Simulated([DONE] * 2) as sim:
        for line in ("/claude:help it", "/help it"):
            assert place.run(sim, line).code == 0
            assert sim.bodies[-1]["messages"][-1]["content"] == "Help with it"


def test_the_commands_are_listed_and_shown(place: Place):
    gemini(place, "git/commit", "Message for !{git diff {{args}}} and @{a.md}: {{args}}")
    claude(
        place, "fix", "---\nargument-hint: '[issue]'\nallowed-tools: [Read]\n---\nFix $1 !`ls $1`"
    )
    commanded(place, "config", "trust")
    rows = json.loads(commanded(place, "commands", "list", "--json").out)
    assert [(row["name"], row["origin"], row["argument_hint"]) for row in rows] == [
        ("git:commit", "gemini", ""),
        ("fix", "claude", "[issue]"),
    ]
    shown = commanded(place, "commands", "show", "git:commit", "a b")
    assert shown.out == "Message for !{git diff 'a b'} and @{a.md}: a b\n"
    assert commanded(place, "commands", "show", "/fix", "--x").out == "Fix --x !`ls --x`\n"
    wrong = commanded(place, "commands", "show", "fixx")
    assert (wrong.code, 'did you mean "fix"' in wrong.err) == (1, True)
