import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fakes.scripted import Scripted, calls, says
from toolwire.agent.events import (
    AgentEvent,
    AnswersGiven,
    Emit,
    HistoryReplaced,
    MessageAdded,
    ModelAsked,
    Noticed,
    RequestBuilt,
    Retrying,
    Streaming,
    Thought,
    ToolFinished,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    TurnStarted,
    UsageCounted,
)
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.turn import run_turn
from toolwire.agent.usage import Limits
from toolwire.errors import (
    ErrorKind,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    SessionError,
)
from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    Retry,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import Loss, Message, Outcome, Text, calls_without_result
from toolwire.request import JsonObject, ModelRequest
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolOutput, Workspace

TEXT = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}


class Allow(msgspec.Struct, frozen=True):
    decision: str = "allow"
    reason: str = ""


def a_tool(name: str, run: Any = None, effect: Effect = Effect.READ) -> Tool:
    async def echo(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput(text=f"{name}:{arguments['x']}")

    return Tool(name=name, description="", parameters=TEXT, effect=effect, run=run or echo)


class Stage:
    """A turn on a scripted model, with all that was emitted."""

    def __init__(self, folder: Path, model: Any, *tools: Tool, **more: Any) -> None:
        self.events: list[AgentEvent] = []
        self.model = model
        place = Workspace(roots=(folder,), temp=folder / "temp", home=folder)
        self.scheduler = Scheduler(
            Registry(tools or (a_tool("echo"),)),
            context=ToolContext(workspace=place),
            policy=lambda *_: Allow(),
            emit=self.keep,
        )
        self.more = more
        self.waits: list[float] = []

    async def keep(self, event: AgentEvent) -> None:
        self.events.append(event)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def run(self, prompt: str = "go", request: ModelRequest | None = None) -> ModelRequest:
        message = Message(role="user", parts=(Text(prompt),))
        request = request or ModelRequest(model="m", messages=(message,))
        conversation = request.messages

        def changed(messages: tuple[Message, ...]) -> None:
            nonlocal conversation
            conversation = messages

        ended = await run_turn(
            request,
            model=self.model,
            scheduler=self.scheduler,
            changed=changed,
            sleep=self.sleep,
            **self.more,
        )
        assert ended == self.ended
        return msgspec.structs.replace(request, messages=conversation)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def ended(self) -> TurnEnded:
        assert isinstance(self.events[-1], TurnEnded)
        return self.events[-1]


def test_a_reply_without_calls_ends_the_turn(tmp_path: Path):
    stage = Stage(tmp_path, Scripted(says("hello")))
    request = asyncio.run(stage.run())
    assert [message.text for message in request.messages] == ["go", "hello"]
    assert [type(event) for event in stage.events] == [
        TurnStarted,
        RequestBuilt,
        ModelAsked,
        Streaming,
        Streaming,
        UsageCounted,
        MessageAdded,
        TurnEnded,
    ]
    assert stage.ended == TurnEnded(
        reason=TurnEnd.DONE, requests=1, usage=Usage(input=10, output=5), cost=None
    )


def test_calls_are_run_and_answered_until_the_model_is_done(tmp_path: Path):
    model = Scripted(calls(("a", "echo", {"x": "1"}), ("b", "echo", {"x": "2"})), says("done"))
    stage = Stage(tmp_path, model)
    request = asyncio.run(stage.run())
    answers = request.messages[2]
    assert [(one.call_id, one.text) for one in answers.results] == [
        ("a", "echo:1"),
        ("b", "echo:2"),
    ]
    assert model.asked[1].messages == request.messages[:3]
    assert stage.of(AnswersGiven) == [AnswersGiven(call_ids=("a", "b"))]
    assert stage.ended.usage == Usage(input=20, output=10)


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        (StopReason.LENGTH, TurnEnd.LENGTH),
        (StopReason.REFUSAL, TurnEnd.REFUSAL),
        (StopReason.CONTENT_FILTER, TurnEnd.CONTENT_FILTER),
        (StopReason.ERROR, TurnEnd.FAILED),
        (StopReason.MALFORMED_CALL, TurnEnd.FAILED),
    ],
)
def test_only_a_positive_end_is_done(tmp_path: Path, reason: StopReason, end: TurnEnd):
    stage = Stage(tmp_path, Scripted(says("half", reason)))
    asyncio.run(stage.run())
    assert stage.ended.reason is end
    assert stage.ended.detail or stage.ended.error


