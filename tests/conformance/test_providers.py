"""Every provider of the catalogue through every scenario, over real HTTP."""

import asyncio
from contextlib import nullcontext

import pytest

from tests.conformance.driving import (
    IMAGE,
    KEY,
    Case,
    Driven,
    driven,
    each_case,
    only,
    result,
    run,
)
from toolwire.collect import Collector
from toolwire.errors import ErrorKind, IncompleteStream, ProviderError
from toolwire.events import StopReason, Usage
from toolwire.messages import Text, Thinking
from toolwire.providers import NoAuth
from toolwire.request import ToolChoice
from toolwire.simulator import Call, Decline, Fault, Think, refused, reply

LOOK = Call.of("read_file", path="a.txt")
MORE = Call.of("read_file", path="ü/b.txt", lines=3)
TIME = Call(name="now")


def asked(*calls: Call) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in calls]


def made(driven_case: Driven) -> list[tuple[str, str]]:
    return [(call.name, call.arguments or "{}") for call in driven_case.messages[-1].calls]


@each_case
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_words_arrive_as_they_were_said(case: Case, stream: bool) -> None:
    async def scenario() -> None:
        words = "Grüße, \U0001f600 and a line\u2028end."
        usage = Usage(input=11, output=7)
        async with driven(case, only(reply(words, usage=usage, delta=3))) as d:
            message, finished = await d.answer(stream=stream)
            assert message.text == words
            assert finished.reason is StopReason.END
            assert (finished.usage.total_input, finished.usage.total_output) == (11, 7)
            assert d.sim.refusals == []

    run(scenario())


@each_case
def test_a_call_is_made_and_its_result_is_received(case: Case) -> None:
    async def scenario() -> None:
        heard = reply("It says {last_result}.")
        async with driven(case, only(reply("I look.", LOOK), heard)) as d:
            message, finished = await d.answer()
            assert message.text == "I look."
            assert made(d) == asked(LOOK)
            assert finished.reason is StopReason.TOOL_CALLS
            d.give(result(message.calls[0], Text("forty-two")))
            message, _ = await d.answer()
            assert message.text == "It says forty-two."
            d.say("Thanks.")
            assert d.sim.refusals == []

    run(scenario())


@each_case
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_parallel_calls_keep_their_order_and_each_gets_its_own_result(
    case: Case, stream: bool
) -> None:
    async def scenario() -> None:
        script = only(reply(LOOK, MORE, TIME), reply("Done."), reply("Bye."))
        async with driven(case, script) as d:
            message, finished = await d.answer(stream=stream)
            assert made(d) == asked(LOOK, MORE, TIME)
            assert finished.reason is StopReason.TOOL_CALLS
            # Capitals and dashes: no random id holds them.
            texts = ("RESULT-1", "RESULT-2", "RESULT-3")
            pairs = zip(message.calls, texts, strict=True)
            d.give(*(result(call, Text(text)) for call, text in pairs))
            await d.answer(stream=stream)
            d.say("And?")
            await d.answer(stream=stream)
            assert d.sim.refusals == []
            sent = d.sim.requests[-1].body.decode()
            places = [sent.index(text) for text in texts]
            assert places == sorted(places)

    run(scenario())


@each_case
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_thinking_that_led_to_calls_comes_back_byte_for_byte(case: Case, stream: bool) -> None:
    async def scenario() -> None:
        thought = 'I need "a.txt"\nfirst – ü.'
        script = only(reply(Think(thought), "I look.", LOOK, TIME), reply("Done."))
        async with driven(case, script) as d:
            message, _ = await d.answer(stream=stream)
            assert message.thinking == thought
            issued = list(d.sim.seals.issued)
            d.give(*(result(call, Text("ok")) for call in message.calls))
            await d.answer(stream=stream)
            assert d.sim.refusals == []
            sent = d.sim.requests[-1].body.decode()
            assert all(seal in sent for seal in issued)
            quirks = case.provider.quirks_for(case.model)
            if issued:
                return
            assert case.provider.dialect == "openai-chat"
            history = d.sim.requests[-1].json["messages"]
            replayed = [m.get("reasoning_content") for m in history if "tool_calls" in m]
            wanted = quirks.reasoning_replay != "never"
            assert replayed == ([thought] if wanted else [None])

    run(scenario())


