"""Other coding agents on the path, each set up to do the same turn against the scripted server.

Every one gets a home of its own with its settings, trust and credentials prepared, and no other
variable of the environment but the search path: none of them reaches for the network. A turn is
a file read, a folder listed and an answer: three requests. Codex has shell commands for both.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

ANSWER = "All is read, and the answer is 42."
_SECONDS = 180
"""For the trial run of a program."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A program, how it is pointed at a server, and the calls that its model makes."""

    name: str
    program: str
    """As it is called on the path."""
    calls: Callable[[Path], tuple[tuple[str, dict[str, str]], ...]]
    """Reading a file of a folder, then listing the folder, in this program's own tools."""
    words: tuple[str, ...]
    """Of the command, before the prompt."""
    prepare: Callable[[str, Path], dict[str, str]]
    """Writes settings for a server into a home; returns the variables that the program needs."""

    @property
    def prompt(self) -> str:
        """What this program alone is asked."""
        return f"Say what the notes of {self.name} are about."

    def script(self, folder: Path) -> str:
        """The replies to this program; a request that fits none of them is refused."""
        (read, listed) = self.calls(folder)
        return "".join(
            f"[[reply]]\nwhen = {json.dumps(when)}\n{answer}\n"
            for when, answer in (
                (self.prompt, _call(*read)),
                (self._content, _call(*listed)),
                (self._file, f"text = {json.dumps(ANSWER)}"),
            )
        )

    @property
    def _content(self) -> str:
        return f"notes of {self.program} 42"

    @property
    def _file(self) -> str:
        return f"notes-{self.program}.txt"

    def command(self, origin: str, place: Path) -> list[str]:
        """The whole command; its folder and its home are made."""
        folder, home = folder_of(self, place), place / self.program
        for made in (folder, home):
            made.mkdir(parents=True, exist_ok=True)
        (folder / "notes.txt").write_text(f"{self._content}\n")
        (folder / self._file).write_text("\n")
        variables = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(home),
            **self.prepare(origin, home),
        }
        given = [f"{name}={value}" for name, value in variables.items()]
        program = shutil.which(self.program) or self.program
        words = [program, *self.words, self.prompt]
        return [
            "/bin/sh",
            "-c",
            'cd "$0" && exec /usr/bin/env -i "$@"',
            str(folder),
            *given,
            *words,
        ]

    def complaint(self, command: list[str]) -> str:
        """Why the program cannot be measured, found by a trial run; empty if it can."""
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not end in {_SECONDS} seconds"
        if ANSWER in done.stdout and not done.returncode:
            return ""
        lines = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()
        return f"exited with {done.returncode} without the answer: {lines[-1][:200]}"

    def version(self) -> str:
        """The version that the program prints."""
        done = subprocess.run([self.program, "--version"], capture_output=True, text=True)
        found = re.search(r"\d+(?:\.\d+)+", done.stdout)
        return found[0] if found else "of an unknown version"


def folder_of(peer: Peer, place: Path) -> Path:
    """The folder that a program works in."""
    return place / f"work-{peer.program}"


def _call(name: str, arguments: dict[str, str]) -> str:
    members = ", ".join(f"{key} = {json.dumps(value)}" for key, value in arguments.items())
    thinking = 'thinking = "I should look."\n'
    return f'{thinking}calls = [{{ name = "{name}", arguments = {{ {members} }} }}]'


def _gemini(origin: str, home: Path) -> dict[str, str]:
    settings = {
        "security": {
            "auth": {"selectedType": "gemini-api-key"},
            "folderTrust": {"enabled": False},
        },
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    file = home / ".gemini" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings))
    return {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": origin}


def _codex(origin: str, home: Path) -> dict[str, str]:
    (home / "config.toml").write_text(
        'model = "gpt-5.5"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false\n'
        "[analytics]\nenabled = false\n"
        f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{origin}/v1"\n'
        'env_key = "SCRIPTED_KEY"\nwire_api = "responses"\n'
    )
    return {"CODEX_HOME": str(home), "SCRIPTED_KEY": "k"}


def _claude(origin: str, home: Path) -> dict[str, str]:
    (home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))
    return {
        "ANTHROPIC_BASE_URL": origin,
        "ANTHROPIC_API_KEY": "k",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        # It refuses to skip questions as root elsewhere.
        "IS_SANDBOX": "1",
    }


PEERS = (
    Peer(
        name="gemini-cli",
        program="gemini",
        calls=lambda folder: (
            ("read_file", {"file_path": str(folder / "notes.txt")}),
            ("list_directory", {"dir_path": str(folder)}),
        ),
        words=("--yolo", "--skip-trust", "--model", "gemini-2.5-pro", "--prompt"),
        prepare=_gemini,
    ),
    Peer(
        name="codex",
        program="codex",
        calls=lambda folder: (
            ("exec_command", {"cmd": "cat notes.txt"}),
            ("exec_command", {"cmd": "ls"}),
        ),
        words=(
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
        ),
        prepare=_codex,
    ),
    Peer(
        name="Claude Code",
        program="claude",
        calls=lambda folder: (
            ("Read", {"file_path": str(folder / "notes.txt")}),
            ("Bash", {"command": "ls", "description": "List the folder"}),
        ),
        words=("--dangerously-skip-permissions", "--model", "claude-sonnet-4-5", "--print"),
        prepare=_claude,
    ),
)
