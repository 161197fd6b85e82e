import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.client.stand_in import stand_in
from toolwire.agent.rules import Mode
from toolwire.app.choosing import Chosen, choose_model
from toolwire.app.embedded import cautious, choose_here, shown_small
from toolwire.client.transport import HttpTransport
from toolwire.config import Settings
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import Finished, ModelEvent, StopReason, TextDelta
from toolwire.local.catalogue import MODELS
from toolwire.messages import Message, Text
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
        tools=builtins({}).specs(),
    )

    async def go() -> None:
        async for _ in shown_small(model, tmp_path, {"HOME": str(tmp_path)})(request):
            pass

    asyncio.run(go())
    output = asked[0].output
    assert output is not None
    assert '"enum": [".gitignore", "src/a.py"]' in json.dumps(output.schema)
    assert '"enum": [".", "src"]' in json.dumps(output.schema)
