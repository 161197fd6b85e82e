"""Servers in runs: offered, called, ruled on, and gone at the end."""

import asyncio
import base64
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import LONGEST, Place, Simulated
from tests.mcp.servers import answer
from tests.mcp.servers import in_settings as scripted
from toolwire import config
from toolwire.agent.questions import Choice, Confirmation, McpDetails, UserAnswer
from toolwire.app.servers import ServerChoice
from toolwire.app.toolbox import open_toolbox
from toolwire.config.schema import rendered
from toolwire.messages import ToolCall, ToolResult
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Say

GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
    "serverInfo": {"name": "scripted", "version": "1"},
    "instructions": "Use echo for everything.",
}
WHO = {"name": "who", "required": True}
SCRIPT = {
    "initialize": [answer(result=GREETING)],
    "prompts/list": [answer(result={"prompts": [{"name": "greet", "arguments": [WHO]}]})],
    "prompts/get": [
        answer(
            result={"messages": [{"role": "user", "content": {"type": "text", "text": "Hi @x!"}}]}
        )
    ],
    "resources/list": [answer(result={"resources": [{"uri": "note://a", "name": "a"}]})],
    "resources/read": [answer(result={"contents": [{"uri": "note://a", "text": "the note"}]})],
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def configure(place: Place, *more: str, **servers: dict[str, Any]) -> None:
    tables = [
        f"[mcp_servers.{name}]\n" + "".join(f"{key} = {rendered(one)}\n" for key, one in t.items())
        for name, t in servers.items()
    ]
    (place.home / "config.toml").write_text("\n".join((*more, *tables)))


def says(text: str) -> Reply:
    return Reply(pieces=(Say(text),))


def tools(body: dict[str, Any]) -> list[str]:
    return [each["function"]["name"] for each in body.get("tools", ())]


def events(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_tool_of_a_server_is_offered_and_called_by_any_of_its_names(place: Place):
    configure(place, one=scripted(SCRIPT))
    calls = Reply(pieces=(Call.of("echo"), Call.of("mcp__one__echo")))
    with Simulated([calls, says("done")]) as sim:
        ended = place.run(sim, "go", "--yolo", "--output-format", "stream-json")
        assert ended.code == 0
        names = tools(sim.bodies[0])
        assert names[-3:] == ["list_mcp_resources", "read_mcp_resource", "echo"]
        system = sim.bodies[0]["messages"][0]["content"]
        assert "# one\nUse echo for everything." in system
    lines = events(ended.out)
    assert lines[0]["mcp"] == [{"name": "one", "status": "connected", "tools": 1}]
    results = [line["output"] for line in lines if line["type"] == "tool_result"]
    assert results == ["hello", "hello"]


def test_a_remembered_server_starts_at_its_first_call_only(place: Place):
    marker = place.work / "started"
    program = f"open({str(marker)!r}, 'a').write('x'); import runpy, sys; " + (
        "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    table = scripted({})
    table["args"] = ["-c", program, *table["args"]]
    configure(place, one=table)
    with Simulated([says("a"), says("b"), Reply(pieces=(Call.of("echo"),)), says("c")]) as sim:
        for _ in range(2):
            assert place.run(sim, "hi").code == 0
        assert marker.read_text() == "x"
        assert tools(sim.bodies[0]) == tools(sim.bodies[1])
        assert place.run(sim, "hi", "--yolo").code == 0
    assert marker.read_text() == "xx"


def test_calls_need_approval_unless_a_rule_names_them_in_any_way(place: Place):
    configure(place, one=scripted({}))
    for flags, expected in (
        ((), "error"),
        (("--allowed-tools", "echo"), "success"),
        (("--allowed-tools", "one__echo"), "success"),
        (("--allowed-tools", "mcp__one__*"), "success"),
        (("--allowed-tools", "two__echo"), "error"),
    ):
        with Simulated([Reply(pieces=(Call.of("echo"),)), says("done")]) as sim:
            ended = place.run(sim, "go", *flags, "--output-format", "stream-json")
        [result] = [one for one in events(ended.out) if one["type"] == "tool_result"]
        assert result["status"] == expected, flags


def test_trust_and_hints_count_only_where_the_user_says_so(place: Place):
    hinted = {
        "name": "echo",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    }
    script = {"tools/list": [answer(result={"tools": [hinted]})]}

    def status(env: dict[str, str] | None = None, **more: Any) -> str:
        configure(place, one=scripted(script, **more))
        with Simulated([Reply(pieces=(Call.of("echo"),)), says("done")]) as sim:
            ended = place.run(sim, "go", "--output-format", "stream-json", env=env)
        return next(one["status"] for one in events(ended.out) if one["type"] == "tool_result")

    assert status() == "error"
    assert status(trust=True) == "error"
    assert status({"TOOLWIRE_TRUST_WORKSPACE": "1"}, trust=True) == "success"
    assert status(believe_hints=True) == "success"


def test_a_required_server_that_fails_ends_the_run_before_any_request(place: Place):
    configure(place, one={"command": "no-such-server", "required": True})
    with Simulated([says("ok")]) as sim:
        ended = place.run(sim, "hi")
    assert (ended.code, len(sim.bodies)) == (1, 0)
    assert "MCP server one is required and cannot start" in ended.err


def test_a_failing_server_is_a_warning_with_its_last_words(place: Place):
    configure(place, one={"command": sys.executable, "args": ["-c", "raise SystemExit('no key')"]})
    with Simulated([says("ok")]) as sim:
        ended = place.run(sim, "hi", "--output-format", "stream-json")
    assert ended.code == 0
    [warning] = [one for one in events(ended.out) if one["type"] == "error"]
    assert warning["severity"] == "warning"
    assert "MCP server one failed" in warning["message"]
    assert "no key" in warning["message"]
    assert "MCP server one failed" in ended.err


def test_a_prompt_of_a_server_is_a_slash_command(place: Place):
    (place.work / "x").write_text("SECRET")
    configure(place, one=scripted(SCRIPT))
    with Simulated([says("ok")] * 4) as sim:
        for words in ("/greet ann", "/one:greet --who=ann", "/greeting ann"):
            assert place.run(sim, words).code == 0
        missing = place.run(sim, "/greet")
    sent = [body["messages"][-1]["content"] for body in sim.bodies]
    assert sent == ["Hi @x!", "Hi @x!", "/greeting ann"]
    assert missing.code == 42
    assert "Missing required argument(s): --who" in missing.err


def test_a_resource_is_attached_where_the_prompt_mentions_it(place: Place):
    configure(place, one=scripted(SCRIPT))
    with Simulated([says("ok")]) as sim:
        assert place.run(sim, "see @one:note://a and @note://a").code == 0
    content = sim.bodies[0]["messages"][-1]["content"]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    assert text.count("the note") == 2


def test_many_tools_are_found_before_they_are_declared(place: Place):
    listed = [
        {"name": f"tool_{at}", "description": f"does {at}", "inputSchema": {"type": "object"}}
        for at in range(41)
    ]
    configure(place, one=scripted({"tools/list": [answer(result={"tools": listed})]}))
    find = Reply(pieces=(Call.of("find_tools", query="select:tool_7"),))
    with Simulated([find, Reply(pieces=(Call.of("tool_7"),)), says("done")]) as sim:
        ended = place.run(sim, "go", "--yolo")
    assert ended.code == 0
    first, second, _ = map(tools, sim.bodies)
    assert "find_tools" in first
    assert not [name for name in first if name.startswith("tool_")]
    assert second == [*first, "tool_7"]
    assert "- one: tool_0, tool_1" in sim.bodies[0]["messages"][0]["content"]


def test_flags_choose_and_bring_servers(place: Place):
    configure(place, one=scripted({}), two=scripted({}))
    brought = place.root / "more.json"
    brought.write_text(json.dumps({"mcpServers": {"three": scripted({})}}))
    with Simulated([says("ok")] * 3) as sim:
        place.run(sim, "hi", "--mcp", "two", "--mcp-config", str(brought))
        place.run(sim, "hi", "--mcp-config", str(brought))
        place.run(sim, "hi", "--no-mcp")
        unknown = place.run(sim, "hi", "--mcp", "nope")
    last = [[name for name in tools(body) if "echo" in name] for body in sim.bodies]
    assert last == [["echo"], ["echo", "two__echo", "three__echo"], []]
    assert unknown.code == 2
    assert 'unknown MCP server "nope"' in unknown.err


def test_servers_of_a_project_do_not_start_in_a_run_before_approval(place: Place):
    (place.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": scripted({})}}))
    with Simulated([says("ok")]) as sim:
        ended = place.run(sim, "hi")
    assert "wait for your approval: theirs" in ended.err
    assert "echo" not in tools(sim.bodies[0])


LOADED = (
    "import sys, runpy\n"
    "sys.argv = ['toolwire', *sys.argv[1:]]\n"
    "try:\n    runpy.run_module('toolwire', run_name='__main__')\n"
    "except SystemExit as end:\n    assert not end.code, end.code\n"
    "print('LOADED', *(name for name in sys.modules if name.startswith('toolwire.mcp')))\n"
)


def test_nothing_of_mcp_is_loaded_without_a_server(place: Place):
    with Simulated([says("ok")]) as sim:
        args = ["run", "--upstream", sim.upstream("openai-chat"), "hi"]
        done = subprocess.run(
            [sys.executable, "-c", LOADED, *args],
            cwd=place.work,
            env=place.environ(),
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
    assert done.stdout.splitlines()[-1].split() == ["LOADED"], done.stderr


def test_a_changed_description_asks_again_after_an_always(place: Place):
    def described(words: str) -> dict[str, Any]:
        tool = {"name": "echo", "description": words, "inputSchema": {"type": "object"}}
        return scripted({"tools/list": [answer(result={"tools": [tool]})]})

    def status(table: dict[str, Any], *flags: str) -> str:
        configure(place, one=table)
        with Simulated([Reply(pieces=(Call.of("echo"),)), says("done")]) as sim:
            ended = place.run(sim, "go", *flags, "--output-format", "stream-json")
        return next(one["status"] for one in events(ended.out) if one["type"] == "tool_result")

    first = described("echoes")
    assert status(first) == "error"
    configure(place, one=first)
    asyncio.run(_answer_always(place))
    assert "digest = " in (place.home / "policy.toml").read_text()
    assert status(first) == "success"
    assert status(described("echoes, and mails it to me")) == "error"


async def _answer_always(place: Place) -> None:
    async def approve(question: Confirmation) -> UserAnswer:
        assert isinstance(question.details, McpDetails)
        assert question.details.description == "echoes"
        return UserAnswer(choice=Choice.ALWAYS)

    environ = place.environ()
    settings = config.load(environ, place.work)
    async with open_toolbox(
        settings, environ=environ, cwd=place.work, servers=ServerChoice()
    ) as toolbox:
        call = ToolCall(id="1", name="echo", arguments="{}")
        answers = await toolbox.scheduler(approve).run([call])
    result = answers.parts[0]
    assert isinstance(result, ToolResult)
    assert result.text == "hello"


CHANGING = """
import json, sys
ECHO, ADDED = ({"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "added"))
lists = [[ECHO], [ADDED, ECHO]]
def say(**body):
    print(json.dumps({"jsonrpc": "2.0", **body}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        case "tools/list":
            result = {"tools": lists.pop(0) if len(lists) > 1 else lists[0]}
        case "tools/call":
            say(method="notifications/tools/list_changed")
            result = {"content": [{"type": "text", "text": "hello"}]}
        case _:
            continue
    say(id=message["id"], result=result)
"""


def test_a_changed_list_counts_before_the_next_request_and_new_tools_come_last(place: Place):
    configure(place, one={"command": sys.executable, "args": ["-c", CHANGING]})
    with Simulated([Reply(pieces=(Call.of("echo"),)), says("done")]) as sim:
        assert place.run(sim, "go", "--yolo").code == 0
    first, last = map(tools, sim.bodies)
    assert last == [*first, "added"]


def test_large_contents_become_files_and_long_texts_are_cut(place: Place):
    large = base64.b64encode(bytes(21 << 20)).decode()
    program = (
        "import json, sys\n"
        "T = {'name': 'big', 'inputSchema': {'type': 'object'}}\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    r = {'initialize': {'capabilities': {'tools': {}}}, 'tools/list': {'tools': [T]},\n"
        "         'tools/call': {'content': [{'type': 'text', 'text': 'y' * 500000},\n"
        "          {'type': 'image', 'mimeType': 'image/png', 'data': 'A' * SIZE}]}}\n"
        "    if m['method'] in r and 'id' in m:\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r[m['method']]}),\n"
        "              flush=True)\n"
    ).replace("SIZE", str(len(large)))
    configure(place, one={"command": sys.executable, "args": ["-c", program]})
    with Simulated([Reply(pieces=(Call.of("big"),)), says("done")]) as sim:
        assert place.run(sim, "go", "--yolo").code == 0
    sent = json.dumps(sim.bodies[1])
    assert "Output too large" in sent
    assert "image of 22,020,096 bytes is too large to send; it is in " in sent
    assert len(sent) < 1 << 20


ENDLESS = """
import json, os, sys
log = open(os.environ["LOG"], "a", buffering=1)
for line in sys.stdin:
    message = json.loads(line)
    log.write(message["method"] + "\\n")
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}},
        "tools/list": {"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]},
    }.get(message["method"])
    if message["method"] == "tools/call":
        token = message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
        body = {"method": "notifications/progress", "params": params}
    elif result is not None:
        body = {"id": message["id"], "result": result}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", **body}), flush=True)
log.write("end\\n")
"""


def test_progress_is_live_output_and_an_interrupt_reaches_the_server(place: Place):
    log = place.root / "log"
    table = {"command": sys.executable, "args": ["-c", ENDLESS], "env": {"LOG": str(log)}}
    configure(place, one=table)
    with Simulated([Reply(pieces=(Call.of("wait"),)), says("done")]) as sim:
        args = ("run", "--upstream", sim.upstream(), "go", "--yolo")
        process = place.start(*args, "--output-format", "stream-json", text=True)
        seen: list[str] = []
        for line in process.stdout:
            seen.append(line)
            if json.loads(line)["type"] == "tool_output":
                break
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=LONGEST)
    assert json.loads(seen[-1])["content"] == "1/2 half"
    assert process.returncode == 130, rest
    methods = log.read_text().split()
    assert methods[-2:] == ["notifications/cancelled", "end"]


RERUN = (
    "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


def test_a_late_server_takes_no_name_that_another_tool_has(place: Place):
    slow = scripted({})
    slow["args"] = ["-c", f"import time; time.sleep(3); {RERUN}", *slow["args"]]
    configure(place, "[mcp]\nwait_seconds = 1.0\n", slow=slow, fast=scripted({}))
    wait = Reply(pieces=(Call.of("run_shell_command", command="sleep 5"),))
    with Simulated([wait, says("done")]) as sim:
        ended = place.run(sim, "go", "--yolo")
    assert "MCP server slow has not answered within 1 seconds" in ended.err
    first, last = map(tools, sim.bodies)
    assert first[-1] == "echo"
    assert last == [*first, "slow__echo"]
