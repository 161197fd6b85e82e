import pytest

from toolwire.events import Usage
from toolwire.gateway.counting import Calibration, count_answer, estimate
from toolwire.messages import Media, MediaKind, Message, Text
from toolwire.request import ModelRequest, ToolSpec

LONG = "Words of many kinds, and more of them. " * 50


def asked(**members: object) -> ModelRequest:
    hello = Message(role="user", parts=(Text("hello"),))
    return ModelRequest(**{"model": "m", "messages": (hello,), **members})  # pyright: ignore


def test_everything_that_is_sent_is_counted():
    bare = estimate(asked())
    assert 1 <= bare < 20
    assert estimate(asked(system=(Text(LONG),))) > bare + 400
    tool = ToolSpec(name="read", description=LONG)
    assert estimate(asked(tools=(tool,))) > bare + 400
    picture = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA")
    with_picture = Message(role="user", parts=(picture,))
    assert estimate(asked(messages=(with_picture,))) > 1000


def test_a_count_is_rather_too_high_and_follows_the_vendor():
    calibration = Calibration()
    assert calibration.tokens("m", 1000) == 1101
    calibration.counted("m", 1000, Usage(input=1500, cached=500, cache_in_input=False))
    assert calibration.tokens("m", 1000) == 2201
    assert calibration.tokens("other", 1000) == 1101
    calibration.counted("m", 1000, Usage(input=50))
    calibration.counted("m", 1000, Usage())
    assert calibration.tokens("m", 1000) == 2201
    calibration.counted("m", 1, Usage(input=100_000))
    assert calibration.tokens("m", 1000) == 3301
    for number in range(2000):
        calibration.counted(str(number), 1000, Usage(input=1000))
    assert len(calibration._scales) == 500


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("anthropic-messages", {"input_tokens": 7}),
        ("gemini", {"totalTokens": 7}),
        ("code-assist", {"totalTokens": 7}),
        ("openai-responses", {"object": "response.input_tokens", "input_tokens": 7}),
    ],
)
def test_the_answer_has_the_form_of_the_client(name: str, wanted: dict[str, object]):
    assert count_answer(name, 7) == wanted
