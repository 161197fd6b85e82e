import msgspec
import pytest

from toolwire.messages import (
    Kept,
    Media,
    MediaKind,
    Message,
    Origin,
    Part,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    calls_without_result,
)

CLAUDE = Origin("anthropic-messages", "anthropic", "claude")
SEAL = Seal(origin=CLAUDE, data='{"signature":"c2ln"}')


@pytest.mark.parametrize(
    ("reader", "maker", "reads"),
    [
        (CLAUDE, CLAUDE, True),
        (Origin("anthropic-messages"), CLAUDE, True),
        (CLAUDE, Origin("anthropic-messages"), True),
        (Origin("anthropic-messages", "anthropic"), CLAUDE, True),
        (Origin("anthropic-messages", "", "claude"), CLAUDE, True),
        (Origin("anthropic-messages", "minimax", "claude"), CLAUDE, False),
        (Origin("anthropic-messages", "anthropic", "other"), CLAUDE, False),
        (Origin("gemini"), CLAUDE, False),
    ],
)
def test_an_unnamed_provider_or_model_fits_any(reader: Origin, maker: Origin, reads: bool):
    assert reader.reads(maker) is reads


def test_a_message_returns_its_texts_thoughts_calls_and_results():
    call = ToolCall(id="a", name="f")
    result = ToolResult(call_id="a", parts=(Text("x"), Text("y")))
    message = Message(
        role="assistant",
        parts=(Thinking("h"), Text("a"), call, Thinking("m"), Text("b"), Refusal("no"), result),
    )
    assert (message.text, message.thinking) == ("ab", "hm")
    assert (message.calls, message.results) == ((call,), (result,))
    assert result.text == "xy"


def test_media_keep_their_bytes():
    image = Media.of_bytes(MediaKind.IMAGE, "image/png", b"\x00\xff", "dot.png")
    assert image == Media(kind=MediaKind.IMAGE, mime="image/png", base64="AP8=", name="dot.png")
    assert image.data == b"\x00\xff"
    assert Media(kind=MediaKind.IMAGE, url="https://example.org/a.png").data == b""


def test_calls_that_no_message_answers_are_found():
    first, second = ToolCall(id="a", name="f"), ToolCall(id="b", name="f")
    messages = [
        Message(role="assistant", parts=(first, second)),
        Message(role="user", parts=(ToolResult(call_id="a"),)),
    ]
    assert list(calls_without_result(messages)) == [second]
    assert list(calls_without_result(iter(messages))) == [second]


@pytest.mark.parametrize(
    "part",
    [
        Text("a", seal=SEAL),
        Thinking("", SEAL),
        Refusal("no"),
        Media(kind=MediaKind.AUDIO, base64="AAAA"),
        ToolCall(id="a", name="f", arguments='{"x":1.0}', complete=False),
        ToolResult(call_id="a", parts=(Text("x"), ServerBlock(origin=CLAUDE, kind="k", data="{}"))),
        ServerBlock(origin=CLAUDE, kind="web_search", data='{"a": 1}'),
    ],
)
def test_every_part_comes_back_from_json(part: Part):
    message = Message(role="assistant", parts=(part,))
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_a_message_stored_with_the_former_spelling_note_is_decoded_without_it() -> None:
    stored = b'{"role":"user","parts":[],"kept":{"dialect":"gemini","fields":"{}","form":"-x"}}'
    expected = Message(role="user", parts=(), kept=Kept(dialect="gemini"))
    assert msgspec.json.decode(stored, type=Message) == expected
