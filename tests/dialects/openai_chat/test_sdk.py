"""OpenAI's own SDK as the judge of what we write."""

import json

from openai._streaming import SSEDecoder
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests import acceptance
from tests.dialects.openai_chat.exchange import (
    ask,
    decode_bytes,
    encode_bytes,
    ids,
    seal,
    written,
)
from toolwire.dialects.openai_chat import DIALECT
from toolwire.dialects.quirks import Quirks
from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    ModelEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import (
    CallKind,
    Citation,
    Media,
    MediaKind,
    Message,
    Seal,
    Text,
    ToolCall,
    ToolResult,
)
from toolwire.request import (
    Effort,
    FreeformTool,
    OutputFormat,
    Reasoning,
    ToolChoice,
    ToolSpec,
)

EVENTS: list[ModelEvent] = [
    ThinkingDelta("hm"),
    TextDelta("a\u2028"),
    TextDelta("b"),
    ToolCallStarted("c1", "f"),
    ToolCallDelta("c1", '{"x":'),
    ToolCallDelta("c1", "1}"),
    ToolCallStarted("c2", "g"),
    ToolCallEnded("c1"),
    ToolCallEnded("c2"),
    Finished(reason=StopReason.TOOL_CALLS, usage=Usage(input=5, output=6, cached=2)),
]


def test_the_sdk_reads_our_stream():
    state = ChatCompletionStreamState()
    for event in SSEDecoder().iter_bytes(iter([encode_bytes(EVENTS)])):
        if not event.data.startswith("[DONE]"):
            chunk = ChatCompletionChunk.model_validate_json(event.data)
            state.handle_chunk(chunk)
    answer = state.get_final_completion()
    choice = answer.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("a\u2028b", "tool_calls")
    assert choice.message.tool_calls is not None
    calls = [(call.id, call.function.name) for call in choice.message.tool_calls]
    assert calls == [("c1", "f"), ("c2", "g")]
    assert choice.message.tool_calls[0].function.arguments == '{"x":1}'
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (5, 11)


def details(text: str) -> Seal:
    return seal(reasoning_details=[{"type": "reasoning.text", "text": text}])


def test_the_sdk_joins_our_lists():
    links = [
        Citation(dialect="gemini", data="{}", url="https://a", title="a", start=0, end=1),
        Citation(dialect="gemini", data='{"only":"a text"}'),
        Citation(
            dialect="openai-chat",
            data='{"type":"url_citation","url_citation":{"url":"https://b"}}',
            url="https://b",
        ),
    ]
    image = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA")
    events: list[ModelEvent] = [
        ThinkingEnded(details("one")),
        TextDelta("a"),
        CitationAdded(links[0]),
        ThinkingEnded(details("two")),
        TextDelta("b"),
        CitationAdded(links[1]),
        CitationAdded(links[2]),
        MediaAdded(image),
        MediaAdded(image),
        Finished(reason=StopReason.END),
    ]
    body = encode_bytes(events)
    state = ChatCompletionStreamState()
    for event in SSEDecoder().iter_bytes(iter([body])):
        if not event.data.startswith("[DONE]"):
            state.handle_chunk(ChatCompletionChunk.model_validate_json(event.data))
    message = state.get_final_completion().choices[0].message.model_dump()
    assert [item["url_citation"]["url"] for item in message["annotations"]] == [
        "https://a",
        "https://b",
    ]
    assert [item["index"] for item in message["annotations"]] == [0, 1]
    assert [item["image_url"]["url"] for item in message["images"]] == [
        "data:image/png;base64,AAAA"
    ] * 2
    assert [item["text"] for item in message["reasoning_details"]] == ["one", "two"]
    found = [event.citation for event in decode_bytes([body]) if isinstance(event, CitationAdded)]
    assert [citation.url for citation in found] == ["https://a", "https://b"]
    assert found[1] == links[2]


def test_the_sdk_reads_our_whole_answer():
    calls = (
        ToolCall(id="a", name="f", arguments="{}"),
        ToolCall(id="b", name="sql", arguments="SELECT", kind=CallKind.FREEFORM),
    )
    message = Message(role="assistant", parts=(Text("t"), *calls))
    finished = Finished(reason=StopReason.TOOL_CALLS, usage=Usage(input=1, output=2))
    body = DIALECT.encode_whole(message, finished, "m", ids())
    answer = ChatCompletion.model_validate_json(body)
    assert answer.choices[0].message.model_dump(exclude_unset=True) == {
        **json.loads(body)["choices"][0]["message"]
    }


def test_the_sdks_types_take_a_request_with_everything_in_it():
    request = ask(
        system=(Text("Be brief."), Text("Always.")),
        messages=(
            Message(role="system", parts=(Text("s"),)),
            Message(
                role="user",
                parts=(
                    Text("look"),
                    Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA"),
                    Media(kind=MediaKind.AUDIO, mime="audio/mpeg", base64="AAAA"),
                    Media(kind=MediaKind.DOCUMENT, mime="application/pdf", base64="AAAA"),
                    Media(kind=MediaKind.VIDEO, url="https://a/b.mp4"),
                ),
            ),
            Message(
                role="assistant",
                parts=(
                    Text("ok"),
                    ToolCall(id="a", name="f.g", arguments="{}"),
                    ToolCall(id="b", name="sql", arguments="SELECT", kind=CallKind.FREEFORM),
                ),
            ),
            Message(
                role="user",
                parts=(
                    ToolResult(
                        call_id="a",
                        parts=(Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA"),),
                    ),
                    ToolResult(call_id="b", parts=(Text("1"), Text("2")), is_error=True),
                    Text("go on"),
                ),
            ),
        ),
        tools=(
            ToolSpec(name="f.g", description="d", strict=True),
            FreeformTool(name="sql", syntax="lark", grammar="start: /x/"),
        ),
        tool_choice=ToolChoice(mode="auto", names=("f.g", "sql")),
        parallel_calls=False,
        max_output_tokens=9,
        temperature=0.5,
        top_p=0.5,
        frequency_penalty=0.1,
        presence_penalty=0.1,
        seed=1,
        stop=("x",),
        reasoning=Reasoning(effort=Effort.LOW),
        output=OutputFormat(kind="json_schema", schema={"type": "object"}, name="n", strict=True),
        stream=True,
    )
    acceptance.check("openai-chat", written(request))
    acceptance.check("openai-chat", written(request, Quirks(strict_tools=True)))