@each_case
def test_thinking_without_words_is_sealed_and_comes_back(case: Case) -> None:
    async def scenario() -> None:
        script = only(reply(Think("secret", hidden=True), LOOK), reply("Done."))
        async with driven(case, script) as d:
            message, _ = await d.answer()
            assert message.thinking == ""
            issued = list(d.sim.seals.issued)
            if not issued:
                pytest.skip("a chat server that shows no thinking gives nothing to send back")
            d.give(result(message.calls[0], Text("ok")))
            await d.answer()
            assert d.sim.refusals == []
            assert all(seal in d.sim.requests[-1].body.decode() for seal in issued)

    run(scenario())


@each_case
def test_an_image_in_a_result_reaches_the_model(case: Case) -> None:
    async def scenario() -> None:
        async with driven(case, only(reply(LOOK, TIME), reply("A pixel."))) as d:
            message, _ = await d.answer()
            first, second = message.calls
            d.give(result(first, Text("see"), IMAGE), result(second, Text("noon")))
            await d.answer()
            assert d.sim.refusals == []
            assert IMAGE.base64 in d.sim.requests[-1].body.decode()

    run(scenario())


@each_case
def test_a_failed_tool_is_reported_as_such(case: Case) -> None:
    async def scenario() -> None:
        async with driven(case, only(reply(LOOK), reply("I see."))) as d:
            message, _ = await d.answer()
            d.give(result(message.calls[0], Text("no such file"), is_error=True))
            await d.answer()
            assert d.sim.refusals == []
            assert "no such file" in d.sim.requests[-1].body.decode()

    run(scenario())


@each_case
def test_a_refusal_is_not_an_answer(case: Case) -> None:
    async def scenario() -> None:
        async with driven(case, only(reply(Decline("I cannot help with that.")))) as d:
            message, finished = await d.answer()
            assert finished.reason in (StopReason.REFUSAL, StopReason.CONTENT_FILTER)
            said = "".join(getattr(part, "text", "") for part in message.parts)
            assert said == "I cannot help with that."

    run(scenario())


@each_case
def test_a_call_cut_by_the_length_limit_is_incomplete_and_the_conversation_goes_on(
    case: Case,
) -> None:
    async def scenario() -> None:
        cut = Call(name="read_file", arguments='{"path": "a.t', complete=False)
        script = only(reply("I look.", cut, stop=StopReason.LENGTH), reply("Again, then."))
        async with driven(case, script) as d:
            message, finished = await d.answer()
            assert finished.reason is StopReason.LENGTH
            assert [call.complete for call in message.calls] in ([False], [])
            d.say("Go on.")
            await d.answer()
            assert d.sim.refusals == []

    run(scenario())


@each_case
def test_a_wrong_key_is_reported_after_one_try_for_another(case: Case) -> None:
    async def scenario() -> None:
        async with driven(case, only(reply(fault=refused(401)))) as d:
            with pytest.raises(ProviderError) as caught:
                await d.answer()
            assert caught.value.kind is ErrorKind.AUTH
            assert caught.value.status == 401
            assert d.credential.asked == [False, True]
            assert len(d.sim.requests) == 1
            assert KEY not in str(caught.value)

    run(scenario())


@each_case
def test_a_fresh_key_is_used_after_the_old_one_was_refused(case: Case) -> None:
    if isinstance(case.provider.auth, NoAuth):
        pytest.skip("shows no key")

    async def scenario() -> None:
        async with driven(case, only(reply("Hi.")), keys=("old", "new"), key="new") as d:
            message, _ = await d.answer()
            assert message.text == "Hi."
            assert [received.status for received in d.sim.requests] == [401, 200]

    run(scenario())


