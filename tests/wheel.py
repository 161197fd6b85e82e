"""Tries an installed toolwire from outside the source tree; `make dist` runs it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("toolwire")
ANSWER = Path(__file__).parents[1] / "docs" / "answer.sse"
SCRIPT = """
[[reply]]
calls = [{ name = "read_file", arguments = { absolute_path = "NOTES" } }]

[[reply]]
text = "It reads: {last_result}"
"""

_SHARED = (
    "man/man1/toolwire.1",
    "bash-completion/completions/toolwire",
    "zsh/site-functions/_toolwire",
    "fish/vendor_completions.d/toolwire.fish",
)


def main() -> None:
    """Runs each step in an empty home; the first that fails ends the program with its output."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        print(_run(home, "--version"))
        decoded = json.loads(_run(home, "decode", "openai-chat", text=ANSWER.read_text()))
        _expect([call["id"] for call in decoded["tool_calls"]] == ["call_a", "call_b"], decoded)
        for command in ("providers", "models", "config"):
            _run(home, command, "--help")
        _expect("read_file" in _run(home, "tools", "list"), "tools list")
        _expect("--model" in _run(home, "__complete", "run", "--mo"), "completion")
        for name in _SHARED:
            _expect((Path(sys.prefix) / "share" / name).is_file(), name)
        print(_agent(home))
        _library(home)
    print("the wheel works")


def _agent(home: Path) -> str:
    """Asks the simulator of this installation, over loopback HTTP."""
    (home / "notes.txt").write_text("three short words\n")
    (home / "script.toml").write_text(SCRIPT.replace("NOTES", str(home / "notes.txt")))
    server = subprocess.Popen(
        [PROGRAM, "simulate", "script.toml", "--port", "0"],
        cwd=home,
        env=_environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        origin = server.stdout.readline().split()[-1]
        upstream = f"openai-chat={origin}/v1,model=sim-1"
        answer = _run(home, "run", "--upstream", upstream, "What is in notes.txt?")
    finally:
        server.terminate()
        server.wait(10)
    _expect("three short words" in answer, answer)
    return answer


def _library(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-c", "from toolwire import Agent, translate, read_answer"],
        cwd=home,
        capture_output=True,
        text=True,
    )
    _expect(done.returncode == 0, done.stderr)


def _run(home: Path, *arguments: str, text: str = "") -> str:
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=home,
        env=_environment(home),
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
    )
    _expect(done.returncode == 0, f"toolwire {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def _environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "TOOLWIRE_HOME": str(home / ".toolwire"), "PATH": os.environ["PATH"]}


def _expect(holds: bool, found: object) -> None:
    if not holds:
        raise SystemExit(f"the wheel fails: {found}")


if __name__ == "__main__":
    main()
