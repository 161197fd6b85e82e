from tests.prompted.xml_reading import EDIT, READ, WRITE, read
from toolwire.messages import (
    CallKind,
    Media,
    MediaKind,
    Message,
    Outcome,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.prompted.xml.shape import XmlTools
from toolwire.prompted.xml.values import as_text

TOOLS = XmlTools([READ, WRITE, EDIT])
IMAGE = Media.of_bytes(MediaKind.IMAGE, "image/png", b"png")
CALL = ToolCall(id="1", name="read_file", arguments='{"path":"a.py"}')
CALL_TEXT = "<read_file>\n<path>a.py</path>\n</read_file>"


def user(*parts: Text | Media | ToolResult) -> Message:
    return Message(role="user", parts=parts)


def assistant(*parts: Text | Thinking | ToolCall) -> Message:
    return Message(role="assistant", parts=parts)


def result(*parts: Text | Media, error: bool = False, call: str = "1") -> ToolResult:
    outcome = Outcome.FAILED if error else Outcome.DONE
    return ToolResult(call_id=call, name="read_file", parts=parts, is_error=error, outcome=outcome)


def test_a_turn_is_rendered_as_the_model_would_have_written_it():
    said = (
        user(Text("Read it.")),
        assistant(Thinking("hm"), Text("I look."), CALL),
        user(result(Text("1 | x")), Text("And now?")),
    )
    assert as_text(said, TOOLS) == (
        user(Text("Read it.")),
        assistant(Thinking("hm"), Text(f"I look.\n\n{CALL_TEXT}")),
        user(Text("[read_file for 'a.py'] Result:\n1 | x\n\nAnd now?")),
    )


def test_errors_nothing_and_media_have_their_own_forms():
    for parts, error, expected in (
        ((Text("no such file"),), True, (Text("<error>no such file</error>"),)),
        ((), False, (Text("(tool did not return anything)"),)),
        ((), True, (Text("<error>(tool did not return anything)</error>"),)),
        ((Text("seen"), IMAGE), False, (Text("seen"), IMAGE)),
    ):
        (_, answer) = as_text([assistant(CALL), user(result(*parts, error=error))], TOOLS)
        first = Text(f"[read_file for 'a.py'] Result:\n{expected[0].text}")
        assert answer.parts == (first, *expected[1:])


def test_an_image_alone_follows_the_head_line():
    (_, answer) = as_text([assistant(CALL), user(result(IMAGE))], TOOLS)
    assert answer.parts == (Text("[read_file for 'a.py'] Result:"), IMAGE)


def test_a_message_without_calls_is_left_as_it_is():
    said = (user(Text("a"), Text("b"), IMAGE), assistant(Text("c")))
    assert as_text(said, TOOLS) == said


def test_a_call_without_result_is_answered():
    cut = ToolCall(id="2", name="read_file", arguments='{"path":"a', complete=False)
    (_, answer, _, late) = as_text([assistant(CALL), user(Text("go on")), assistant(cut)], TOOLS)
    assert answer.text.startswith("[read_file for 'a.py'] Result:\n<error>no result is known")
    assert answer.text.endswith("go on")
    assert late.text == "[read_file] Result:\n<error>it did not run: it was cut off</error>"


def test_results_are_paired_with_the_nearest_call_of_their_id():
    other = ToolCall(id="1", name="edit", arguments='{"path":"b.py"}')
    said = as_text(
        [assistant(CALL), user(result(Text("x"))), assistant(other), user(result(Text("y")))],
        TOOLS,
    )
    assert said[3].text == "[edit for 'b.py'] Result:\ny"


def test_a_call_of_a_tool_that_is_not_offered_is_still_rendered():
    gone = ToolCall(id="9", name="gone", arguments='{"a":"x < y","b":[1]}')
    (message, *_) = as_text([assistant(gone)], TOOLS)
    assert message.text == "<gone>\n<a>x < y</a>\n<b>[1]</b>\n</gone>"
    patch = ToolCall(id="9", name="patch", arguments="*** x", kind=CallKind.FREEFORM)
    (message, *_) = as_text([assistant(patch)], TOOLS)
    assert message.text == "<patch>\n<input>*** x</input>\n</patch>"


def test_arguments_that_are_not_a_json_object_are_shown_as_they_are():
    odd = ToolCall(id="9", name="read_file", arguments='{"path": ')
    (message, *_) = as_text([assistant(odd)], TOOLS)
    assert message.text == '<read_file>\n{"path":\n</read_file>'


def test_long_keys_are_shortened_to_one_line():
    call = ToolCall(id="1", name="read_file", arguments='{"path":"a\\n%s"}' % ("b" * 200))
    (_, answer) = as_text([assistant(call), user(result(Text("x")))], TOOLS)
    head = answer.text.splitlines()[0]
    assert head.startswith("[read_file for 'a bbb")
    assert len(head) < 120


def test_what_was_read_is_rendered_so_that_it_reads_back():
    text = "Now.\n\n<write_to_file>\n<path>a</path>\n<content>\na\nb\n</content>\n</write_to_file>"
    message = read(text).message
    (rendered, *_) = as_text([message], TOOLS)
    assert rendered.text == text
