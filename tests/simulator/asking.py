"""Plain HTTP for tests of the simulator: bodies as a client would write them, no code of ours."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import ClientSession

from tests.fakes.simulated import LONGEST
from toolwire.simulator import Simulator

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent",
    "code-assist": "/v1internal:generateContent",
}
STREAMS = {
    **PATHS,
    "gemini": "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
    "code-assist": "/v1internal:streamGenerateContent?alt=sse",
}
VERSION = {"anthropic-version": "2023-06-01"}


def question(dialect: str, text: str = "Hi.", **more: Any) -> dict[str, Any]:
    """A request body that says one thing."""
    match dialect:
        case "openai-chat":
            return {"model": "m", "messages": [{"role": "user", "content": text}], **more}
        case "openai-responses":
            return {"model": "m", "input": [{"role": "user", "content": text}], **more}
        case "anthropic-messages":
            messages = [{"role": "user", "content": text}]
            return {"model": "m", "max_tokens": 100, "messages": messages, **more}
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}
        case _:
            return {"model": "gemini-3-pro", "request": question("gemini", text, **more)}


class Asker:
    """Posts to a simulator."""

    def __init__(self, sim: Simulator, session: ClientSession) -> None:
        self.sim = sim
        self.session = session

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, bytes]:
        """Status and body of the answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"content-type": "application/json", **VERSION, **headers}
        async with self.session.post(self.sim.origin + path, data=data, headers=sent) as response:
            return response.status, await response.read()

    async def ask(self, dialect: str, body: Any) -> tuple[int, dict[str, Any]]:
        """The whole answer in one dialect."""
        status, data = await self.post(PATHS[dialect], body)
        return status, json.loads(data)


def asking(script: Any, scenario: Callable[[Asker], Awaitable[None]], **more: Any) -> None:
    """Runs a scenario before a fresh simulator."""

    async def main() -> None:
        async with (
            asyncio.timeout(LONGEST),
            Simulator(script, **more) as sim,
            ClientSession() as session,
        ):
            await scenario(Asker(sim, session))

    asyncio.run(main())