@each_case
def test_a_rate_limit_is_waited_for_as_long_as_the_server_asks(case: Case) -> None:
    async def scenario() -> None:
        limited = reply(fault=refused(429, retry_after="7"))
        async with driven(case, only(limited, reply("Hi."))) as d:
            message, _ = await d.answer()
            assert message.text == "Hi."
            assert d.waits == [7.0]

    run(scenario())


@each_case
@pytest.mark.parametrize("status", [500, 503, 529])
def test_a_server_that_stumbles_is_asked_again(case: Case, status: int) -> None:
    async def scenario() -> None:
        async with driven(case, only(reply(fault=refused(status)), reply("Hi."))) as d:
            message, _ = await d.answer()
            assert message.text == "Hi."
            assert len(d.waits) == 1
            first, second = d.sim.requests
            assert first.body == second.body

    run(scenario())


@each_case
@pytest.mark.parametrize("how", ["connection", "body"])
def test_a_stream_cut_in_the_middle_is_reported_and_what_came_is_kept(case: Case, how: str) -> None:
    async def scenario() -> None:
        words = "A rather long answer, of which a part arrives."
        fault = Fault(cut_events=8, cut_how="body" if how == "body" else "connection")
        async with driven(case, only(reply(words, delta=4, fault=fault))) as d:
            collector = Collector()
            # A clean end is enough for Gemini's answers; it is reported, and the agent asks again.
            accepted = how == "body" and case.provider.dialect in ("gemini", "code-assist")
            with nullcontext() if accepted else pytest.raises(IncompleteStream):
                await d.hear(collector)
            said = collector.message().text
            assert said
            assert words.startswith(said)
            assert said != words
            assert (collector.finished is not None) is accepted
            assert len(d.sim.requests) == 1

    run(scenario())


@each_case
def test_a_stream_that_breaks_before_its_first_word_is_asked_for_again(case: Case) -> None:
    async def scenario() -> None:
        nothing = reply("Lost.", fault=Fault(cut_events=0))
        async with driven(case, only(nothing, reply("Hi."))) as d:
            message, _ = await d.answer()
            assert message.text == "Hi."
            assert len(d.sim.requests) == 2

    run(scenario())


@each_case
def test_who_stops_listening_hangs_up(case: Case) -> None:
    async def scenario() -> None:
        endless = reply("On and on and on.", delta=3, fault=Fault(endless=True))
        async with driven(case, only(endless)) as d:
            first = asyncio.Event()

            async def listen() -> None:
                async for event in d.ask():
                    if event:
                        first.set()

            async with asyncio.TaskGroup() as group:
                task = group.create_task(listen())
                await first.wait()
                task.cancel()
            received = d.sim.requests[0]
            await received.left.wait()
            assert not received.finished

    run(scenario())


@each_case
@pytest.mark.parametrize(
    "choice",
    [
        ToolChoice(mode="required"),
        ToolChoice(mode="none"),
        ToolChoice(mode="required", names=("now",)),
        ToolChoice(mode="auto", names=("now",)),
    ],
    ids=["required", "none", "one tool", "some tools"],
)
def test_no_choice_of_tools_is_one_that_the_server_refuses(case: Case, choice: ToolChoice) -> None:
    async def scenario() -> None:
        async with driven(case, only(reply(TIME))) as d:
            await d.answer(tool_choice=choice, parallel_calls=False, temperature=0.5)
            assert d.sim.refusals == []

    run(scenario())


@each_case
def test_an_answer_of_thinking_alone_does_not_stop_the_conversation(case: Case) -> None:
    async def scenario() -> None:
        script = only(reply(Think("Hm.")), reply("Yes."))
        async with driven(case, script) as d:
            message, _ = await d.answer()
            assert message.text == ""
            assert all(isinstance(part, Thinking) for part in message.parts)
            d.say("Well?")
            message, _ = await d.answer()
            assert message.text == "Yes."
            assert d.sim.refusals == []

    run(scenario())
