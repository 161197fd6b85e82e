"""The command with our own client: tools, the policy, questions, cancellation, the end."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.fakes.simulated import Place
from tests.mcp.servers import connected
from tests.mcp_server.served import (
    KINDS,
    LONGEST,
    answering,
    client,
    listening,
    running,
    text_of,
    wait_until,
)
from toolwire.cli.mcp_serve import serve_command
from toolwire.mcp.peer import RpcError
from toolwire.policy import Mode
from toolwire.request import JsonObject

every_kind = pytest.mark.parametrize("kind", KINDS)
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
READING = ["list_directory", "read_file", "search_file_content", "glob", "read_many_files"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@every_kind
def test_tools_that_only_read_are_offered_and_called(kind: str, place: Place):
    (place.work / "a.txt").write_text("hello\n")

    async def use() -> None:
        async with client(kind, place) as server:
            await server.ready(LONGEST)
            assert server.lists is not None
            assert [tool.name for tool in server.lists.tools] == READING
            assert all(tool.hints["readOnlyHint"] for tool in server.lists.tools)
            path = str(place.work / "a.txt")
            result = await server.call("read_file", {"absolute_path": path}, None)
            assert (text_of(result), result["isError"]) == ("hello\n", False)
            result = await server.call("read_file", {"absolute_path": 7}, None)
            assert result["isError"] is True
            for name in ("write_file", "no_such_tool"):
                with pytest.raises(RpcError) as caught:
                    await server.call(name, {}, None)
                assert caught.value.code == -32602

    asyncio.run(use())


@pytest.mark.parametrize(
    ("kind", "action", "answer", "runs"),
    [
        *((kind, "accept", "once", True) for kind in KINDS),
        ("stdio", "accept", "no", False),
        ("http-legacy", "decline", "once", False),
        ("http-modern", "accept", "always", False),
        ("http-modern", "cancel", "once", False),
    ],
)
def test_what_needs_a_yes_is_asked(kind: str, action: str, answer: str, runs: bool, place: Place):
    asked: list[JsonObject] = []
    file = place.work / "new.txt"

    async def use() -> JsonObject:
        elicit = answering(answer, action, asked)
        async with client(kind, place, ("write_file",), elicit=elicit) as server:
            call = {"file_path": str(file), "content": "text \x1b[31m\n"}
            return await server.call("write_file", call, None)

    result = asyncio.run(use())
    assert result["isError"] is not runs
    assert file.exists() is runs
    [question] = asked
    assert question["requestedSchema"]["properties"]["answer"]["enum"] == ["once", "no"]
    assert "new.txt" in question["message"]
    assert "\x1b" not in question["message"]


@every_kind
def test_a_client_that_cannot_ask_gets_a_refusal_with_the_way_out(kind: str, place: Place):
    async def use() -> JsonObject:
        async with client(kind, place, ("write_file",)) as server:
            call = {"file_path": str(place.work / "new.txt"), "content": "x"}
            return await server.call("write_file", call, None)

    result = asyncio.run(use())
    assert result["isError"] is True
    assert "needs approval" in text_of(result)
    assert "--approval-mode" in text_of(result)
    assert list(place.work.iterdir()) == []


def test_the_mode_of_the_server_rules(place: Place):
    async def use() -> JsonObject:
        names = ("write_file", "replace")
        async with client("stdio", place, names, Mode.AUTO_EDIT) as server:
            call = {"file_path": str(place.work / "new.txt"), "content": "x"}
            return await server.call("write_file", call, None)

    assert asyncio.run(use())["isError"] is False
    assert (place.work / "new.txt").read_text() == "x"


@every_kind
def test_live_output_is_progress(kind: str, place: Place):
    lines: list[str] = []

    def take(line: str) -> None:
        lines.append(line)
        (place.work / "seen").touch()

    async def use() -> None:
        async with client(kind, place, ("run_shell_command",), Mode.YOLO) as server:
            call = {"command": "echo one; while [ ! -e seen ]; do sleep 0.1; done; echo two"}
            result = await server.call("run_shell_command", call, take)
            assert "two\nError" in text_of(result), text_of(result)

    asyncio.run(use())
    assert any("one" in line for line in lines)


@linux
@every_kind
def test_a_cancelled_call_leaves_no_process(kind: str, place: Place):
    mark = f"31{abs(hash(str(place.root))) % 10**6:06}"

    async def use() -> None:
        async with client(kind, place, ("all",), Mode.YOLO) as server:
            await server.ready(LONGEST)
            call = {"command": f"sleep {mark}"}
            task = asyncio.ensure_future(server.call("run_shell_command", call, None))
            assert await asyncio.to_thread(wait_until, lambda: bool(running(f"sleep {mark}")))
            task.cancel()
            await asyncio.wait({task})
            assert await asyncio.to_thread(wait_until, lambda: not running(f"sleep {mark}"))
            result = await server.call("glob", {"pattern": "*"}, None)
            assert result["isError"] is False

    asyncio.run(use())


def lines(*messages: JsonObject) -> bytes:
    return b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages)


HELLO: JsonObject = {
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}},
}


def _call(number: int, name: str, **arguments: Any) -> JsonObject:
    return {
        "id": number,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


@linux
@pytest.mark.parametrize("end", ["eof", "term", "kill"])
def test_the_end_of_the_client_or_the_server_ends_everything(end: str, place: Place):
    mark = f"32{abs(hash(str(place.root))) % 10**6:06}"
    args = ("mcp", "serve", "--tools", "run_shell_command", "--approval-mode", "yolo")
    process = place.start(*args, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdin.write(lines(HELLO, _call(2, "run_shell_command", command=f"sleep {mark}")))
    process.stdin.flush()
    assert b'"serverInfo"' in process.stdout.readline()
    assert wait_until(lambda: bool(running(f"sleep {mark}")))
    if end == "eof":
        process.stdin.close()
    else:
        process.send_signal(signal.SIGTERM if end == "term" else signal.SIGKILL)
    code = process.wait(LONGEST)
    assert wait_until(lambda: not running(f"sleep {mark}"))
    assert code == {"eof": 0, "term": 130, "kill": -9}[end]
    process.stdout.close()


@linux
def test_a_stopped_http_server_leaves_no_process(place: Place):
    mark = f"34{abs(hash(str(place.root))) % 10**6:06}"

    async def use() -> None:
        args = ("--tools", "run_shell_command", "--approval-mode", "yolo", "--no-token")
        async with listening(place, *args) as there:
            table = {"url": there.url}
            async with connected(place.work, table) as server:
                await server.ready(LONGEST)
                call = {"command": f"sleep {mark}"}
                task = asyncio.ensure_future(server.call("run_shell_command", call, None))
                assert await asyncio.to_thread(wait_until, lambda: bool(running(f"sleep {mark}")))
                there.process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(there.process.wait, LONGEST) == 0
                assert await asyncio.to_thread(wait_until, lambda: not running(f"sleep {mark}"))
                task.cancel()
                await asyncio.wait({task})

    asyncio.run(use())


def test_calls_that_change_something_run_alone(place: Place):
    async def use() -> None:
        async with client("http-modern", place, ("all",), Mode.YOLO) as server:
            await server.ready(LONGEST)
            command = "[ ! -e busy ] && touch busy && sleep 0.1 && rm busy && echo alone"
            calls = [server.call("run_shell_command", {"command": command}, None) for _ in range(4)]
            reads = [server.call("glob", {"pattern": "*"}, None) for _ in range(4)]
            results = await asyncio.gather(*calls, *reads)
            assert all("Output: alone" in text_of(one) for one in results[:4])
            assert not any(one["isError"] for one in results)
            assert not any("busy" in text_of(one) for one in results[4:])

    asyncio.run(use())


def test_requests_sent_before_the_end_of_the_input_are_answered(place: Place):
    sent = lines(HELLO, {"id": "two", "method": "tools/list"}, {"method": "notifications/x"})
    done = place.toolwire("mcp", "serve", input=sent)
    answers = {one["id"]: one for one in map(json.loads, done.out.splitlines())}
    assert done.code == 0
    assert answers[1]["result"]["protocolVersion"] == "2025-06-18"
    assert len(answers["two"]["result"]["tools"]) == len(READING)


def test_bad_messages_get_the_protocols_errors(place: Place):
    sent = (
        b'garbage\n{"jsonrpc": "2.0", "id": 2, "method": "tools/list"}\n',
        lines({"id": 3, "method": "server/discover"}),
        lines(HELLO, {"id": 4, "method": "no/such"}),
        lines({"id": 5, "method": "tools/call", "params": {"name": 7}}),
        lines({"id": 6, "method": "tools/list", "params": {"cursor": "x"}}),
    )
    done = place.toolwire("mcp", "serve", input=b"".join(sent))
    answers = map(json.loads, done.out.splitlines())
    codes = {one["id"]: one["error"]["code"] for one in answers if "error" in one}
    assert done.code == 0
    assert codes == {None: -32700, 2: -32600, 3: -32602, 4: -32601, 5: -32602, 6: -32602}


def test_nothing_but_messages_is_on_standard_output(place: Place):
    (place.home / "config.toml").write_text('[tools]\nallowed = ["run_shell_command"]\n')
    sent = lines(HELLO, _call(2, "run_shell_command", command="echo loud; echo louder >&2"))
    process = place.start("mcp", "serve", "--tools", "run_shell_command", stdin=subprocess.PIPE)
    process.stdin.write(sent)
    process.stdin.flush()
    found = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.stdin.close()
    assert process.stdout.read() == b""
    assert "loud" in text_of(found[1]["result"])
    process.wait(LONGEST)
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--http", "x"), "not a port"),
        (("--http", "99999"), "not a port"),
        (("--token", "a"), "for --http"),
        (("--http", "0", "--token", "a", "--no-token"), "contradict"),
        (("--http", "0.0.0.0:0", "--no-token"), "every machine"),
        (("--http", "0", "--token", "a b"), "spaces"),
        (("--http", "0", "--token", ""), "empty"),
    ],
)
def test_wrong_usage_is_named(args: tuple[str, ...], words: str):
    done = CliRunner().invoke(serve_command, list(args))
    assert (done.exit_code, words in done.output) == (2, True)


def test_an_unknown_tool_is_named(place: Place):
    done = place.toolwire("mcp", "serve", "--tools", "read_fil")
    assert done.code == 2
    assert 'did you mean "read_file"' in done.err
    assert "Traceback" not in done.err


def test_a_port_that_is_taken_is_named(place: Place):
    async def use() -> None:
        async with listening(place, "--no-token") as there:
            done = await asyncio.to_thread(
                place.toolwire, "mcp", "serve", "--http", str(there.port)
            )
            assert done.code == 1
            assert "cannot listen on 127.0.0.1" in done.err
            assert "Traceback" not in done.err

    asyncio.run(use())
