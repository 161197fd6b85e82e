"""One long conversation that changes vendor and tool style with every request."""

from collections.abc import Callable

import pytest

from tests.conformance.driving import IMAGE, TOOLS, Credential, result, run
from toolwire import providers
from toolwire.client.http.transport import HttpTransport
from toolwire.client.model import connect
from toolwire.collect import Collector
from toolwire.ids import new_id
from toolwire.messages import Message, Text, ToolResult
from toolwire.model import Model
from toolwire.prompted import xml
from toolwire.request import Effort, ModelRequest, Reasoning
from toolwire.simulator import Call, Demands, Question, Reply, Simulator, Think, reply

REQUESTS = 200
Vendors = tuple[tuple[str, str, str], ...]
NEWEST: Vendors = (
    ("openai", "gpt-5.6", "/v1"),
    ("anthropic", "claude-sonnet-5", ""),
    ("google", "gemini-3.5-flash", "/v1beta"),
    ("deepseek", "deepseek-v4-pro", ""),
)
OTHERS: Vendors = (
    ("xai", "grok-4.7", "/v1"),
    ("anthropic", "claude-sonnet-4-5", ""),
    ("google", "gemini-2.5-pro", "/v1beta"),
    ("code-assist", "gemini-3-pro-preview", ""),
)
XML_CALL = "<read_file>\n<path>{number}.txt</path>\n</read_file>"


def scripted(question: Question) -> Reply:
    """Thinks, then calls or answers; in tags where it was offered no tools."""
    number = question.number
    thought = Think(f"Step {number}: hm – «{number * 7}».")
    if number % 5 == 4:
        return reply(thought, f"Done with {number}.", delta=9)
    if not question.request.tools:
        said = XML_CALL.replace("{number}", str(number))
        return reply(thought, f"I read {number}.\n\n{said}")
    calls = [Call.of("read_file", path=f"{number}-{k}.txt") for k in range(1 + number % 3)]
    words = [f"I read {number}."] if number % 2 else []
    return reply(thought, *words, *calls)


def results(message: Message, number: int) -> tuple[ToolResult, ...]:
    """What the tools say: words, an image, an error, and now and then nothing at all."""
    found: list[ToolResult] = []
    for place, call in enumerate(message.calls):
        match (number + place) % 7:
            case 0:
                found.append(result(call, Text("see"), IMAGE))
            case 3:
                found.append(result(call, Text("no such file"), is_error=True))
            case 5 if number % 2:
                # Interrupted: nobody ever answers this call.
                continue
            case _:
                found.append(result(call, Text(f"content of {call.arguments}")))
    return tuple(found)


async def converse(sim: Simulator, models: list[Model]) -> list[tuple[bool, list[str]]]:
    """The whole conversation; per request, whether it was native and the seals of its answer."""
    messages: tuple[Message, ...] = (_user("Read everything."),)
    told: list[tuple[bool, list[str]]] = []
    for number in range(REQUESTS):
        native = (number // len(models) + number) % 2 == 0
        model = models[number % len(models)]
        model = model if native else xml.wrap(model, new_id)
        before = len(sim.seals.issued)
        collector = Collector()
        request = ModelRequest(
            model="",
            messages=messages,
            tools=TOOLS,
            reasoning=Reasoning(effort=Effort.MEDIUM, visible=True),
        )
        async for event in model(request):
            collector.add(event)
        message = collector.message()
        assert bool(message.calls) == (number % 5 != 4), (number, message)
        told.append((native, sim.seals.issued[before:]))
        answers = results(message, number)
        messages = (*messages, message)
        if answers:
            messages = (*messages, Message(role="user", parts=answers))
        if not message.calls:
            messages = (*messages, _user(f"And {number + 1}?"))
    return told


def _user(text: str) -> Message:
    return Message(role="user", parts=(Text(text),))


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("vendors", "owed"),
    [(NEWEST, 600 + 625 + 600), (OTHERS, 625 + 600 + 625)],
    ids=["newest", "others"],
)
def test_two_hundred_requests_over_four_vendors_and_two_styles_are_all_taken(
    vendors: Vendors, owed: int, counted: Callable[[str], None]
) -> None:
    async def scenario() -> None:
        transport = HttpTransport(env_proxies=False)
        try:
            demands = Demands(thinking_back=vendors is NEWEST)
            async with Simulator(scripted, demands=demands) as sim:
                models = [
                    connect(
                        providers.get(name),
                        model,
                        transport=transport,
                        credential=Credential(providers.get(name)),
                        base_url=sim.origin + path,
                    )
                    for name, model, path in vendors
                ]
                told = await converse(sim, models)
        finally:
            await transport.aclose()
        # Balance, foreign seals and changed ones are the server's to refuse.
        assert sim.refusals == []
        assert len(sim.requests) == REQUESTS
        returned = _returned(sim, told, len(vendors))
        counted(f"rotation over {vendors[0][0]} …: {REQUESTS} taken, {returned} seals returned")
        # Chat gives no seals. The others are asked 50 times, every second time natively, and then
        # return one seal per earlier answer: 0 + 2 + … + 48, or 1 + 3 + … + 49.
        assert returned == owed

    run(scenario())


def _returned(sim: Simulator, told: list[tuple[bool, list[str]]], vendors: int) -> int:
    """How many seals came back to the vendor that gave them; in native style all of them must."""
    count = 0
    for vendor in range(vendors):
        owed: list[str] = []
        for number in range(vendor, REQUESTS, vendors):
            native, issued = told[number]
            if native:
                body = sim.requests[number].body.decode()
                missing = [seal for seal in owed if seal not in body]
                assert missing == [], (vendor, number, len(missing), len(owed))
                count += len(owed)
            owed += issued
    return count
