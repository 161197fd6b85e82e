"""Every reader of a stream over loopback: ours, floor and bytes on two transports, and peers."""

import json
import os
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from typing import Any

Open = Callable[[str], AsyncIterator[object]]
"""Ask this model and read its answer."""

_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
}
_KEY = "sk-bench"


_PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/{model}:streamGenerateContent?alt=sse",
}


def _asked(base: str, stream: str, model: str) -> tuple[str, dict[str, str], bytes]:
    """Address, headers and body of the request that all on one transport send."""
    url = base + _PATHS[stream.partition("-")[0]].replace("{model}", model)
    headers = {"content-type": "application/json", "authorization": f"Bearer {_KEY}"}
    return url, headers, json.dumps({"model": model, "stream": True}).encode()


def _aiohttp(base: str, stream: str) -> Callable[[str], Any]:
    """One request on aiohttp, used as documented."""
    import aiohttp

    sessions: list[aiohttp.ClientSession] = []

    def post(model: str) -> Any:
        if not sessions:
            sessions.append(aiohttp.ClientSession())
        url, headers, body = _asked(base, stream, model)
        return sessions[0].post(url, data=body, headers=headers)

    return post


def _our_http(base: str, stream: str) -> Callable[[str], Any]:
    """One request on our own transport."""
    from toolwire.client.http.transport import HttpTransport, Outgoing

    transport = HttpTransport()

    def post(model: str) -> Any:
        url, headers, body = _asked(base, stream, model)
        sent = tuple(headers.items())
        return transport.open(Outgoing(method="POST", url=url, headers=sent, body=body))

    return post


def _aiohttp_bytes(base: str, stream: str) -> Open:
    post = _aiohttp(base, stream)

    async def chunks(model: str) -> AsyncIterator[bytes]:
        async with post(model) as response:
            read = response.content.readany
            while chunk := await read():
                yield chunk

    return chunks


def _bytes(base: str, stream: str) -> Open:
    post = _our_http(base, stream)

    async def chunks(model: str) -> AsyncIterator[bytes]:
        async with post(model) as incoming:
            async for chunk in incoming.chunks:
                yield chunk

    return chunks


def _aiohttp_floor(base: str, stream: str) -> Open:
    from bench import floor

    post = _aiohttp(base, stream)
    wire = stream.partition("-")[0]

    async def events(model: str) -> AsyncIterator[object]:
        feed = floor.feeder(wire)
        async with post(model) as response:
            read = response.content.readany
            while chunk := await read():
                for event in feed(chunk):
                    yield event

    return events


def _floor(base: str, stream: str) -> Open:
    from bench import floor

    post = _our_http(base, stream)
    wire = stream.partition("-")[0]

    async def events(model: str) -> AsyncIterator[object]:
        feed = floor.feeder(wire)
        async with post(model) as incoming:
            async for chunk in incoming.chunks:
                for event in feed(chunk):
                    yield event

    return events


def _aiohttp_ours(base: str, stream: str) -> Open:
    from bench import ours

    post = _aiohttp(base, stream)
    wire = stream.partition("-")[0]

    async def events(model: str) -> AsyncIterator[object]:
        sse, decoder = ours.fresh(wire)
        split, feed = sse.feed, decoder.feed
        async with post(model) as response:
            read = response.content.readany
            while chunk := await read():
                for frame in split(chunk):
                    for event in feed(frame):
                        yield event
        for event in ours.ending(sse, decoder):
            yield event

    return events


def _ours(base: str, stream: str) -> Open:
    from bench import ours

    post = _our_http(base, stream)
    wire = stream.partition("-")[0]

    async def events(model: str) -> AsyncIterator[object]:
        sse, decoder = ours.fresh(wire)
        split, feed = sse.feed, decoder.feed
        async with post(model) as incoming:
            async for chunk in incoming.chunks:
                for frame in split(chunk):
                    for event in feed(frame):
                        yield event
        for event in ours.ending(sse, decoder):
            yield event

    return events


