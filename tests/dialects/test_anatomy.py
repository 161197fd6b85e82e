"""Every big format has the same files, and loads those for servers only when they are needed."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

FORMATS = ("anthropic", "gemini", "openai_chat", "openai_responses")
FOR_SERVERS = ("decode_request", "decode_messages", "encode_answer")
FILES = (
    "shapes",
    "encode_request",
    "encode_messages",
    "decode_answer",
    "ends",
    "errors",
    "media",
    *FOR_SERVERS,
)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_the_same_files(format: str, file: str) -> None:
    assert find_spec(f"toolwire.dialects.{format}.{file}") is not None


@pytest.mark.parametrize("format", [*FORMATS, "code_assist"])
def test_a_client_does_not_load_what_only_servers_need(format: str) -> None:
    program = (
        f"import sys, toolwire.dialects.{format}\n"
        f"print(*[name for name in sys.modules if name.endswith({FOR_SERVERS})])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == ""
