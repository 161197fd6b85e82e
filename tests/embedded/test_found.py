import asyncio
import json
import threading
from collections.abc import Generator

import pytest

from tests.client.stand_in import Asked, StandIn, stand_in
from toolwire.client.http.transport import HttpTransport
from toolwire.embedded.machine import FoundServer, find_server

NOWHERE = "http://127.0.0.1:9"
MODELS = "/v1/models"


@pytest.fixture
def server() -> Generator[StandIn]:
    with stand_in() as found:
        yield found


def look(patience: float = 20.0, **addresses: str) -> FoundServer | None:
    environ = {f"TOOLWIRE_{name}_BASE_URL": NOWHERE for name in ("LMSTUDIO", "LLAMACPP")}
    environ["OLLAMA_HOST"] = NOWHERE
    environ |= addresses

    async def go() -> FoundServer | None:
        transport = HttpTransport()
        try:
            return await find_server(transport, environ, patience)
        finally:
            await transport.aclose()

    return asyncio.run(go())


def listing(*models: str) -> tuple[int, bytes]:
    return 200, json.dumps({"object": "list", "data": [{"id": name} for name in models]}).encode()


def test_without_servers_nothing_is_found():
    assert look() is None


def test_a_running_server_is_named_with_a_model_of_its_own(server: StandIn):
    server.on(MODELS, listing("mine:7b"))
    assert look(OLLAMA_HOST=server.url) == FoundServer(
        provider="ollama", title="Ollama", model="mine:7b", url=f"{server.url}/v1"
    )


def test_a_model_known_to_call_tools_comes_before_others(server: StandIn):
    server.on(MODELS, listing("nomic-embed-text", "mine:7b", "qwen3:8b"))
    found = look(OLLAMA_HOST=server.url)
    assert found is not None
    assert found.name == "ollama/qwen3:8b"


def test_the_servers_have_an_order(server: StandIn):
    server.on(MODELS, listing("one"))
    both = {f"TOOLWIRE_{name}_BASE_URL": f"{server.url}/v1" for name in ("LMSTUDIO", "LLAMACPP")}
    found = look(20.0, **both)
    assert found is not None
    assert found.provider == "lmstudio"


@pytest.mark.parametrize(
    "answer", [listing(), listing("text-embedding-3"), (500, b"{}"), (200, b"<html>"), (404, b"")]
)
def test_a_server_that_offers_nothing_to_talk_to_is_passed_over(
    server: StandIn, answer: tuple[int, bytes]
):
    server.on(MODELS, answer)
    assert look(OLLAMA_HOST=server.url) is None


def test_a_silent_server_is_not_waited_for(server: StandIn):
    asked, over = threading.Event(), threading.Event()

    def silent(request: Asked) -> tuple[int, bytes]:
        del request
        asked.set()
        over.wait(30)
        return listing("late")

    server.decide(MODELS, silent)
    try:
        assert look(patience=0.3, OLLAMA_HOST=server.url) is None
    finally:
        over.set()


def test_only_this_machine_is_asked(server: StandIn):
    server.on(MODELS, listing("mine"))
    elsewhere = server.url.replace("127.0.0.1", "192.0.2.1")
    assert look(OLLAMA_HOST=elsewhere) is None
    assert server.asked == []
