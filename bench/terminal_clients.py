"""The programs that are measured on a terminal, and the script that their model follows."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from bench.agent_peers import PEERS

PROMPT = "stream the long answer"
LAST = "THE-LAST-WORD"
EVERY = 0.005
"""Seconds between two pieces."""
_DELTA = 4


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """A program, how it is started, and what shows that it is ready."""

    name: str
    command: list[str]
    environ: dict[str, str]
    folder: Path
    prompt: str
    """The mark of its composer, at the beginning of a row."""
    ready: str
    """What is on the screen when it is open."""
    confirm: tuple[tuple[str, bytes], ...] = ()
    """Words of pages before the first prompt, and the keys that leave them."""


def answer(pieces: int) -> str:
    """Sections of prose, a list and code; as many pieces of four characters."""
    sections: list[str] = []
    size = 0
    while size < pieces * _DELTA - 40:
        number = len(sections) + 1
        prose = (
            f"## Section {number}\n\nThe parser reads `one` line at a time, **and** keeps what it "
            "has seen in a list, so that nothing is read twice. More words follow here.\n\n"
            "- first point of the list\n- second point, with a few more words\n\n"
            "```python\ndef parse(text: str) -> list[str]:\n    return text.split()\n```\n\n"
        )
        sections.append(prose)
        size += len(prose)
    return f"{''.join(sections)[: pieces * _DELTA - 20]}\n\n{LAST}\n"


def script(pieces: int) -> str:
    """The replies to all prompts, the long answer of so many pieces among them."""
    text = json.dumps(answer(pieces))
    fault = f"fault = {{ wait_each = {EVERY} }}"
    # Over ten seconds: at once it is a moment, and the share would be that of its two requests.
    megabyte = "yes 'a line of output that is repeated' | head -c 1000000"
    big = json.dumps(f"for n in $(seq 100); do {megabyte}; sleep 0.1; done")
    return (
        f'[[reply]]\nwhen = "{PROMPT}"\ntext = {text}\ndelta = {_DELTA}\ntimes = 1000\n{fault}\n'
        '[[reply]]\nwhen = "run the slow one"\ntimes = 100\n'
        'calls = [{ name = "run_shell_command", arguments = { command = "sleep 20" } }]\n'
        '[[reply]]\nwhen = "run the big one"\ntimes = 100\n'
        f'calls = [{{ name = "run_shell_command", arguments = {{ command = {big} }} }}]\n'
        f'[[reply]]\ndefault = true\ntext = "{LAST}"\n'
    )


def clients(origin: str, place: Path) -> tuple[list[Client], list[str]]:
    """Ours and the peers on the path, with homes of their own; and those that are left out."""
    program = str(Path(sys.executable).parent / "toolwire")
    base = {"PATH": os.environ.get("PATH", os.defpath), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    work, home = place / "work", place / "home"
    work.mkdir()
    home.mkdir()
    upstream = f"openai-chat={origin}/v1,key=k,model=scripted"
    ours = Client(
        name="toolwire",
        command=[program, "chat", "--yolo", "--upstream", upstream],
        environ={**base, "HOME": str(home), "TOOLWIRE_HOME": str(home / "own")},
        folder=work,
        prompt="›",
        ready="scripted · native",
    )
    found, left_out = [ours], []
    for peer in PEERS:
        if peer.program not in ("codex", "claude"):
            continue
        path = shutil.which(peer.program)
        if not path:
            left_out.append(f"{peer.name}: {peer.program} is not on the path")
            continue
        folder, own = place / f"work-{peer.program}", place / f"home-{peer.program}"
        folder.mkdir()
        own.mkdir()
        environ = {**base, "HOME": str(own), **peer.prepare(origin, own)}
        _trust(peer.program, own, folder)
        # Its newest model: for an older one it shows a page first.
        words = ["--model", "claude-sonnet-4-5" if peer.program == "claude" else "gpt-6-sol"]
        pages = (
            ("custom API key", b"\x1b[A\r"),
            ("Yes, I trust", b"\r"),
            ("Yes, continue", b"\r"),
            ("Press enter to continue", b"\r"),
            ("Use existing model", b"2\r"),
        )
        client = Client(
            name=f"{peer.name} {_version(path)}",
            command=[path, *words],
            environ=environ,
            folder=folder,
            prompt="❯" if peer.program == "claude" else "›",
            ready="? for shortcuts",
            confirm=pages,
        )
        found.append(client)
    return found, left_out


def _version(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    words = [word for word in done.stdout.split() if word[:1].isdigit()]
    return words[0] if words else ""


def _trust(program: str, home: Path, folder: Path) -> None:
    """Answers the questions that a program asks before its first prompt."""
    if program == "codex":
        with (home / "config.toml").open("a") as config:
            config.write(f'[projects."{folder}"]\ntrust_level = "trusted"\n')
        return
    settings = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": ["k"], "rejected": []},
        "projects": {
            str(folder): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        },
    }
    (home / ".claude.json").write_text(json.dumps(settings))