def _openai(base: str, stream: str) -> Open:
    import openai

    client = openai.AsyncOpenAI(base_url=f"{base}/v1", api_key=_KEY, max_retries=0)
    tools = stream.endswith("tools")
    function = {"name": "write_file", "parameters": _SCHEMA}

    async def chat(model: str) -> AsyncIterator[object]:
        options: dict[str, Any] = (
            {"tools": [{"type": "function", "function": function}]} if tools else {}
        )
        messages: Any = [{"role": "user", "content": "hi"}]
        answer = await client.chat.completions.create(
            model=model, messages=messages, stream=True, **options
        )
        async for chunk in answer:
            yield chunk

    async def responses(model: str) -> AsyncIterator[object]:
        options: dict[str, Any] = (
            {"tools": [{"type": "function", "strict": False, **function}]} if tools else {}
        )
        answer = await client.responses.create(model=model, input="hi", stream=True, **options)
        async for event in answer:
            yield event

    return chat if stream.startswith("chat") else responses


def _anthropic(base: str, stream: str) -> Open:
    import anthropic

    client = anthropic.AsyncAnthropic(base_url=base, api_key=_KEY, max_retries=0)
    options: dict[str, Any] = (
        {"tools": [{"name": "write_file", "input_schema": _SCHEMA}]}
        if stream.endswith("tools")
        else {}
    )

    async def events(model: str) -> AsyncIterator[object]:
        answer = await client.messages.create(
            model=model,
            messages=[{"role": "user", "content": "hi"}],
            max_tokens=4096,
            stream=True,
            **options,
        )
        async for event in answer:
            yield event

    return events


def _google(base: str, stream: str) -> Open:
    from google import genai
    from google.genai.types import HttpOptions

    client = genai.Client(api_key=_KEY, http_options=HttpOptions(base_url=base))

    async def chunks(model: str) -> AsyncIterator[object]:
        answer = await client.aio.models.generate_content_stream(model=model, contents="hi")
        async for chunk in answer:
            yield chunk

    return chunks


def _pydantic_ai(base: str, stream: str) -> Open:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    from bench.pydantic_ai_models import connect

    wire = stream.partition("-")[0]
    models: dict[str, Model] = {}
    tools = [ToolDefinition(name="write_file", parameters_json_schema=_SCHEMA)]
    parameters = ModelRequestParameters(
        function_tools=tools if stream.endswith("tools") else [], allow_text_output=True
    )

    async def events(model: str) -> AsyncIterator[object]:
        prompt = ModelRequest.user_text_prompt("hi")
        if model not in models:
            models[model] = connect(base, wire, model, _KEY)
        async with model_request_stream(
            models[model], [prompt], model_request_parameters=parameters
        ) as answer:
            async for event in answer:
                yield event

    return events


def _litellm(base: str, stream: str) -> Open:
    # Its table of prices is else fetched from the network at import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm: Any = import_module("litellm")
    litellm.suppress_debug_info = True
    wire = stream.partition("-")[0]
    function = {"name": "write_file", "parameters": _SCHEMA}
    options: dict[str, Any] = (
        {"tools": [{"type": "function", "function": function}]} if stream.endswith("tools") else {}
    )
    vendors = {"chat": "openai", "anthropic": "anthropic", "gemini": "gemini"}

    async def chunks(model: str) -> AsyncIterator[object]:
        addresses = {
            "chat": f"{base}/v1",
            "anthropic": base,
            "gemini": f"{base}/v1beta/models/{model}",
        }
        answer: Any = await litellm.acompletion(
            model=f"{vendors[wire]}/{model}",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            api_base=addresses[wire],
            api_key=_KEY,
            num_retries=0,
            stream_options={"include_usage": True},
            **options,
        )
        async for chunk in answer:
            yield chunk

    return chunks


PEERS: dict[str, Callable[[str, str], Open]] = {
    "bytes": _bytes,
    "floor": _floor,
    "ours": _ours,
    "aiohttp bytes": _aiohttp_bytes,
    "aiohttp floor": _aiohttp_floor,
    "aiohttp ours": _aiohttp_ours,
    "openai": _openai,
    "anthropic": _anthropic,
    "google-genai": _google,
    "pydantic-ai": _pydantic_ai,
    "litellm": _litellm,
}
