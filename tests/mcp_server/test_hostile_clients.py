"""Clients on standard input that flood, stall or send nonsense."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place
from tests.mcp_server.served import LONGEST, wait_until
from tests.mcp_server.test_serve import HELLO, lines
from toolwire.request import JsonObject


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def started(place: Place) -> Any:
    process = place.start("mcp", "serve", stdin=subprocess.PIPE)
    process.stdin.write(lines(HELLO))
    process.stdin.flush()
    assert b"serverInfo" in process.stdout.readline()
    return process


def finished(process: Any) -> tuple[int, bytes]:
    process.stdin.close()
    out = process.stdout.read()
    code = process.wait(LONGEST)
    process.stdout.close()
    process.stderr.close()
    return code, out


def memory(process: Any) -> int:
    """Resident megabytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


def test_a_line_without_end_ends_the_server_and_not_the_memory(place: Place):
    process = started(place)
    piece = b"x" * (1 << 20)
    try:
        for _ in range(200):
            process.stdin.write(piece)
            process.stdin.flush()
    except BrokenPipeError:
        pass
    assert process.wait(LONGEST) == 1
    assert b"a line of more than 64 MB" in process.stderr.read()
    process.stdout.close()
    process.stderr.close()


def test_json_that_is_nested_too_deeply_ends_the_server_with_the_reason(place: Place):
    done = place.toolwire("mcp", "serve", input=lines(HELLO) + b"[" * 50_000 + b"\n")
    assert done.code == 1
    assert "nested too deeply" in done.err
    assert "Traceback" not in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_client_that_reads_nothing_does_not_fill_the_memory(place: Place):
    process = started(place)
    before = memory(process)
    flood = lines(*({"id": number, "method": "tools/list"} for number in range(2, 60)))
    os.set_blocking(process.stdin.fileno(), False)
    for _ in range(400):
        try:
            os.write(process.stdin.fileno(), flood)
        except BlockingIOError:
            break
    assert wait_until(lambda: memory(process) < before + 100, 5)
    process.kill()
    process.wait(LONGEST)
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_nonsense_is_answered_and_the_next_request_still_works(place: Place):
    process = started(place)
    nonsense = (
        b"\xff\xfe\n",
        b'{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}\n',
        b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}\n',
        b'{"jsonrpc": "2.0", "id": 5, "result": {}}\n',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}\n',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": []}}\n',
        b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}\n',
        lines({"id": 6, "method": "tools/call", "params": {"name": "glob", "arguments": [1]}}),
        lines({"id": 7, "method": "tools/call", "params": [1]}),
        lines({"id": 8, "method": "ping\x1b[31m"}),
        lines({"id": "\ud800", "method": "ping"}),
    )
    process.stdin.write(b"".join(nonsense) + lines({"id": "last", "method": "ping"}))
    process.stdin.flush()
    answers: list[JsonObject] = []
    while not answers or answers[-1].get("id") != "last":
        answers.append(json.loads(process.stdout.readline()))
    assert answers[-1]["result"] == {}
    code, rest = finished(process)
    assert code == 0
    found = {str(one.get("id")): one for one in (*answers, *map(json.loads, rest.splitlines()))}
    assert found["6"]["error"]["code"] == -32602
    assert found["8"]["error"]["code"] == -32601
