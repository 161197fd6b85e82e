import asyncio
import hashlib
import json
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import jsonschema_rs
import msgspec
import pytest

from tests.embedded.tiny_gguf import tiny_gguf
from tests.embedded.tiny_home import (
    CHAT,
    SYSTEM,
    TINY,
    YES_OR_NO,
    Home,
    asked,
    embedded,
    heard,
    model_of,
    new_home,
    on,
    reading,
    request,
    text,
)
from toolwire.agent.events import AgentEvent, ToolFinished, TurnEnd
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.turn import run_turn
from toolwire.agent.usage import Limits
from toolwire.client.http.transport import HttpTransport, Outgoing
from toolwire.embedded.engine import EmbeddedTransport, Engine, await_rest, start
from toolwire.embedded.machine import Sizes
from toolwire.errors import BadInput
from toolwire.events import Finished, ModelEvent, Notice, StopReason, TextDelta
from toolwire.ids import new_id
from toolwire.messages import Outcome
from toolwire.prompted.json import wrap
from toolwire.request import JsonObject, ToolChoice
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolOutput, Workspace

pytestmark = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An engine stays for as long as the process: where a used one will do, this one is used."""
    return new_home(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return new_home(tmp_path)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tmp_path_factory.mktemp("engine")
    file = new_home(folder).file
    return start(file, Sizes(threads=1, context=256), folder / "states", "tiny")


@pytest.mark.parametrize(
    "schema",
    [
        YES_OR_NO,
        {"type": "integer", "minimum": 10, "maximum": 99},
        {
            "type": "object",
            "properties": {
                "tool": {"const": "read_file"},
                "lines": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
                "path": {"type": "string", "maxLength": 4},
            },
            "required": ["tool", "lines", "path"],
            "additionalProperties": False,
        },
    ],
    ids=["enum", "integer", "object"],
)
def test_an_answer_keeps_to_the_schema_whatever_the_weights_say(shared: Home, schema: JsonObject):
    events, _ = asked(shared, request(schema=schema))
    jsonschema_rs.validate(schema, json.loads(text(events)))
    last = events[-1]
    assert isinstance(last, Finished)
    assert (last.reason, last.model) == (StopReason.END, "tiny")


def test_without_a_schema_the_same_weights_speak_noise(shared: Home):
    events, _ = asked(shared, request(schema=None))
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(text(events))


def test_the_model_is_loaded_once_for_all_who_ask_at_the_same_time(home: Home):
    async def go() -> tuple[list[str], set[str]]:
        async with embedded(home) as (one, sent), embedded(home) as (other, more):
            both = await asyncio.gather(*(heard(way, request()) for way in (one, other, one)))
            return [text(events) for events in both], sent.servers | more.servers

    answers, servers = asyncio.run(go())
    assert set(answers) <= {'"yes"', '"no"'}
    assert len(servers) == 1


def test_what_one_process_read_is_given_to_the_engine_of_the_next(home: Home):
    wanted = request(system=SYSTEM)
    first, sent = asked(home, wanted)
    assert sent.targets == [CHAT, "/slots/0?action=save", CHAT]
    (state,) = home.states
    second, sent = asked(home.next_process(), wanted)
    assert sent.targets == ["/slots/0?action=restore", CHAT]
    assert json.loads(sent.sent[0].body) == {"filename": state.name}
    assert text(second) == text(first)
    assert reading(first)[0][0] < 100
    # All but the question and the words around it.
    assert reading(second)[0][0] > len(SYSTEM)
    assert home.states == [state]


def cut(state: Path) -> None:
    state.write_bytes(state.read_bytes()[:-1])


def changed(state: Path) -> None:
    content = state.read_bytes()
    state.write_bytes(content[:-64] + bytes(64))


def of_another_build(state: Path) -> None:
    """Whole, but nothing that llama.cpp takes."""
    content = b"of another build"
    known = state.name.partition("-")[0]
    state.unlink()
    (state.parent / f"{known}-{hashlib.sha256(content).hexdigest()}.state").write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "slots"),
    [(cut, ["save"]), (changed, ["save"]), (of_another_build, ["restore", "save"])],
)
def test_a_state_that_is_no_good_is_removed_and_read_again(
    home: Home, damage: Callable[[Path], None], slots: list[str]
):
    wanted = request(system=SYSTEM)
    first, _ = asked(home, wanted)
    (state,) = home.states
    damage(state)
    (bad,) = home.states
    content = bad.read_bytes()
    second, sent = asked(home.next_process(), wanted)
    actions = [target.partition("action=")[2] for target in sent.targets if "action" in target]
    assert actions == slots
    assert text(second) == text(first)
    assert reading(second)[0][0] < 100
    (made,) = home.states
    assert made.read_bytes() != content
    assert asked(home.next_process(), wanted)[1].targets == ["/slots/0?action=restore", CHAT]


def test_the_reading_of_a_long_prompt_is_reported_as_it_goes_on(shared: Home):
    said = "Every word takes a while. " * 40
    events, _ = asked(shared, request(said))
    told = reading(events)
    (total,) = {of for _, of in told}
    done = [read for read, _ in told]
    assert done == sorted(set(done))
    assert len(done) > len(said) // 128
    assert done[-1] == total
    first_words = next(n for n, event in enumerate(events) if isinstance(event, TextDelta))
    assert all(not isinstance(event, Notice) for event in events[first_words:])


@pytest.mark.parametrize("shown", ["Bearer wrong", ""])
@pytest.mark.parametrize("path", [CHAT, "/slots/0?action=save"])
def test_who_does_not_know_the_key_is_refused(engine: Engine, shown: str, path: str):
    headers = (("authorization", shown), ("content-type", "application/json"))
    body = b'{"messages": [{"role": "user", "content": "hi"}], "filename": "stolen"}'

    async def go() -> int:
        transport = HttpTransport(env_proxies=False)
        sent = Outgoing(
            method="POST",
            url=f"{engine.address}{path}",
            headers=headers if shown else headers[1:],
            body=body,
        )
        try:
            async with transport.open(sent) as incoming:
                return incoming.status
        finally:
            await transport.aclose()

    assert asyncio.run(go()) == 401


def test_the_engine_listens_on_one_loopback_address_alone(engine: Engine):
    address = urlsplit(engine.address)
    assert (address.scheme, address.hostname) == ("http", "127.0.0.1")
    with socket.socket() as other:
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.2", address.port or 0)) != 0


@pytest.mark.parametrize("until", [b"prompt_progress", b'"content":"'], ids=["reading", "answer"])
def test_an_abandoned_stream_leaves_the_engine_to_the_next_request(home: Home, until: bytes):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Go on."}]
    endless = {"messages": messages, "stream": True, "ignore_eos": True, "max_tokens": 3000}

    async def use(transport: EmbeddedTransport) -> list[ModelEvent]:
        body = json.dumps(endless).encode()
        sent = Outgoing(method="POST", url=f"http://127.0.0.1:0{CHAT}", body=body)
        async with transport.open(sent) as incoming:
            got = b""
            async for chunk in incoming.chunks:
                got += chunk
                if until in got:
                    break
        assert until in got
        assert b"[DONE]" not in got
        return await heard(transport, request(system=SYSTEM))

    after, _ = on(home, use)
    fresh, _ = asked(home.next_process(), request(system=SYSTEM))
    assert text(after) == text(fresh)
    assert text(after) in ('"yes"', '"no"')


LEFT = """
import sys, urllib.request
from pathlib import Path
from toolwire.embedded.engine import start
from toolwire.embedded.machine import Sizes

