"""Custom commands: where they are read, and the prompts they give."""

import asyncio
import shlex
from pathlib import Path

import pytest

from toolwire.extensions.commands import CustomCommand, Expanded, expand, read_commands, sources


def expanded(form: str, prompt: str, typed: str = "", output: str = "") -> Expanded:
    """The prompt of a command whose shell parts print their own text."""
    ran: list[str] = []

    async def run(command: str) -> str:
        ran.append(command)
        return output or f"<{command}>"

    command = CustomCommand(
        name="fix", prompt=prompt, file=Path("fix"), form="toml" if form == "toml" else "markdown"
    )
    return asyncio.run(expand(command, typed, run=run, read=lambda path: f"[{path}]"))


@pytest.mark.parametrize(
    ("form", "prompt", "typed", "text"),
    [
        ("toml", "Fix it.", "", "Fix it."),
        ("toml", "Fix it.", "in a.py", "Fix it.\n\n/fix in a.py"),
        ("toml", "Fix {{args}} now", "it's", "Fix it's now"),
        ("toml", "!{grep -r {{args}} .}", "It's; rm -rf x", None),
        (
            "toml",
            "See @{docs/a.md} and !{git diff ${A}}",
            "",
            "See [docs/a.md] and <git diff ${A}>",
        ),
        ("toml", "Open !{never closed", "", "Open !{never closed"),
        ("markdown", "Review $1 with $2.", "'a b' c", "Review a b with c."),
        ("markdown", "Do $ARGUMENTS", "a b", "Do a b"),
        ("markdown", "Do it", "a b", "Do it\n\nARGUMENTS: a b"),
        ("markdown", "State: !`git status $1`", "x;y", "State: <git status 'x;y'>"),
    ],
)
def test_prompts_of_commands(form: str, prompt: str, typed: str, text: str | None):
    if text is None:
        text = f"<grep -r {shlex.quote(typed)} .>"
    assert expanded(form, prompt, typed).text == text


def test_what_is_inserted_is_not_read_again():
    found = expanded("toml", "a !{x} b", output="!{rm -rf /} @{secret} {{args}} @secret")
    assert found == Expanded("a !{rm -rf /} @{secret} {{args}} @secret b", "a  b")


def test_a_long_output_is_capped():
    assert len(expanded("toml", "!{x}", output="y" * (1 << 20)).text) < 101_000


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_commands_of_every_program_are_found(tmp_path: Path):
    work, home = tmp_path / "work", tmp_path / "home"
    write(work / ".gemini/commands/git/commit.toml", 'description = "Commit"\nprompt = "p"\n')
    write(work / ".claude/commands/review.md", '---\ndescription: "Look"\nmodel: x\n---\nbody\n')
    write(work / ".toolwire/commands/review.md", "ours\n")
    write(home / ".codex/prompts/help.md", "codex help\n")
    write(home / ".toolwire-home/commands/own.toml", 'prompt = "mine"\n')
    write(home / ".gemini/commands/bad.toml", "prompt = 1\n")
    environ = {"HOME": str(home), "TOOLWIRE_HOME": str(home / ".toolwire-home")}
    found, problems = read_commands(sources(environ, work, trusted=True), taken=["help"])
    assert {name: command.prompt for name, command in found.items()} == {
        "review": "ours",
        "git:commit": "p",
        "claude:review": "body",
        "own": "mine",
        "codex:help": "codex help",
    }
    assert found["claude:review"].description == "Look"
    assert found["claude:review"].fields == {"description": "Look", "model": "x"}
    assert len(problems) == 2
    assert 'bad.toml is not a command: it has no text "prompt"' in problems[0]
    assert problems[1].startswith("/help is built in; ")
    assert problems[1].endswith("/help.md is /codex:help")
    untrusted, _ = read_commands(sources(environ, work, trusted=False))
    assert sorted(untrusted) == ["help", "own"]
