"""The agent's process: its start, its end, cancellation at any moment, and crashes."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.acp.editor import Agent, Model, calls, choosing, validate, validate_answers
from tests.fakes.simulated import LONGEST, Place, Simulated
from tests.mcp_server.served import running, wait_until
from toolwire.agent.events import ToolStarted
from toolwire.app.stored_sessions import stored_sessions
from toolwire.cli.acp import acp_command
from toolwire.messages import calls_without_result
from toolwire.sessions.replay import replay
from toolwire.simulator import Call, Fault, Reply, Say

MOMENTS = 50


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def sim(model: Model) -> Iterator[Simulated]:
    with Simulated(model) as sim:
        yield sim


def shell(command: str) -> Call:
    return Call.of("run_shell_command", command=command)


def test_without_a_model_a_session_asks_for_a_login(place: Place):
    offers = {"auth": {"terminal": True}}
    # Nothing listens there: no model server of this machine is found.
    agent = Agent(place, offers=offers, env={"OLLAMA_HOST": "http://127.0.0.1:9"})
    error = agent.fails("session/new", cwd=str(place.work), mcpServers=[])
    assert error.code == -32000
    assert error.data
    methods = error.data["authMethods"]
    assert [one["id"] for one in methods] == ["toolwire-login", "environment"]
    assert methods == agent.greeting["authMethods"]
    assert agent.fails("authenticate", methodId="toolwire-login").code == -32000
    assert agent.ask("session/list")["sessions"] == []
    assert agent.close()[0] == 0


@pytest.mark.parametrize(
    "args", [["prompt"], ["--model"], ["--approval-mode", "x"], ["--no-mcp", "--mcp-config", "x"]]
)
def test_usage_is_checked(args: list[str]):
    assert CliRunner().invoke(acp_command, args).exit_code == 2


def test_lines_that_are_not_messages_are_answered_and_survived(place: Place):
    lines = b'nonsense\n{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}\n'
    lines += b'{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = place.toolwire("acp", input=lines)
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert {one.get("id"): one.get("error", {}).get("code") for one in answers} == {
        None: -32700,
        1: -32600,
        2: None,
    }
    assert done.code == 0


@pytest.mark.sweep
@pytest.mark.parametrize("busy", ["command", "model"])
def test_when_the_input_ends_everything_ends(busy: str, place: Place, model: Model, sim: Simulated):
    mark = f"sleep 91{abs(hash(str(place.root))) % 10**8}.5"
    offers = {"_meta": {"terminal_output": True}} if busy == "command" else {}
    agent = Agent(place, "--upstream", sim.upstream(), "--approval-mode", "yolo", offers=offers)
    slow = Reply(pieces=(Say("x" * 500),), fault=Fault(hang_after=2))
    model.say(slow if busy == "model" else calls(shell(f"touch made; {mark}")), "done")
    session = agent.open()
    agent.prompting(session, "go")
    if busy == "model":
        agent.until(lambda: agent.text(session))
    else:
        agent.until(lambda: running(mark))
    code, seconds = agent.close()
    assert code == 0
    assert seconds < 30  # about half a second on an idle machine
    assert wait_until(lambda: not running(mark))
    [stored] = place.toolwire("sessions", "list", "--json").out.splitlines()[:1]
    assert stored


@pytest.mark.sweep
def test_a_cancel_at_any_moment_leaves_a_whole_history_and_no_process(
    place: Place, model: Model, sim: Simulated
):
    mark = f"sleep 92{abs(hash(str(place.root))) % 10**8}.5"
    (place.work / "a.txt").write_text("one\n")
    read = Call.of("read_file", absolute_path=str(place.work / "a.txt"))
    write = Call.of("write_file", file_path=str(place.work / "b.txt"), content="x\n")
    agent = Agent(place, "--upstream", sim.upstream(), "--approval-mode", "auto_edit")
    agent.editor.decide = choosing("once")
    chance = random.Random(7)
    session = agent.open()
    stops: set[str] = set()
    stages = [*("start", "text", "call", "command") * (MOMENTS // 4), "text", "command"]
    chance.shuffle(stages)
    for number, stage in enumerate(stages):
        model.say(
            Reply(pieces=(Say("let me see " * 3), read, write), fault=Fault(wait_each=0.003)),
            calls(shell(f"echo {number}; {mark}"), read),
            "done",
            to=f"go {number}.",
        )
        texts = len(agent.updates(session, "agent_message_chunk"))
        shown = len(agent.updates(session, "tool_call"))
        prompt = agent.prompting(session, f"go {number}.")
        match stage:
            case "text":
                agent.until(lambda n=texts: len(agent.updates(session, "agent_message_chunk")) > n)
            case "call":
                agent.until(lambda n=shown: len(agent.updates(session, "tool_call")) > n)
            case "command":
                agent.until(lambda: running(mark))
            case _:
                pass
        time.sleep(chance.choice((0.0, 0.01, 0.05)) * chance.random())
        agent.cancel(session)
        stops.add(prompt.result(LONGEST)["stopReason"])
        if number % 5 == 4:
            model.say("fine", to="still there?")
            assert agent.prompt(session, "still there?") == "end_turn"
    assert stops == {"cancelled"}
    assert wait_until(lambda: not running(mark))
    assert sim.refusals == []
    agent.ask("session/close", sessionId=session)
    events = stored_sessions(place.environ()).read(session).events
    assert not list(calls_without_result(replay(events).messages))
    started = [one.name for one in events if isinstance(one, ToolStarted)]
    assert started.count("run_shell_command") >= stages.count("command")
    seen = len(agent.messages)
    agent.ask("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])
    states = [one["status"] for one in agent.updates(session, "tool_call")]
    assert len(agent.messages) > seen + MOMENTS
    assert "pending" not in states[-5:]
    validate(agent.messages)
    validate_answers(agent)
    assert agent.close()[0] == 0


def test_a_load_after_a_crash_settles_open_calls(place: Place, model: Model, sim: Simulated):
    mark = f"sleep 93{abs(hash(str(place.root))) % 10**8}.5"
    args = ("--upstream", sim.upstream(), "--approval-mode", "yolo")
    agent = Agent(place, *args)
    session = agent.open()
    model.say(calls(shell(mark)))
    agent.prompting(session, "go")
    agent.until(lambda: running(mark))
    agent.process.send_signal(signal.SIGKILL)
    agent.loop.do(agent.process.wait())
    agent.close()
    assert wait_until(lambda: not running(mark))
    again = Agent(place, *args)
    again.ask("session/load", sessionId=session, cwd=str(place.work), mcpServers=[])
    shown = again.call(session)
    assert shown["states"] == ["pending", "failed"]
    assert "outcome unknown" in shown["rawOutput"]["error"]
    model.say("fine")
    assert again.prompt(session, "and now?") == "end_turn"
    assert sim.refusals == []
    assert again.close()[0] == 0


def test_the_handshake_loads_neither_the_sdk_nor_what_is_not_used(place: Place):
    code = (
        "import sys, json; import toolwire.acp.stdio;"
        "print(json.dumps([m for m in ('pydantic', 'acp', 'mcp', 'rich', 'prompt_toolkit',"
        " 'toolwire.tui', 'toolwire.gateway', 'toolwire.telemetry.reader', 'aiohttp',"
        " 'toolwire.acp.terminals', 'toolwire.app.session', 'toolwire.config')"
        " if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LONGEST
    )
    assert json.loads(done.stdout) == []
