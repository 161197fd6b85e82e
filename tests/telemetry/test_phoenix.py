"""A real backend: Arize Phoenix shows turns, requests and calls with its own kinds.

It is looked for as `phoenix` in `$PHOENIX_BIN`, `build/phoenix/bin` and `PATH`:
`python -m venv build/phoenix && build/phoenix/bin/pip install arize-phoenix`.
"""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place, Simulated
from toolwire.simulator import Call, Reply, Say

FOLDERS = (
    os.environ.get("PHOENIX_BIN", ""),
    str(Path(__file__).parents[2] / "build" / "phoenix" / "bin"),
    os.environ.get("PATH", ""),
)
PHOENIX = shutil.which("phoenix", path=os.pathsep.join(filter(None, FOLDERS)))
START_SECONDS = 300
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(PHOENIX is None, reason="arize-phoenix is not installed"),
]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def fetched(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read() or b"null")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    origin = f"http://127.0.0.1:{(port := free_port())}"
    environ = {
        **os.environ,
        "PHOENIX_WORKING_DIR": str(tmp_path / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    (tmp_path / "phoenix").mkdir()
    process = subprocess.Popen(
        [str(PHOENIX), "serve"],
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            assert process.poll() is None
            try:
                fetched(f"{origin}/v1/projects")
                break
            except OSError:
                time.sleep(0.5)
        yield origin
    finally:
        process.terminate()
        process.wait(60)


def test_a_backend_shows_turns_requests_and_calls(tmp_path: Path, server: str):
    place = Place(tmp_path)
    (place.work / "a.txt").write_text("x\n")
    call = Call.of("read_file", absolute_path=str(place.work / "a.txt"))
    with Simulated([Reply(pieces=(call,)), Reply(pieces=(Say("done"),))]) as sim:
        env = {"TOOLWIRE_TELEMETRY_ENABLED": "true", "TOOLWIRE_TELEMETRY_ENDPOINT": server}
        done = place.run(sim, "read it", env=env)
    assert done.code == 0
    # Phoenix takes no metrics: that is not worth a word.
    assert "export" not in done.err
    spans: list[dict[str, Any]] = []
    end = time.monotonic() + 60
    while len(spans) < 4 and time.monotonic() < end:
        spans = fetched(f"{server}/v1/projects/default/spans?limit=50")["data"]
        time.sleep(0.2)
    kinds = sorted((one["name"].split(" ")[0], one["span_kind"]) for one in spans)
    assert kinds == [
        ("chat", "LLM"),
        ("chat", "LLM"),
        ("execute_tool", "TOOL"),
        ("invoke_agent", "AGENT"),
    ]
    turn = next(one for one in spans if one["span_kind"] == "AGENT")
    inner = {one["parent_id"] for one in spans if one is not turn}
    assert inner == {turn["context"]["span_id"]}
