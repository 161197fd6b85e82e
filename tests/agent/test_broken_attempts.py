"""What attempts that failed had used, over loopback HTTP with the vendors' bytes."""

import asyncio
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from tests.client.scripted import (
    HELLO,
    Reply,
    chat_end,
    chat_text,
    listen,
    model_of,
    provider,
    run,
    serving,
    sse,
)
from toolwire.agent.events import AgentEvent, Streaming, TurnEnd, TurnEnded, UsageCounted
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.turn import run_turn
from toolwire.agent.usage import Limits, Stats, billed_to
from toolwire.client.reask import falling_back, with_reask
from toolwire.client.retry import RetryPolicy
from toolwire.codec import read_answer
from toolwire.compaction.summary import Compressor
from toolwire.events import Usage
from toolwire.messages import Message, Text
from toolwire.model import Model
from toolwire.request import JsonObject, ModelRequest
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput, Workspace

COUNTS = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
CHAT = Usage(input=100, output=7)
HALF = sse(chat_text("half an ans"), {"id": "c", "choices": [], "usage": COUNTS})
START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message",'
    b'"role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":'
    b'{"input_tokens":20,"cache_read_input_tokens":80,"output_tokens":1}}}\n\n'
)
BLOCK = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n'
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":"half"}}\n\n'
)
OVERLOADED = (
    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n'
)
CLAUDE = Usage(input=20, cached=80, output=1, cache_in_input=False)
END = (
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    b'"usage":{"output_tokens":4}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
)
GEMINI = (
    b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"half"}]}}],'
    b'"usageMetadata":{"promptTokenCount":50,"candidatesTokenCount":3,"thoughtsTokenCount":9}}\n\n'
)
THINKING = Usage(input=50, output=3, reasoning=9, reasoning_in_output=False)
FAILED = (
    b'event: response.failed\ndata: {"type":"response.failed","response":{"id":"r",'
    b'"status":"failed","error":{"code":"server_error","message":"broke"},"usage":'
    b'{"input_tokens":60,"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2}}}}\n\n'
)
RESPONSES = Usage(input=60, output=4, reasoning=2)
ERROR = b'{"code":502,"message":"upstream"}'

BROKEN = [
    ("openai-chat", HALF, CHAT),
    ("openai-chat", HALF + b'data: {"error":%s}\n\n' % ERROR, CHAT),
    (
        "openai-chat",
        b'data: {"error":%s,"choices":[],"usage":'
        b'{"prompt_tokens":100,"completion_tokens":7}}\n\n' % ERROR,
        CHAT,
    ),
    (
        "openai-chat",
        b'data: {"choices":[{"index":0,"delta":{"content":""},"error":%s}],"usage":'
        b'{"prompt_tokens":100,"completion_tokens":7}}\n\n' % ERROR,
        CHAT,
    ),
    (
        "openai-chat",
        b'data: {"choices":[],"x_groq":{"error":"over","usage":'
        b'{"prompt_tokens":100,"completion_tokens":7}}}\n\n',
        CHAT,
    ),
    ("anthropic-messages", START + BLOCK, CLAUDE),
    ("anthropic-messages", START + BLOCK + OVERLOADED, CLAUDE),
    ("gemini", GEMINI + b'data: {"error":{"code":503,"message":"busy"}}\n\n', THINKING),
    (
        "code-assist",
        b'data: {"response":%s}\n\ndata: {"error":{"code":503,"message":"busy"}}\n\n'
        % GEMINI[6:-2],
        THINKING,
    ),
    ("openai-responses", FAILED, RESPONSES),
]
WHOLE = [
    (
        "openai-chat",
        b'{"choices":[{"index":0,"message":{"role":"assistant","content":"half"},"error":%s}],'
        b'"usage":{"prompt_tokens":100,"completion_tokens":7}}' % ERROR,
        CHAT,
    ),
    (
        "openai-chat",
        b'{"error":%s,"usage":{"prompt_tokens":100,"completion_tokens":7}}' % ERROR,
        CHAT,
    ),
    (
        "openai-responses",
        b'{"id":"r","status":"failed","error":{"code":"server_error","message":"broke"},"output":'
        b'[],"usage":{"input_tokens":60,"output_tokens":4,"output_tokens_details":'
        b'{"reasoning_tokens":2}}}',
        RESPONSES,
    ),
    (
        "gemini",
        b'{"error":{"code":503,"message":"busy"},"usageMetadata":{"promptTokenCount":50,'
        b'"candidatesTokenCount":3,"thoughtsTokenCount":9}}',
        THINKING,
    ),
]