sizes, states = Sizes(threads=1, context=4096), Path(sys.argv[1]).parent / "states"
engine = start(Path(sys.argv[1]), sizes, states, "tiny")
body = b'{"messages": [{"role": "user", "content": "go on"}], "stream": true, '
body += b'"ignore_eos": true, "max_tokens": 4000}'
headers = {"authorization": f"Bearer {engine.key}", "content-type": "application/json"}
answer = urllib.request.urlopen(urllib.request.Request(f"{engine.address}%s", body, headers))
print(answer.readline()[:5])
del engine
start(Path(sys.argv[1]), sizes, states, "tiny")
"""


def test_a_process_ends_whatever_its_engines_are_doing(home: Home):
    command = [sys.executable, "-c", LEFT % CHAT, str(home.file)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "b'data:'\n", "")


def test_the_end_of_a_process_waits_until_nothing_is_computed_any_more(home: Home):
    engine = start(home.file, Sizes(threads=1, context=2048), home.file.parent / "states", "tiny")
    headers = {"authorization": f"Bearer {engine.key}", "content-type": "application/json"}
    endless = {"messages": [{"role": "user", "content": "Go on."}], "stream": True}
    body = json.dumps({**endless, "ignore_eos": True, "max_tokens": 1500}).encode()

    def busy() -> bool:
        with urlopen(Request(f"{engine.address}/slots", headers=headers)) as answer:
            return any(slot["is_processing"] for slot in json.load(answer))

    with urlopen(Request(engine.address + CHAT, body, headers)) as answer:
        assert answer.readline().startswith(b"data:")
        assert busy()
        await_rest(engine)
        assert not busy()


def test_a_file_with_other_weights_never_reaches_the_engine(home: Home):
    home.file.write_bytes(tiny_gguf(seed=2))
    with pytest.raises(BadInput, match="its SHA-256 is"):
        asked(home, request())
    assert not (home.file.parent / "cache" / "prefixes").exists()


def test_the_engine_prints_nothing(home: Home, capfd: pytest.CaptureFixture[str]):
    asked(home, request(system=SYSTEM))
    assert capfd.readouterr() == ("", "")


class Allow(msgspec.Struct, frozen=True):
    decision: str = "allow"
    reason: str = ""


def looking(seen: list[JsonObject]) -> Tool:
    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        seen.append(arguments)
        return ToolOutput(text="nothing there")

    choices = {"enum": ["src", "tests", "docs"]}
    shape = {"type": "object", "properties": {"where": choices}, "required": ["where"]}
    return Tool(name="look", description="Look.", parameters=shape, effect=Effect.READ, run=run)


def test_the_agent_runs_what_the_engine_calls_and_asks_it_on(shared: Home, tmp_path: Path):
    seen: list[JsonObject] = []
    events: list[AgentEvent] = []

    async def keep(event: AgentEvent) -> None:
        events.append(event)

    async def use(transport: EmbeddedTransport) -> None:
        registry = Registry((looking(seen),))
        place = Workspace(roots=(tmp_path,), temp=tmp_path, home=tmp_path)
        scheduler = Scheduler(
            registry,
            context=ToolContext(workspace=place),
            policy=lambda *_: Allow(),
            emit=keep,
        )
        wanted = msgspec.structs.replace(
            request("Look around.", schema=None),
            tools=registry.specs(),
            tool_choice=ToolChoice(mode="required"),
        )
        ended = await run_turn(
            wanted,
            model=wrap(model_of(transport), new_id),
            scheduler=scheduler,
            limits=Limits(turns=2),
        )
        assert ended.reason == TurnEnd.TURN_LIMIT

    on(shared, use)
    assert len(seen) == 2
    assert all(arguments["where"] in ("src", "tests", "docs") for arguments in seen)
    finished = [event for event in events if isinstance(event, ToolFinished)]
    assert [(event.name, event.outcome) for event in finished] == [("look", Outcome.DONE)] * 2


def test_the_file_is_small_and_the_same_each_time():
    assert tiny_gguf() == TINY
    assert len(TINY) < 1_000_000
    assert tiny_gguf(seed=2) != TINY
