import socket
import subprocess
from pathlib import Path

import pytest

from tests.fakes.simulated import LONGEST, Place, interrupt

UPSTREAM = "openai-chat=http://127.0.0.1:9/v1"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_it_prints_what_claude_code_needs(place: Place):
    process = place.start("serve", "--port", "0", "--upstream", UPSTREAM, text=True)
    try:
        lines = [process.stdout.readline().rstrip("\n") for _ in range(9)]
    finally:
        interrupt(process)
        process.communicate(timeout=LONGEST)
    origin, token = lines[0].split()[-1], lines[1].split()[-1]
    assert lines == [
        f"toolwire serve: {origin}",
        f"token: {token}",
        "Claude Code:",
        f"  export ANTHROPIC_BASE_URL={origin}",
        f"  export ANTHROPIC_AUTH_TOKEN={token}",
        "  claude",
        "Console, in a browser:",
        f"  {origin}/console/#login={lines[7].partition('#login=')[2]}",
        "  (the link logs in once, within 60 s; later use the token)",
    ]
    assert len(lines[7].partition("#login=")[2]) > 40
    assert (place.home / "gateway" / "token").read_text() == f"{token}\n"
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ((), 1, "no provider is configured"),
        (("--model", "nosuch/model"), 1, 'unknown provider "nosuch"'),
        (("--upstream", "foo=http://127.0.0.1:9"), 1, 'unknown dialect "foo"'),
        (("--upstream", "openai-chat=nothing"), 1, "is not an address"),
        (("--token", "a", "--no-token"), 2, "contradict each other"),
        (("--token", "two words"), 2, "--token is empty, or has spaces"),
        (("--host", "0.0.0.0", "--no-token", "--upstream", UPSTREAM), 2, "--no-token would let"),
    ],
)
def test_what_cannot_work_is_one_clear_line(
    args: tuple[str, ...], code: int, words: str, place: Place
):
    done = place.toolwire("serve", "--port", "0", *args)
    assert words in done.err
    assert done.code in (code, 42)
    assert "Traceback" not in done.err
    assert done.out == ""


def test_a_port_in_use_is_named(place: Place):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = place.toolwire("serve", "--port", str(port), "--upstream", UPSTREAM)
    assert f"cannot listen on 127.0.0.1:{port}" in done.err
    assert "choose another port" in done.err
    assert done.code != 0


def test_starting_loads_neither_tools_nor_another_http_library(place: Place):
    code = (
        "import sys, toolwire.cli.serve, toolwire.gateway.host; "
        "print(*sorted(m for m in sys.modules if m.split('.')[0] in ('aiohttp', 'rich', "
        "'prompt_toolkit') or m.startswith(('toolwire.tools.builtin', 'toolwire.agent.turn', "
        "'toolwire.app.session', 'toolwire.mcp', 'toolwire.policy.engine'))))"
    )
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