@pytest.mark.parametrize(
    ("dialect", "body", "whole", "usage"),
    [(one[0], one[1], False, one[2]) for one in BROKEN]
    + [(one[0], one[1], True, one[2]) for one in WHOLE],
)
def test_decode_reports_the_usage_read_before_a_break(
    dialect: str, body: bytes, whole: bool, usage: Usage
) -> None:
    answer = read_answer(dialect, body, whole=whole)
    assert answer.error is not None
    assert (answer.finished, answer.usage, answer.error.usage) == (None, usage, usage)


@pytest.mark.parametrize(("dialect", "body", "usage"), [*BROKEN, *WHOLE])
def test_an_error_of_the_client_carries_the_usage(dialect: str, body: bytes, usage: Usage) -> None:
    async def work() -> None:
        once = RetryPolicy(attempts=1)
        async with (
            serving(Reply(chunks=(body,), cut=body[:1] != b"{")) as server,
            model_of(server, provider(dialect), policy=once) as model,
        ):
            _, error = await listen(model)
        assert getattr(error, "usage", None) == usage

    run(work)


def test_a_broken_answer_without_counts_reports_none() -> None:
    answer = read_answer("openai-chat", sse(chat_text("half")))
    assert answer.error is not None
    assert (answer.usage, answer.error.usage) == (None, None)


class Turn:
    """A turn on real models, with what it emitted."""

    def __init__(self, folder: Path, *tools: Tool, model: Model | None = None) -> None:
        self.events: list[AgentEvent] = []
        self.streaming = asyncio.Event()
        place = Workspace(roots=(folder,), temp=folder, home=folder)
        self.scheduler = Scheduler(
            Registry(tools),
            context=ToolContext(workspace=place, model=model),
            policy=_allow if tools else _never,
            emit=self._emit,
        )

    async def _emit(self, event: AgentEvent) -> None:
        self.events.append(event)
        if isinstance(event, Streaming):
            self.streaming.set()

    async def run(self, model: Model, **more) -> TurnEnded:
        messages = (Message(role="user", parts=(Text("go"),)),)
        return await run_turn(
            ModelRequest(model="m-1", messages=messages),
            model=model,
            scheduler=self.scheduler,
            sleep=_at_once,
            **more,
        )

    @property
    def counted(self) -> list[tuple[bool, Usage]]:
        return [(one.failed, one.usage) for one in self.events if isinstance(one, UsageCounted)]

    @property
    def api(self) -> tuple[int, int]:
        stats = Stats()
        for event in self.events:
            stats.add(event)
        api = stats.body()["models"]["m-1"]["api"]
        return api["totalRequests"], api["totalErrors"]


class _Allowed(msgspec.Struct, frozen=True):
    decision: str = "allow"
    reason: str = ""


def _allow(*given: object) -> _Allowed:
    del given
    return _Allowed()


def _never(*given: object) -> NoReturn:
    raise AssertionError(given)


async def _at_once(seconds: float) -> None:
    del seconds


def hundredth(usage: Usage) -> float:
    return (usage.total_input + usage.total_output) / 100


DONE = Usage(input=10, output=2)


def test_an_answer_that_broke_off_is_counted_with_its_tokens_and_cost(tmp_path: Path) -> None:
    async def work() -> None:
        turn = Turn(tmp_path)
        script = (Reply(chunks=(HALF,), cut=True), Reply(chunks=(HELLO,)))
        async with serving(*script) as server, model_of(server) as model:
            ended = await turn.run(model, price=hundredth)
        assert turn.counted == [(True, CHAT), (False, DONE)]
        assert turn.api == (2, 1)
        assert ended == TurnEnded(
            reason=TurnEnd.DONE, requests=2, usage=Usage(input=110, output=9), cost=1.19
        )

    run(work)