def test_a_pause_goes_on_with_the_reply_so_far(tmp_path: Path):
    model = Scripted(says("one", StopReason.PAUSE), says("two"))
    stage = Stage(tmp_path, model)
    request = asyncio.run(stage.run())
    assert [message.text for message in request.messages] == ["go", "one", "two"]


def test_a_reply_that_breaks_off_is_asked_for_again(tmp_path: Path):
    broken = [TextDelta("half"), IncompleteStream("cut")]
    stage = Stage(tmp_path, Scripted(broken, says("whole")))
    request = asyncio.run(stage.run())
    assert [message.text for message in request.messages] == ["go", "whole"]
    assert stage.of(Retrying) == [
        Retrying(message="cut; retrying in 0.5 s", void=True, attempt=2, wait=0.5)
    ]
    assert stage.waits == [0.5]
    assert [one.failed for one in stage.of(UsageCounted)] == [True, False]


def test_garbled_words_are_asked_for_again_also_before_the_first(tmp_path: Path):
    stage = Stage(tmp_path, Scripted([MalformedStream("noise")], says("whole")))
    request = asyncio.run(stage.run())
    assert [message.text for message in request.messages] == ["go", "whole"]
    assert stage.of(Retrying) == [Retrying(message="noise; retrying in 0.5 s", attempt=2, wait=0.5)]


def test_a_reply_that_never_arrives_whole_fails_and_keeps_what_was_received(tmp_path: Path):
    broken = [TextDelta("half"), ToolCallStarted("a", "echo"), IncompleteStream("cut")]
    stage = Stage(tmp_path, Scripted(broken))
    request = asyncio.run(stage.run())
    assert stage.ended.reason is TurnEnd.FAILED
    assert (stage.ended.error, stage.ended.detail) == ("incomplete_stream", "cut")
    assert request.messages[1].text == "half"
    assert not request.messages[1].calls[0].complete
    assert request.messages[2].results[0].outcome is Outcome.NOT_RUN
    assert not stage.of(ToolStarted)
    assert stage.waits == [0.5, 1.0]


def test_an_error_before_the_first_word_is_not_tried_again_here(tmp_path: Path):
    error = ProviderError(ErrorKind.AUTH, "bad key", status=401)
    stage = Stage(tmp_path, Scripted([error]))
    request = asyncio.run(stage.run())
    assert len(request.messages) == 1
    assert (stage.ended.reason, stage.ended.error) == (TurnEnd.FAILED, ErrorKind.AUTH)
    assert len(stage.of(ModelAsked)) == 1


@pytest.mark.parametrize(
    ("limits", "end"),
    [
        (Limits(turns=2), TurnEnd.TURN_LIMIT),
        (Limits(tokens=30), TurnEnd.TOKEN_LIMIT),
        (Limits(cost=0.02), TurnEnd.COST_LIMIT),
    ],
)
def test_a_limit_stops_before_the_next_request(tmp_path: Path, limits: Limits, end: TurnEnd):
    model = Scripted(
        *(calls((f"c{number}", "echo", {"x": str(number)})) for number in range(9)), says("never")
    )
    stage = Stage(tmp_path, model, limits=limits, price=lambda usage: 0.01)
    request = asyncio.run(stage.run())
    assert stage.ended.reason is end
    assert len(model.asked) == 2
    assert not list(calls_without_result(request.messages))


