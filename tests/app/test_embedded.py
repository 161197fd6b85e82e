import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client.stand_in import stand_in
from toolwire.agent.events import AgentEvent, Noticed, Streaming, reader_of
from toolwire.app.builder import open_session
from toolwire.app.model_choice import Chosen, choose_here, choose_model
from toolwire.app.model_stack import shown_small
from toolwire.app.options import SessionOptions
from toolwire.app.session_parts import cautious
from toolwire.client.http.transport import HttpTransport, Incoming, Outgoing
from toolwire.config import Settings
from toolwire.embedded.catalogue import MODELS
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import Finished, ModelEvent, Notice, StopReason, TextDelta
from toolwire.messages import Message, Text
from toolwire.policy import Mode
from toolwire.request import ModelRequest
from toolwire.tools.registry import builtins

NOWHERE = "http://127.0.0.1:9"
NO_SERVERS = {
    "OLLAMA_HOST": NOWHERE,
    "TOOLWIRE_LMSTUDIO_BASE_URL": NOWHERE,
    "TOOLWIRE_LLAMACPP_BASE_URL": NOWHERE,
}


def chosen(environ: dict[str, str], choose: Callable[[], Chosen] | None = None) -> Chosen:
    settings = Settings()

    async def go() -> Chosen:
        transport = HttpTransport()
        try:
            return await choose_here(
                choose or (lambda: choose_model(settings, environ)), settings, environ, transport
            )
        finally:
            await transport.aclose()

    return asyncio.run(go())


def test_what_is_configured_is_taken_without_looking_around():
    with stand_in() as server:
        server.on("/v1/models", (200, {"data": [{"id": "mine"}]}))
        found = chosen(NO_SERVERS | {"OLLAMA_HOST": server.url, "GROQ_API_KEY": "k"})
        assert found.name.startswith("groq/")
        assert server.asked == []


def test_a_running_server_comes_before_the_embedded_model():
    with stand_in() as server:
        server.on("/v1/models", (200, {"data": [{"id": "mine"}]}))
        found = chosen(NO_SERVERS | {"OLLAMA_HOST": server.url})
    assert found.name == "ollama/mine"
    assert found.reason == "nothing is configured, and Ollama runs on this machine"


def test_with_nothing_at_all_the_embedded_model_is_the_choice():
    found = chosen(NO_SERVERS)
    provider, _, model = found.name.partition("/")
    assert provider == "local"
    assert model in MODELS


def test_another_failure_is_not_taken_for_an_absent_model():
    def choose() -> Chosen:
        raise ProviderError(ErrorKind.SERVER, "down")

    with pytest.raises(ProviderError, match="down"):
        chosen(NO_SERVERS, choose)


@pytest.mark.parametrize("mode", Mode)
def test_a_small_model_never_changes_anything_unasked(mode: Mode):
    told: list[str] = []
    kept = mode in (Mode.DEFAULT, Mode.PLAN)
    assert cautious(mode, told.append) is (mode if kept else Mode.DEFAULT)
    assert bool(told) is not kept


def test_the_files_of_the_folder_are_the_choices(tmp_path: Path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("out\n")
    (tmp_path / "out").write_text("")
    asked: list[ModelRequest] = []

    async def model(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        asked.append(request)
        yield TextDelta('{"reply": "hi"}')
        yield Finished(reason=StopReason.END)

    request = ModelRequest(
        model="m",
        messages=(Message(role="user", parts=(Text("hello"),)),),
        tools=builtins().specs(),
    )

    async def go() -> None:
        async for _ in shown_small(model, tmp_path, {"HOME": str(tmp_path)})(request):
            pass

    asyncio.run(go())
    kind, answer = asked
    assert kind.system == answer.system
    output = answer.output
    assert output is not None
    assert '"enum": [".gitignore", "src/a.py"]' in json.dumps(output.schema)
    assert '"enum": [".", "src"]' in json.dumps(output.schema)


class Line:
    """A server that says it is reading, then replies; it remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        self.asked.append(json.loads(request.body))

        async def chunks() -> AsyncGenerator[bytes]:
            reading = {"choices": [], "prompt_progress": {"total": 9, "processed": 4}}
            delta = {"content": '{"reply": "hi"}'}
            said = {"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]}
            for frame in (reading, said):
                yield f"data: {json.dumps(frame)}\n\n".encode()

        yield Incoming(status=200, headers={}, chunks=chunks())


def test_a_session_with_a_small_model_is_short_and_careful(tmp_path: Path):
    (tmp_path / "a.py").write_text("")
    line = Line()
    events: list[AgentEvent] = []

    async def hear(event: AgentEvent) -> None:
        events.append(event)

    async def go() -> Mode:
        options = SessionOptions(
            model="local/qwen2.5-coder-1.5b",
            base_url="http://127.0.0.1:1/v1",
            kept=False,
        )
        environ = {"HOME": str(tmp_path), "TOOLWIRE_HOME": str(tmp_path / "home")}
        async with open_session(
            options,
            settings=Settings(approval_mode=Mode.YOLO),
            environ=environ,
            cwd=tmp_path,
            readers=(reader_of(hear),),
            transport=line,
        ) as session:
            await session.send(Message(role="user", parts=(Text("hello"),)))
            return session.toolbox.policy.terms.mode

    assert asyncio.run(go()) is Mode.DEFAULT
    system, asked = line.asked[-1]["messages"]
    assert system["content"].startswith("You help a person")
    assert asked["content"] == "Files: a.py\n\nRequest: hello"
    assert Streaming(Notice("reading", "4 of 9 tokens read")) in events
    assert not [it for it in events if isinstance(it, Noticed) and it.kind == "reading"]


@pytest.mark.parametrize("mode", Mode)
def test_a_mode_chosen_for_the_session_is_in_force_with_a_small_model_too(
    tmp_path: Path, mode: Mode
):
    async def go() -> tuple[Mode, Mode, Mode]:
        options = SessionOptions(
            model="local/qwen2.5-coder-1.5b",
            base_url="http://127.0.0.1:1/v1",
            mode=mode,
            kept=False,
        )
        environ = {"HOME": str(tmp_path), "TOOLWIRE_HOME": str(tmp_path / "home")}
        async with open_session(
            options, settings=Settings(), environ=environ, cwd=tmp_path, transport=Line()
        ) as session:
            first = session.mode
            await session.change_model("local/qwen2.5-coder-0.5b")
            second = session.mode
            await session.set_mode(Mode.AUTO_EDIT)
            return first, second, session.toolbox.policy.terms.mode

    assert asyncio.run(go()) == (mode, mode, Mode.AUTO_EDIT)