def test_an_attempt_that_broke_before_its_first_event_is_counted(tmp_path: Path) -> None:
    async def work() -> None:
        turn = Turn(tmp_path)
        script = (Reply(chunks=(START + OVERLOADED,)), Reply(chunks=(START + BLOCK + END,)))
        async with (
            serving(*script) as server,
            model_of(server, provider("anthropic-messages")) as model,
        ):
            ended = await turn.run(model)
        whole = Usage(input=20, cached=80, output=4, cache_in_input=False)
        assert turn.counted == [(True, CLAUDE), (False, whole)]
        assert (turn.api, ended.requests) == ((2, 1), 2)
        assert ended.usage == Usage(input=200, cached=160, output=5)

    run(work)


def test_a_refused_attempt_is_a_request_and_an_error_but_no_turn(tmp_path: Path) -> None:
    async def work() -> None:
        turn = Turn(tmp_path)
        busy = Reply(status=429, chunks=(b'{"error":{"message":"slow down"}}',))
        async with serving(busy, busy, Reply(chunks=(HELLO,))) as server, model_of(server) as model:
            ended = await turn.run(model, limits=Limits(turns=2))
        assert turn.counted == [(True, Usage()), (True, Usage()), (False, DONE)]
        assert turn.api == (3, 2)
        assert (ended.reason, ended.requests, ended.usage) == (TurnEnd.DONE, 1, DONE)

    run(work)


def test_a_turn_that_fails_counts_every_attempt_once(tmp_path: Path) -> None:
    async def work() -> None:
        turn = Turn(tmp_path)
        script = [Reply(chunks=(START + BLOCK + OVERLOADED,))] * 3
        async with (
            serving(*script) as server,
            model_of(server, provider("anthropic-messages")) as model,
        ):
            ended = await turn.run(model)
        assert turn.counted == [(True, CLAUDE)] * 3
        assert (ended.reason, ended.requests) == (TurnEnd.FAILED, 3)

    run(work)


def test_an_answer_that_is_asked_for_again_is_counted(tmp_path: Path) -> None:
    async def work() -> None:
        turn = Turn(tmp_path)
        empty = Reply(chunks=(sse(chat_end(), "[DONE]"),))
        async with serving(empty, Reply(chunks=(HELLO,))) as server, model_of(server) as model:
            ended = await turn.run(with_reask(model))
        assert turn.counted == [(True, DONE), (False, DONE)]
        assert (turn.api, ended.requests) == ((2, 1), 2)
        never = Turn(tmp_path)
        async with serving(empty, empty, empty) as server, model_of(server) as model:
            ended = await never.run(with_reask(model))
        assert never.counted == [(True, DONE)] * 3
        assert (ended.reason, ended.usage) == (TurnEnd.FAILED, Usage(input=30, output=6))

    run(work)


def test_the_attempts_of_a_model_that_another_replaces_are_counted(tmp_path: Path) -> None:
    async def work() -> None:
        turn = Turn(tmp_path)
        once = RetryPolicy(attempts=1)
        async with (
            serving(Reply(chunks=(START + OVERLOADED,))) as first,
            serving(Reply(chunks=(HELLO,))) as second,
            model_of(first, provider("anthropic-messages"), policy=once) as broken,
            model_of(second) as good,
        ):
            models = [
                ("a/one", billed_to(broken, "one", hundredth)),
                ("b/two", billed_to(good, "two", lambda usage: 7.0)),
            ]
            ended = await turn.run(falling_back(models), price=hundredth)
        counts = [one for one in turn.events if isinstance(one, UsageCounted)]
        assert [(one.model, one.failed, one.usage, one.cost) for one in counts] == [
            ("one", True, CLAUDE, 1.01),
            ("two", False, DONE, 7.0),
        ]
        assert ended.cost == 8.01

    run(work)


def test_a_cancelled_answer_is_counted_as_far_as_it_was_read(tmp_path: Path) -> None:
    async def work() -> None:
        turn = Turn(tmp_path)
        stalls = Reply(chunks=(START + BLOCK,), stall=True)
        async with (
            serving(stalls) as server,
            model_of(server, provider("anthropic-messages")) as model,
        ):
            running = asyncio.create_task(turn.run(model))
            await turn.streaming.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert turn.counted == [(True, CLAUDE)]
        ended = turn.events[-1]
        assert isinstance(ended, TurnEnded)
        assert ended.usage == Usage(input=100, cached=80, output=1)

    run(work)