def test_the_time_limit_ends_a_tool_that_runs_on(tmp_path: Path):
    async def forever(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        await asyncio.Event().wait()
        raise AssertionError

    tool = a_tool("wait", forever, Effect.EXECUTE)
    model = Scripted(calls(("a", "wait", {"x": "1"})), says("never"))
    stage = Stage(tmp_path, model, tool, limits=Limits(seconds=0.05))
    request = asyncio.run(stage.run())
    assert stage.ended.reason is TurnEnd.TIME_LIMIT
    assert request.messages[-1].results[0].outcome is Outcome.INTERRUPTED


def test_the_same_call_and_result_is_reported_then_stopped(tmp_path: Path):
    model = Scripted(calls(("a", "echo", {"x": "1"})))
    stage = Stage(tmp_path, model)
    request = asyncio.run(stage.run())
    assert stage.ended.reason is TurnEnd.LOOP
    assert "echo" in stage.ended.detail
    assert len(stage.of(ToolStarted)) == 5
    assert len(model.asked) == 6
    notes = [one.message.text for one in stage.of(MessageAdded) if one.context]
    assert len(notes) == 1
    assert "Repeated tool call: echo" in notes[0]
    assert request.messages[-1].results[0].outcome is Outcome.NOT_RUN


def test_a_call_that_makes_progress_may_be_made_often(tmp_path: Path):
    seen: list[int] = []

    async def count(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        seen.append(1)
        return ToolOutput(text=str(len(seen)))

    script = [calls(("a", "poll", {"x": "1"}))] * 9
    stage = Stage(tmp_path, Scripted(*script, says("done")), a_tool("poll", count))
    asyncio.run(stage.run())
    assert stage.ended.reason is TurnEnd.DONE
    assert len([one for one in stage.of(MessageAdded) if one.context]) == 1


def test_a_cycle_of_calls_is_a_loop_too(tmp_path: Path):
    one, two = calls(("a", "echo", {"x": "1"})), calls(("a", "echo", {"x": "2"}))
    stage = Stage(tmp_path, Scripted(*[one, two] * 20))
    asyncio.run(stage.run())
    assert stage.ended.reason is TurnEnd.LOOP
    assert len(stage.of(ToolStarted)) < 13


def test_repeated_words_are_reported_then_stopped(tmp_path: Path):
    words = "I will now look at the file once more and see what it says. " * 40
    pieces = [TextDelta(words[at : at + 7]) for at in range(0, len(words), 7)]
    model = Scripted([*pieces, Finished(reason=StopReason.END)])
    stage = Stage(tmp_path, model)
    asyncio.run(stage.run())
    assert stage.ended.reason is TurnEnd.LOOP
    assert len(model.asked) == 2
    assert model.asked[1].messages[-1].text.startswith("System: Potential loop detected")


def test_what_the_user_says_meanwhile_comes_with_the_next_step(tmp_path: Path):
    said = [Message(role="user", parts=(Text("and be quick"),))]
    waiting: list[Message] = []

    async def interrupted(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        waiting.extend(said)
        return ToolOutput(text="ok")

    def inbox() -> list[Message]:
        taken, waiting[:] = list(waiting), []
        return taken

    model = Scripted(calls(("a", "work", {"x": "1"})), says("done"))
    stage = Stage(tmp_path, model, a_tool("work", interrupted), inbox=inbox)
    asyncio.run(stage.run())
    assert model.asked[1].messages[-2].results
    assert model.asked[1].messages[-1] == said[0]


def test_words_that_come_with_the_last_answer_are_answered_too(tmp_path: Path):
    waiting = [Message(role="user", parts=(Text("one more"),))]
    fresh: list[list[Message]] = [[], waiting]
    stage = Stage(
        tmp_path,
        Scripted(says("done"), says("that too")),
        inbox=lambda: fresh.pop(0) if fresh else [],
    )
    request = asyncio.run(stage.run())
    assert [one.text for one in request.messages] == ["go", "done", "one more", "that too"]


def test_a_cancelled_turn_leaves_a_whole_conversation(tmp_path: Path):
    running = asyncio.Event()

    async def forever(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        running.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def cancelled() -> Stage:
        tool = a_tool("write", forever, Effect.WRITE)
        model = Scripted(calls(("a", "write", {"x": "1"}), ("b", "write", {"x": "2"})))
        stage = Stage(tmp_path, model, tool)
        task = asyncio.create_task(stage.run())
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return stage

    stage = asyncio.run(cancelled())
    assert stage.ended.reason is TurnEnd.CANCELLED
    outcomes = [one.outcome for one in stage.of(ToolFinished)]
    assert outcomes == [Outcome.INTERRUPTED, Outcome.CANCELLED]
    assert stage.events[-2] == AnswersGiven(call_ids=("a", "b"))


def test_a_turn_cancelled_while_the_model_speaks_keeps_its_words(tmp_path: Path):
    speaking = asyncio.Event()

    async def model(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("half an ans")
        speaking.set()
        await asyncio.Event().wait()

    async def cancelled() -> Stage:
        stage = Stage(tmp_path, model)
        task = asyncio.create_task(stage.run())
        await speaking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return stage

    stage = asyncio.run(cancelled())
    assert stage.of(MessageAdded)[-1].message.text == "half an ans"
    assert stage.ended.reason is TurnEnd.CANCELLED


def test_a_conversation_too_long_is_shortened_once_and_sent_again(tmp_path: Path):
    forced: list[bool] = []
    short = Message(role="user", parts=(Text("short"),))

    async def shorten(
        request: ModelRequest, *, force: bool = False, emit: Emit | None = None
    ) -> HistoryReplaced | None:
        forced.append(force)
        if not force:
            return None
        return HistoryReplaced(messages=(short,), method="mechanical", before=9, after=1)

    too_long = ProviderError(ErrorKind.CONTEXT_TOO_LONG, "too long", status=400)
    stage = Stage(tmp_path, Scripted([too_long], says("fits")), shorten=shorten)
    request = asyncio.run(stage.run())
    assert forced == [False, True]
    assert [one.text for one in request.messages] == ["short", "fits"]
    assert stage.of(HistoryReplaced)


def test_thoughts_are_reported_with_their_headline(tmp_path: Path):
    script = [
        ThinkingDelta("**Reading**\nI look at"),
        ThinkingDelta(" the file."),
        ThinkingDelta("**Writing** then"),
        *says("ok"),
    ]
    stage = Stage(tmp_path, Scripted(script))
    asyncio.run(stage.run())
    assert stage.of(Thought) == [
        Thought(subject="Reading", description="I look at the file."),
        Thought(subject="Writing", description="then"),
    ]


def test_a_notice_is_reported_once_a_turn_and_a_retry_each_time(tmp_path: Path):
    again = [
        Notice("thinning", "no images"),
        Notice("retry", "429; waiting", retry=Retry(status=429, attempt=2, wait=1.5)),
    ]
    model = Scripted([*again, *calls(("a", "echo", {"x": "1"}))], [*again, *says("ok")])
    stage = Stage(tmp_path, model)
    asyncio.run(stage.run())
    assert stage.of(Noticed) == [Noticed(kind="thinning", message="no images")]
    told = Retrying(message="429; waiting", status=429, attempt=2, wait=1.5)
    assert stage.of(Retrying) == [told, told]


def test_a_loss_is_reported_once_wherever_it_happens(tmp_path: Path):
    losses = [Loss(f"messages[{at}]", "an image", "not taken") for at in (1, 3)]
    one, two = (Notice("loss", f"{loss.path}: an image: not taken", loss=loss) for loss in losses)
    model = Scripted([one, *calls(("a", "echo", {"x": "1"}))], [one, two, *says("ok")])
    stage = Stage(tmp_path, model)
    asyncio.run(stage.run())
    message = "messages[1]: an image: not taken"
    assert stage.of(Noticed) == [Noticed(kind="loss", message=message, loss=losses[0])]


def test_a_call_whose_start_can_not_be_kept_does_not_run(tmp_path: Path):
    ran: list[str] = []

    async def note(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        ran.append("it")
        return ToolOutput(text="ok")

    model = Scripted(calls(("a", "work", {"x": "1"})))
    stage = Stage(tmp_path, model, a_tool("work", note, Effect.WRITE))

    async def full(event: AgentEvent) -> None:
        if isinstance(event, ToolStarted):
            raise SessionError("the disk is full")
        stage.events.append(event)

    stage.keep = full  # the turn's events go on
    stage.scheduler = Scheduler(
        Registry([a_tool("work", note, Effect.WRITE)]),
        context=ToolContext(
            workspace=Workspace(roots=(tmp_path,), temp=tmp_path / "temp", home=tmp_path)
        ),
        policy=lambda *_: Allow(),
        emit=full,
    )
    asyncio.run(stage.run())
    assert not ran
    assert (stage.ended.reason, stage.ended.detail) == (TurnEnd.FAILED, "the disk is full")
