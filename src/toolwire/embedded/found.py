"""Detection of model servers on this machine, in parallel and with a short timeout."""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from toolwire import providers
from toolwire.client.http.transport import Outgoing, Transport
from toolwire.errors import ToolwireError
from toolwire.providers import catalogue
from toolwire.providers._spec import Provider
from toolwire.providers.addresses import address

SERVERS = ("ollama", "lmstudio", "llamacpp")
"""In order of preference."""
PATIENCE = 0.3
"""Seconds for all of them together; a server of this machine needs a few milliseconds."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MOST = 1024 * 1024


class FoundServer(msgspec.Struct, frozen=True, kw_only=True):
    """A running server and one of its models."""

    provider: str
    title: str
    model: str
    url: str

    @property
    def name(self) -> str:
        """The full model name."""
        return f"{self.provider}/{self.model}"


class _Model(msgspec.Struct):
    id: str = ""


class _Models(msgspec.Struct):
    data: list[_Model] = []


_read = msgspec.json.Decoder(_Models).decode


async def find(
    transport: Transport, environ: Mapping[str, str], patience: float = PATIENCE
) -> FoundServer | None:
    """The first known server that runs and has a model; None if there is none."""
    async with asyncio.TaskGroup() as group:
        probes = [
            group.create_task(_ask(providers.get(name), transport, environ, patience))
            for name in SERVERS
        ]
    return next((found for task in probes if (found := task.result()) is not None), None)


async def _ask(
    provider: Provider, transport: Transport, environ: Mapping[str, str], patience: float
) -> FoundServer | None:
    body = bytearray()
    try:
        url = address(provider, environ)
        if urlsplit(url).hostname not in _LOOPBACK:
            return None
        async with (
            asyncio.timeout(patience),
            transport.open(Outgoing(method="GET", url=f"{url}/models")) as answer,
        ):
            async for chunk in answer.chunks:
                body += chunk
                if len(body) > _MOST:
                    return None
            models = _read(body).data if answer.status == 200 else []
    except (ToolwireError, TimeoutError, msgspec.MsgspecError):
        return None
    model = _choice(provider, [it.id for it in models])
    if not model:
        return None
    return FoundServer(provider=provider.name, title=provider.title, model=model, url=url)


def _choice(provider: Provider, models: list[str]) -> str:
    """A model known to call tools, else the first chat model."""
    talking = [model for model in models if model and "embed" not in model.lower()]
    infos = ((model, catalogue.find(provider.name, model)) for model in talking)
    able = (model for model, info in infos if info is not None and info.tools)
    return next(able, talking[0] if talking else "")