def test_an_answer_that_is_left_because_it_repeats_itself_is_counted(tmp_path: Path) -> None:
    async def work() -> None:
        turn = Turn(tmp_path)
        again = "the same words as before, over and over and over again. "
        loop = b'data: {"candidates":[{"content":{"parts":[{"text":"%s"}]}}],"usageMetadata":' % (
            again.encode() * 20
        )
        loop += b'{"promptTokenCount":50,"candidatesTokenCount":3}}\n\n'
        script = [Reply(chunks=(loop,), stall=True)] * 2
        async with serving(*script) as server, model_of(server, provider("gemini")) as model:
            ended = await turn.run(model)
        used = Usage(input=50, output=3, reasoning_in_output=False)
        assert turn.counted == [(True, used), (True, used)]
        assert (ended.reason, ended.usage) == (TurnEnd.LOOP, Usage(input=100, output=6))

    run(work)


def test_broken_attempts_reach_the_limit_of_tokens_and_of_cost(tmp_path: Path) -> None:
    async def work(limits: Limits, end: TurnEnd) -> None:
        turn = Turn(tmp_path)
        call = {
            "index": 0,
            "id": "a",
            "function": {"name": "nothing", "arguments": "{}"},
        }
        calls = {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        good = Reply(chunks=(sse(calls, chat_end("tool_calls"), "[DONE]"),))
        async with (
            serving(Reply(chunks=(HALF,), cut=True), good, good) as server,
            model_of(server) as model,
        ):
            ended = await turn.run(model, limits=limits, price=hundredth)
        assert (ended.reason, len(server.asked)) == (end, 2)

    asyncio.run(work(Limits(tokens=110), TurnEnd.TOKEN_LIMIT))
    asyncio.run(work(Limits(cost=1.1), TurnEnd.COST_LIMIT))


def test_a_summary_that_breaks_off_is_counted_in_the_turn(tmp_path: Path) -> None:
    async def work() -> None:
        turn = Turn(tmp_path)
        long = Message(role="user", parts=(Text("word " * 3_000),))
        answer = Message(role="assistant", parts=(Text("well " * 3_000),))
        request = ModelRequest(model="m-1", messages=(long, answer, long, answer, long, answer))
        script = (Reply(chunks=(HALF,), cut=True), Reply(chunks=(HELLO,)))
        async with serving(*script) as server, model_of(server) as model:
            shorten = Compressor(model, window=20_000, temp=tmp_path)
            ended = await run_turn(
                request, model=model, scheduler=turn.scheduler, shorten=shorten, sleep=_at_once
            )
        counts = [one for one in turn.events if isinstance(one, UsageCounted)]
        assert [(one.purpose, one.failed, one.usage) for one in counts] == [
            ("compression", True, CHAT),
            ("turn", False, DONE),
        ]
        assert (turn.api, ended.requests) == ((2, 1), 1)
        assert ended.usage == Usage(input=110, output=9)

    run(work)


def test_the_questions_of_a_tool_are_counted_in_the_turn(tmp_path: Path) -> None:
    async def ask(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        assert context.model is not None
        _, error = await listen(context.model)
        if error is not None:
            raise ToolFailed(str(error))
        return ToolOutput(text="asked")

    tool = Tool(name="nothing", description="", parameters={}, effect=Effect.READ, run=ask)

    async def work() -> None:
        call = {"index": 0, "id": "a", "function": {"name": "nothing", "arguments": "{}"}}
        calls = {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        good = Reply(chunks=(sse(calls, chat_end("tool_calls"), "[DONE]"),))
        broken = Reply(chunks=(HALF,), cut=True)
        async with (
            serving(good, good) as server,
            serving(broken, Reply(chunks=(HELLO,))) as beside,
            model_of(server) as model,
            model_of(beside) as side,
        ):
            turn = Turn(tmp_path, tool, model=billed_to(side, "side", hundredth))
            ended = await turn.run(model, limits=Limits(cost=1.0))
        counts = [one for one in turn.events if isinstance(one, UsageCounted)]
        assert [(one.model, one.purpose, one.failed, one.usage) for one in counts] == [
            ("m-1", "turn", False, DONE),
            ("side", "tool", True, CHAT),
        ]
        assert (ended.reason, ended.requests, ended.cost) == (TurnEnd.COST_LIMIT, 1, 1.07)

    run(work)
