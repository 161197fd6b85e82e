"""A conversation that a vendor would refuse is refused, in the vendor's words."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.simulator.asking import Asker, asking, question
from toolwire.simulator import Call, Demands, Think, reply

Body = dict[str, Any]
CALLS = reply(Think("I look."), "Looking.", Call.of("f", a=1), Call.of("g"))


async def first_answer(asker: Asker, dialect: str) -> Body:
    body = question(dialect)
    if dialect == "openai-responses":
        body |= {"store": False, "include": ["reasoning.encrypted_content"]}
    status, answer = await asker.ask(dialect, body)
    assert status == 200
    return answer


def chat(answer: Body) -> Body:
    """The second request of a well-behaved client."""
    message = answer["choices"][0]["message"]
    kept = ("role", "content", "tool_calls", "reasoning_content")
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
        for call in message["tool_calls"]
    ]
    said = {key: message[key] for key in kept}
    return {"model": "m", "messages": [{"role": "user", "content": "Hi."}, said, *results]}


def responses(answer: Body) -> Body:
    results = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
        for item in answer["output"]
        if item["type"] == "function_call"
    ]
    return {
        "model": "m",
        "input": [{"role": "user", "content": "Hi."}, *answer["output"], *results],
    }


def anthropic(answer: Body) -> Body:
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "ok"}
        for block in answer["content"]
        if block["type"] == "tool_use"
    ]
    return {
        "model": "m",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": results},
        ],
    }


def gemini(answer: Body) -> Body:
    said = answer["candidates"][0]["content"]
    results = [
        {"functionResponse": {"name": part["functionCall"]["name"], "response": {"output": "ok"}}}
        for part in said["parts"]
        if "functionCall" in part
    ]
    user = {"role": "user", "parts": [{"text": "Hi."}]}
    return {"contents": [user, said, {"role": "user", "parts": results}]}


def code_assist(answer: Body) -> Body:
    return {"model": "gemini-3-pro", "request": gemini(answer["response"])}


FOLLOWS: dict[str, Callable[[Body], Body]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic-messages": anthropic,
    "gemini": gemini,
    "code-assist": code_assist,
}


@pytest.mark.parametrize("dialect", FOLLOWS)
def test_a_conversation_in_order_is_taken(dialect: str) -> None:
    async def scenario(asker: Asker) -> None:
        body = FOLLOWS[dialect](await first_answer(asker, dialect))
        status, answer = await asker.ask(dialect, body)
        assert (status, asker.sim.refusals) == (200, []), answer

    asking([CALLS, reply("Done.")], scenario)


def test_ids_that_a_gemini_client_invents_for_calls_and_results_are_taken() -> None:
    async def scenario(asker: Asker) -> None:
        body = gemini(await first_answer(asker, "gemini"))
        _, said, results = body["contents"]
        calls = [part["functionCall"] for part in said["parts"] if "functionCall" in part]
        assert not any("id" in call for call in calls)
        for number, (call, part) in enumerate(zip(calls, results["parts"], strict=True)):
            call["id"] = part["functionResponse"]["id"] = f"{call['name']}_1794823378142_{number}"
        status, answer = await asker.ask("gemini", body)
        assert (status, asker.sim.refusals) == (200, []), answer

    asking([CALLS, reply("Done.")], scenario)


def drop(path: str, *places: Any) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        target = _walk(body, path)
        for place in places:
            del target[place]

    return change


def put(path: str, key: Any, value: Any) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        _walk(body, path)[key] = value

    return change


def twice(path: str, place: int) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        target = _walk(body, path)
        target.append(copy.deepcopy(target[place]))

    return change


def insert(path: str, place: int, value: Any) -> Callable[[Body], None]:
    return lambda body: _walk(body, path).insert(place, value)


def swap(path: str, one: int, other: int) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        target = _walk(body, path)
        target[one], target[other] = target[other], target[one]

    return change


def _walk(body: Any, path: str) -> Any:
    for step in filter(None, path.split(".")):
        body = body[int(step) if step.isdigit() else step]
    return body


WRONG: list[tuple[str, Callable[[Body], None], str]] = [
    ("openai-chat", drop("messages", 3), "did not have response messages: call_"),
    ("openai-chat", drop("messages", 1), "must be a response to a preceding message"),
    ("openai-chat", twice("messages", 3), "must be a response to a preceding message"),
    (
        "openai-chat",
        insert("messages", 3, {"role": "user", "content": "x"}),
        "did not have response messages",
    ),
    ("openai-chat", put("messages.1", "tool_calls", []), "empty array"),
    ("openai-chat", put("", "tools", []), "'tools': empty array"),
    ("openai-chat", put("", "tool_choice", "auto"), "only allowed when 'tools'"),
    ("openai-chat", put("messages.1.tool_calls.0", "id", "x" * 65), "string too long"),
    ("openai-chat", put("messages.1.tool_calls.0.function", "arguments", {}), "expected a string"),
    ("openai-chat", put("messages.1.tool_calls.0.function", "arguments", "{"), "no JSON object"),
    ("openai-chat", put("messages.1.tool_calls.0.function", "name", "a b"), "function.name"),
    ("openai-chat", put("messages.1", "reasoning_content", "I looked."), "not what was sent"),
    ("openai-chat", put("messages.0", "role", "human"), "Invalid value: 'human'"),
    (
        "openai-chat",
        put("messages.2", "content", [{"type": "image_url", "image_url": {"url": "x"}}]),
        "tool messages hold text only",
    ),
    ("openai-responses", drop("input", -1), "No tool output found for function call"),
    ("openai-responses", drop("input", 3), "No tool call found for function call output"),
    ("openai-responses", twice("input", -1), "Duplicate tool output"),
    ("openai-responses", put("input.1", "encrypted_content", "AAAA"), "could not be verified"),
    ("openai-responses", put("input.1.summary.0", "text", "I looked."), "was changed"),
    ("openai-responses", drop("input.1", "encrypted_content"), "Items are not persisted"),
    ("openai-responses", drop("input", 1), "without its required 'reasoning' item"),
    ("openai-responses", drop("input", 6, 5, 4, 3, 2), "without its required following item"),
    (
        "openai-responses",
        put("input.0", "content", [{"type": "function_call"}]),
        "Invalid value: 'function_call'",
    ),
    ("openai-responses", put("input.5", "type", "function_result"), "Invalid value"),
    ("anthropic-messages", drop("messages.2.content", 0), "without `tool_result` blocks"),
    ("anthropic-messages", drop("messages", 2), "without `tool_result` blocks"),
    ("anthropic-messages", drop("messages", 1), "unexpected `tool_use_id`"),
    ("anthropic-messages", twice("messages.2.content", 0), "Found multiple `tool_result`"),
    (
        "anthropic-messages",
        insert("messages.2.content", 0, {"type": "text", "text": "x"}),
        "without `tool_result` blocks immediately after",
    ),
    (
        "anthropic-messages",
        put("messages.1.content.0", "signature", "AAAA"),
        "Invalid `signature` in `thinking` block",
    ),
    ("anthropic-messages", put("messages.1.content.0", "thinking", "x"), "was changed"),
    ("anthropic-messages", drop("messages.1.content", 0), "cannot be modified"),
    ("anthropic-messages", put("messages.1.content.2", "id", "a.b"), "tool_use.id"),
    ("anthropic-messages", put("messages.1.content.1", "text", " "), "non-whitespace"),
    ("anthropic-messages", drop("", "max_tokens"), "max_tokens: Field required"),
    ("anthropic-messages", drop("messages", 0), 'must use the "user" role'),
    ("anthropic-messages", put("messages.0", "content", []), "non-empty content"),
    (
        "anthropic-messages",
        put("", "tools", [{"name": "a.b", "input_schema": {"type": "object"}}]),
        "tools.0.custom.name",
    ),
    ("gemini", drop("contents.2.parts", 0), "number of function response parts"),
    ("gemini", drop("contents", 2), "followed by a function response turn"),
    ("gemini", drop("contents", 1), "immediately after a function call turn"),
    ("gemini", twice("contents.2.parts", 0), "number of function response parts"),
    ("gemini", swap("contents.2.parts", 0, 1), "does not answer"),
    ("gemini", drop("contents.1.parts.2", "thoughtSignature"), "missing a thought_signature"),
    ("gemini", put("contents.1.parts.2", "thoughtSignature", "AAAA"), "not valid"),
    ("gemini", put("contents.1.parts.2.functionCall", "args", {"a": 2}), "was changed"),
    ("gemini", put("contents.1.parts.2.functionCall", "id", "mine"), "no call of that id"),
    ("gemini", put("contents.0", "role", "system"), "valid role"),
    ("gemini", put("contents.0", "parts", []), "must not be empty"),
    ("gemini", put("contents.0", "parts", [{}]), "required oneof field"),
    ("gemini", put("", "messages", []), 'Unknown name "messages"'),
    (
        "gemini",
        put("contents.2.parts.0.functionResponse", "response", "ok"),
        "function_response.response",
    ),
    ("code-assist", drop("request.contents.2.parts", 0), "number of function response parts"),
    ("code-assist", drop("", "model"), "invalid argument"),
]


@pytest.mark.parametrize(
    ("dialect", "change", "words"), WRONG, ids=[f"{d}-{w}" for d, _, w in WRONG]
)
def test_a_conversation_out_of_order_is_refused(
    dialect: str, change: Callable[[Body], None], words: str
) -> None:
    async def scenario(asker: Asker) -> None:
        body = FOLLOWS[dialect](await first_answer(asker, dialect))
        change(body)
        status, answer = await asker.ask(dialect, body)
        assert status in (400, 404)
        assert words in answer["error"]["message"]
        assert words in asker.sim.refusals[0]

    asking([CALLS, reply("Done.")], scenario)


def test_a_seal_of_another_vendor_is_named_as_such() -> None:
    async def scenario(asker: Asker) -> None:
        await first_answer(asker, "openai-responses")
        (foreign,) = asker.sim.seals.issued
        body = anthropic(await first_answer(asker, "anthropic-messages"))
        body["messages"][1]["content"][0]["signature"] = foreign
        _, answer = await asker.ask("anthropic-messages", body)
        assert "it is one of openai-responses" in answer["error"]["message"]

    asking([CALLS, CALLS, reply("Done.")], scenario)


def test_a_seal_of_another_model_is_named_as_such() -> None:
    async def scenario(asker: Asker) -> None:
        body = anthropic(await first_answer(asker, "anthropic-messages")) | {"model": "other"}
        _, answer = await asker.ask("anthropic-messages", body)
        assert 'made by the model "m"' in answer["error"]["message"]

    asking([CALLS, reply("Done.")], scenario)


def test_a_seal_is_known_again_after_a_restart() -> None:
    made: list[Body] = []

    async def before(asker: Asker) -> None:
        made.append(anthropic(await first_answer(asker, "anthropic-messages")))

    async def after(asker: Asker) -> None:
        status, _ = await asker.ask("anthropic-messages", made[0])
        assert status == 200

    asking([CALLS], before)
    asking([reply("Done.")], after)


def test_the_word_that_skips_the_check_of_signatures_is_taken() -> None:
    async def scenario(asker: Asker) -> None:
        body = gemini(await first_answer(asker, "gemini"))
        word = "skip_thought_signature_validator"
        body["contents"][1]["parts"][2]["thoughtSignature"] = word
        assert (await asker.ask("gemini", body))[0] == 200

    asking([CALLS, reply("Done.")], scenario)


def test_anthropic_wants_its_version() -> None:
    async def scenario(asker: Asker) -> None:
        url = f"{asker.sim.origin}/v1/messages"
        async with asker.session.post(url, json=question("anthropic-messages")) as response:
            assert response.status == 400
            assert "anthropic-version" in (await response.json())["error"]["message"]

    asking([reply("Hi.")], scenario)


@pytest.mark.parametrize(
    ("demands", "change", "words"),
    [
        (
            Demands(thinking_back=True),
            drop("messages.1", "reasoning_content"),
            "must be passed back",
        ),
        (Demands(id_length=9), put("messages.1.tool_calls.0", "id", "call_1"), "length of 9"),
        (
            Demands(user_after_results=False),
            insert("messages", 4, {"role": "user", "content": "x"}),
            "Unexpected role 'user' after role 'tool'",
        ),
        (
            Demands(refused_members=frozenset({"stream_options"})),
            put("", "stream_options", {}),
            "argument supplied: stream_options",
        ),
    ],
    ids=["thinking back", "ids", "user after results", "members"],
)
def test_one_servers_own_demands_are_checked(
    demands: Demands, change: Callable[[Body], None], words: str
) -> None:
    async def scenario(asker: Asker) -> None:
        good = chat(await first_answer(asker, "openai-chat"))
        bad = copy.deepcopy(good)
        change(bad)
        status, answer = await asker.ask("openai-chat", bad)
        assert status == 400
        assert words in answer["error"]["message"]
        assert (await asker.ask("openai-chat", good))[0] == 200

    asking([CALLS, reply("Done.")], scenario, demands=demands)
