"""The vendors' own SDKs take the simulator for their vendor."""

import asyncio
from typing import Any

import pytest

from tests.fakes.simulated import LONGEST
from toolwire.simulator import Call, Simulator, Think, replies, reply

ANSWER = reply(Think("Hm."), "Hello.", Call.of("f", a=1), Call.of("f", a=2), default=True)


def simulated(scenario: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(LONGEST), Simulator(replies(ANSWER)) as sim:
            await scenario(sim)
            assert sim.refusals == []

    asyncio.run(main())


def test_openai_chat() -> None:
    openai = pytest.importorskip("openai")

    async def scenario(sim: Simulator) -> None:
        async with openai.AsyncOpenAI(base_url=f"{sim.origin}/v1", api_key="k") as client:
            asked: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
            whole = await client.chat.completions.create(**asked)
            async with client.chat.completions.stream(**asked) as stream:
                streamed = await stream.get_final_completion()
            for answer in (whole, streamed):
                message = answer.choices[0].message
                assert message.content == "Hello."
                found = [call.function.arguments for call in message.tool_calls]
                assert found == ['{"a":1}', '{"a":2}']

    simulated(scenario)


def test_openai_responses() -> None:
    openai = pytest.importorskip("openai")

    async def scenario(sim: Simulator) -> None:
        async with openai.AsyncOpenAI(base_url=f"{sim.origin}/v1", api_key="k") as client:
            asked: Any = {"model": "m", "input": "Hi.", "store": False}
            whole = await client.responses.create(**asked)
            async with client.responses.stream(**asked) as stream:
                streamed = await stream.get_final_response()
            for answer in (whole, streamed):
                assert answer.output_text == "Hello."
                kinds = [item.type for item in answer.output]
                assert kinds == ["reasoning", "message", "function_call", "function_call"]
                assert answer.output[0].encrypted_content in sim.seals.issued
            again = [
                {"role": "user", "content": "Hi."},
                *(item.model_dump(exclude_none=True) for item in whole.output),
                *(
                    {"type": "function_call_output", "call_id": item.call_id, "output": "ok"}
                    for item in whole.output[2:]
                ),
            ]
            await client.responses.create(model="m", input=again, store=False)

    simulated(scenario)


def test_anthropic() -> None:
    anthropic = pytest.importorskip("anthropic")

    async def scenario(sim: Simulator) -> None:
        async with anthropic.AsyncAnthropic(base_url=sim.origin, api_key="k") as client:
            messages: Any = [{"role": "user", "content": "Hi."}]
            asked: Any = {"model": "m", "max_tokens": 99, "messages": messages}
            whole = await client.messages.create(**asked)
            async with client.messages.stream(**asked) as stream:
                streamed = await stream.get_final_message()
            for answer in (whole, streamed):
                kinds = [block.type for block in answer.content]
                assert kinds == ["thinking", "text", "tool_use", "tool_use"]
                assert answer.content[0].signature in sim.seals.issued
                assert [block.input for block in answer.content[2:]] == [{"a": 1}, {"a": 2}]
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
                for block in whole.content[2:]
            ]
            said = [block.model_dump(exclude_none=True) for block in whole.content]
            messages += [
                {"role": "assistant", "content": said},
                {"role": "user", "content": results},
            ]
            await client.messages.create(**asked)
            counted = await client.messages.count_tokens(model="m", messages=messages[:1])
            assert counted.input_tokens > 0

    simulated(scenario)


def test_google() -> None:
    genai = pytest.importorskip("google.genai")

    async def scenario(sim: Simulator) -> None:
        options = genai.types.HttpOptions(base_url=sim.origin)
        client = genai.Client(api_key="k", http_options=options).aio
        whole = await client.models.generate_content(model="gemini-3-pro", contents="Hi.")
        said = whole.candidates[0].content
        calls = [part.function_call.args for part in said.parts if part.function_call]
        assert calls == [{"a": 1}, {"a": 2}]
        streamed: list[Any] = []
        answer = await client.models.generate_content_stream(model="gemini-3-pro", contents="Hi.")
        async for chunk in answer:
            streamed += chunk.candidates[0].content.parts
        assert "".join(p.text for p in streamed if p.text and not p.thought) == "Hello."
        user = genai.types.Content(role="user", parts=[genai.types.Part(text="Hi.")])
        response = genai.types.Part.from_function_response(name="f", response={"output": "ok"})
        results = genai.types.Content(role="user", parts=[response, response])
        await client.models.generate_content(model="gemini-3-pro", contents=[user, said, results])

    simulated(scenario)
