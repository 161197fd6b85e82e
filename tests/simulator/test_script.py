import subprocess
import sys
from pathlib import Path

import pytest

from toolwire.errors import BadInput
from toolwire.events import StopReason, Usage
from toolwire.messages import Message, Text, ToolResult
from toolwire.request import ModelRequest
from toolwire.simulator import (
    Call,
    Decline,
    Fault,
    Question,
    Reply,
    Say,
    Think,
    parse,
    replies,
    reply,
)


def question(text: str = "", number: int = 0, result: str = "") -> Question:
    parts = (ToolResult(call_id="1", parts=(Text(result),)),) if result else (Text(text),)
    messages = (
        Message(role="user", parts=(Text(text),)),
        Message(role="user", parts=parts),
    )
    request = ModelRequest(model="m", messages=messages)
    return Question(dialect="gemini", request=request, number=number)


def said(given: Reply) -> str:
    return "".join(piece.text for piece in given.pieces if isinstance(piece, Say))


def test_replies_are_given_in_order_and_then_the_default() -> None:
    answer = replies("one", reply("two", times=2), reply("else", default=True)).answering()
    assert [said(answer(question())) for _ in range(5)] == ["one", "two", "two", "else", "else"]


def test_a_reply_that_fits_comes_before_the_next_in_order() -> None:
    answer = replies("one", reply("sunny", when="weather"), "two").answering()
    texts = ["hello", "the weather?", "weather again", "bye"]
    assert [said(answer(question(text))) for text in texts] == ["one", "sunny", "sunny", "two"]


def test_a_reply_may_fit_the_last_result() -> None:
    answer = replies(reply("found", when="42"), reply("no", default=True)).answering()
    assert said(answer(question("42 in the question", result="nothing"))) == "no"
    assert said(answer(question("q", result="it is 42"))) == "found"


def test_a_script_at_its_end_says_so() -> None:
    answer = replies("one").answering()
    answer(question())
    with pytest.raises(BadInput, match="no reply left"):
        answer(question())


def test_one_script_starts_anew_for_each_run() -> None:
    script = replies("one", "two")
    assert said(script.answering()(question())) == said(script.answering()(question())) == "one"


def test_a_reply_repeats_what_it_received() -> None:
    echo = reply("you said {last_user_text}, it said {last_result}, {model} {number} {other}")
    found = replies(echo).answering()(question("hi", 3, result="ok"))
    assert said(found) == "you said hi, it said ok, m 3 {other}"


def test_what_was_received_is_escaped_inside_arguments() -> None:
    echo = reply(Call.of("say", text="{last_user_text}"))
    found = replies(echo).answering()(question('a "b"\n'))
    assert found.pieces == (Call(name="say", arguments='{"text":"a \\"b\\"\\n"}'),)


def test_the_end_follows_from_the_pieces_unless_it_is_named() -> None:
    assert reply("x").reason is StopReason.END
    assert reply("x", Call.of("f")).reason is StopReason.TOOL_CALLS
    assert reply(Decline("no")).reason is StopReason.REFUSAL
    assert reply(Call.of("f"), stop=StopReason.LENGTH).reason is StopReason.LENGTH


def test_a_file_says_everything_a_reply_can() -> None:
    script = parse(
        """
        model = "sim-1"

        [[reply]]
        thinking = "I look."
        text = "Looking."
        usage = { input = 10, output = 4 }
        calls = [
          { name = "read_file", arguments = { path = "a.txt" } },
          { name = "read_file", arguments = '{"path": ', id = "c2", complete = false },
        ]

        [[reply]]
        when = "again"
        pieces = [{ text = "a" }, { thinking = "b" }, { call = { name = "now" } }]
        stop = "length"

        [[reply]]
        refusal = "No."
        default = true

        [[reply]]
        fault = { status = 429, retry_after = "3" }
        times = 2
        """
    )
    first = Call(name="read_file", arguments='{"path":"a.txt"}')
    second = Call(name="read_file", arguments='{"path": ', id="c2", complete=False)
    assert script.model == "sim-1"
    assert script.replies == (
        Reply(
            pieces=(Think("I look."), Say("Looking."), first, second),
            usage=Usage(input=10, output=4),
        ),
        Reply(
            pieces=(Say("a"), Think("b"), Call(name="now")), when="again", stop=StopReason.LENGTH
        ),
        Reply(pieces=(Decline("No."),), default=True),
        Reply(fault=Fault(status=429, retry_after="3"), times=2),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[reply]\n", "script: "),
        ("", "missing required field `reply`"),
        ('[[reply]]\ntxet = "x"', "unknown field `txet`"),
        ("[[reply]]\nfault = { staus = 3 }", "unknown field `staus`"),
        ('[[reply]]\nbody_file = "nowhere.sse"', 'cannot read "nowhere.sse"'),
    ],
)
def test_a_mistake_in_a_file_is_named(text: str, words: str) -> None:
    with pytest.raises(BadInput, match="script: ") as caught:
        parse(text)
    assert words in str(caught.value)


def test_a_script_is_read_without_loading_the_http_library() -> None:
    code = "import sys, toolwire.simulator; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_script_in_the_documentation_is_one() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "simulator.md").read_text()
    script = parse(page.partition("```toml\n")[2].partition("```")[0])
    assert script.model == "sim-1"
    assert [given.default for given in script.replies] == [False, False, False, True]
