"""Half a character at the end of a frame is joined with its other half, or is U+FFFD."""

import json

import pytest

from toolwire.codec import read_answer
from toolwire.messages import Thinking, ToolCall

HIGH, LOW = r"\ud83d", r"\ude00"
DIALECTS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")

BEGIN = {
    "openai-chat": "",
    "openai-responses": "",
    "anthropic-messages": (
        'data: {"type":"message_start","message":{"id":"m","content":[]}}\n\n'
        'data: {"type":"content_block_start","index":0,'
        '"content_block":{"type":"text","text":""}}\n\n'
    ),
    "gemini": "",
}
TEXT = {
    "openai-chat": '{"choices":[{"index":0,"delta":{"content":"%s"}}]}',
    "openai-responses": (
        '{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"%s"}'
    ),
    "anthropic-messages": (
        '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}'
    ),
    "gemini": '{"candidates":[{"content":{"parts":[{"text":"%s"}]}}]}',
}
SILENT = {
    "openai-chat": '{"choices":[],"usage":{"prompt_tokens":1}}',
    "openai-responses": '{"type":"response.in_progress","response":{}}',
    "anthropic-messages": '{"type":"ping"}',
    "gemini": '{"usageMetadata":{"promptTokenCount":1}}',
}
END = {
    "openai-chat": 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
    "openai-responses": (
        'data: {"type":"response.completed","response":{"status":"completed","output":[]}}\n\n'
    ),
    "anthropic-messages": (
        'data: {"type":"content_block_stop","index":0}\n\n'
        'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
        'data: {"type":"message_stop"}\n\n'
    ),
    "gemini": 'data: {"candidates":[{"finishReason":"STOP"}]}\n\n',
}
CUT = 'data: {"and'
WHOLE = {
    "openai-chat": '{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}]}',
    "openai-responses": (
        '{"status":"completed","output":[{"type":"message","role":"assistant",'
        '"content":[{"type":"output_text","text":"%s"}]}]}'
    ),
    "anthropic-messages": (
        '{"type":"message","content":[{"type":"text","text":"%s"}],"stop_reason":"end_turn"}'
    ),
    "gemini": '{"candidates":[{"content":{"parts":[{"text":"%s"}]},"finishReason":"STOP"}]}',
}


def streamed(dialect: str, *pieces: str, end: bool = True) -> str:
    frames = [TEXT[dialect] % piece if piece else SILENT[dialect] for piece in pieces]
    body = BEGIN[dialect] + "".join(f"data: {frame}\n\n" for frame in frames)
    answer = read_answer(dialect, (body + (END[dialect] if end else CUT)).encode())
    assert (answer.error is None) is end
    assert answer.notices == ()
    return answer.message.text


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ((f"a{HIGH}", f"{LOW}b"), "a😀b"),
        ((f"a{HIGH}", "", f"{LOW}b"), "a😀b"),
        ((f"a{HIGH}", "b"), "a�b"),
        ((f"a{HIGH}", "b", f"{LOW}c"), "a�b�c"),
        ((f"a{HIGH}", "", "b"), "a�b"),
        ((f"a{HIGH}",), "a�"),
        ((f"a{HIGH}", ""), "a�"),
        ((f"{HIGH}", f"{LOW}{HIGH}", f"{LOW}"), "😀😀"),
        ((f"a{HIGH}", f"{HIGH}", f"{LOW}"), "a�😀"),
        ((f"a{HIGH}", f"b{HIGH}"), "a�b�"),
        ((f"a{LOW}", "b"), "a�b"),
        ((f"a{HIGH}b",), "a�b"),
        ((f"a{HIGH}", f"b{LOW}"), "a�b�"),
    ],
)
@pytest.mark.parametrize("end", [True, False])
def test_a_streamed_half_is_joined_or_marked(
    dialect: str, pieces: tuple[str, ...], text: str, end: bool
) -> None:
    assert streamed(dialect, *pieces, end=end) == text


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("half", [HIGH, LOW])
def test_a_half_in_a_whole_answer_is_marked(dialect: str, half: str) -> None:
    answer = read_answer(dialect, (WHOLE[dialect] % f"a{half}").encode(), whole=True)
    assert (answer.error, answer.message.text) == (None, "a�")


def test_a_half_in_the_arguments_of_a_call_is_marked() -> None:
    call = (
        'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c",'
        '"function":{"name":"f","arguments":"{\\"a\\":\\"x%s"}}]}}]}\n\n'
        'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,'
        '"function":{"arguments":"%sy\\"}"}}]}}]}\n\n'
    )
    for second, text in ((LOW, "x😀y"), ("", "x�y")):
        answer = read_answer("openai-chat", (call % (HIGH, second) + END["openai-chat"]).encode())
        (call_made,) = answer.message.calls
        assert call_made == ToolCall(id="c", name="f", arguments=f'{{"a":"{text}"}}')


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_half_alone_that_is_never_joined_is_reported(dialect: str) -> None:
    frame = f"data: {TEXT[dialect] % HIGH}\n\n"
    answer = read_answer(dialect, (BEGIN[dialect] + frame + END[dialect]).encode())
    assert [notice.kind for notice in answer.notices] == ["half_character"]


def test_a_half_in_thinking_is_marked_in_thinking() -> None:
    thought = TEXT["openai-chat"].replace("content", "reasoning_content") % f"a{HIGH}"
    body = f"data: {thought}\n\ndata: {TEXT['openai-chat'] % 'b'}\n\n{END['openai-chat']}"
    thinking, text = read_answer("openai-chat", body.encode()).message.parts
    assert isinstance(thinking, Thinking)
    assert (thinking.text, getattr(text, "text", "")) == ("a�", "b")


@pytest.mark.parametrize("whole", [True, False])
def test_a_half_in_the_arguments_of_a_whole_call_is_marked(whole: bool) -> None:
    call = f'{{"functionCall":{{"name":"f","args":{{"text":"x{HIGH}"}}}}}}'
    chunk = f'{{"candidates":[{{"content":{{"parts":[{call}]}},"finishReason":"STOP"}}]}}'
    body = chunk if whole else f"data: {chunk}\n\n"
    answer = read_answer("gemini", body.encode(), whole=whole)
    assert [json.loads(call.arguments) for call in answer.message.calls] == [{"text": "x�"}]


def test_a_half_in_the_end_of_an_item_is_marked() -> None:
    content = f'[{{"type":"output_text","text":"a{HIGH}"}}]'
    message = f'{{"type":"message","role":"assistant","content":{content}}}'
    item = f'{{"type":"response.output_item.done","output_index":0,"item":{message}}}'
    body = f"data: {item}\n\n{END['openai-responses']}"
    assert read_answer("openai-responses", body.encode()).message.text == "a�"
