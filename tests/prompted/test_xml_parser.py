import pytest

from tests.prompted.xml_reading import (
    RUN,
    STRING,
    TOOLS,
    arguments,
    read,
    tool,
)
from toolwire.events import (
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import CallKind, Text
from toolwire.prompted.xml.parser import XmlLimits, XmlParser
from toolwire.request import FreeformTool, ToolSpec

CALL = "<read_file>\n<path>a.py</path>\n</read_file>"


def wrote(content: str, after: str = "") -> str:
    return (
        f"<write_to_file>\n<path>a.md</path>\n<content>\n{content}\n</content>\n"
        f"</write_to_file>{after}"
    )


def written(content: str) -> list[object]:
    return [("write_to_file", {"path": "a.md", "content": content})]


def test_a_call_gives_the_events_of_a_native_one():
    assert read(f"I look.\n\n{CALL}\n").events == [
        TextDelta("I look."),
        ToolCallStarted("c1", "read_file", made_id=True),
        ToolCallDelta("c1", '{"path":"a.py"}'),
        ToolCallEnded("c1"),
    ]


def test_free_text_is_shown_while_it_streams():
    parser = XmlParser(TOOLS, lambda: "c")
    events = parser.feed('<write_to_file>\n<path>a</path>\n<content>\nfirst "line"\nsecond')
    assert events == [
        ToolCallStarted("c", "write_to_file", made_id=True),
        ToolCallDelta("c", '{"path":"a","content":"first \\"line\\"\\nsecond'),
    ]
    assert parser.feed(" half </cont") == [ToolCallDelta("c", " half ")]
    assert parser.feed("rast>") == [ToolCallDelta("c", "</contrast>")]


def test_only_a_possible_tag_is_held_back():
    parser = XmlParser(TOOLS, lambda: "c")
    assert parser.feed("a < b and <read") == [TextDelta("a < b and")]
    assert parser.feed("y> c") == [TextDelta(" <ready> c")]


def test_several_calls_in_one_message_are_all_read():
    both = read(f"{CALL}\n\nand\n{wrote('x')}\n{CALL}")
    assert both.said == [
        ("read_file", {"path": "a.py"}),
        "and",
        *written("x"),
        ("read_file", {"path": "a.py"}),
    ]


def test_a_second_call_is_refused_where_one_at_a_time_is_asked_for():
    both = read(f"{CALL}\n{wrote('x')}\nbye", single=True)
    assert both.said == [("read_file", {"path": "a.py"})]
    assert [notice.kind for notice in both.notices] == ["extra_call"]


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{CALL}\n```",
        f"```xml\n{CALL}\n```\n",
        f"~~~\n{CALL}\n~~~",
        f"````\n```\n{CALL}\n```\n````",
        f"  ```\n{CALL}\n```",
        f"```\n{CALL}",
        f"```python\n```xml\n{CALL}\n```",
        "`<read_file><path>a</path></read_file>`",
        "use <read_file><path>a</path></read_file> for it",
        "<read_file> is a tool",
        "<read_files>\n<path>a</path>",
        "<unknown>\n<path>a</path>\n</unknown>",
        "<read_file path='a'/>",
        "a <",
        "</read_file>",
    ],
)
def test_what_is_not_a_call_stays_text(text: str):
    assert read(text).message.parts == (Text(text.strip()),)


def test_a_call_after_a_closed_fence_or_inline_code_is_made():
    text = f"```\nx\n```\n`<read_file>` and ``` y ``` and `\n{CALL}"
    assert read(text).said[1:] == [("read_file", {"path": "a.py"})]


def test_thinking_tags_are_read_anywhere_outside_code():
    text = f"Hm `<think>` <think>\n{CALL}\n</think>Well.\n<thinking>more</thinking>\n{CALL}"
    assert read(text).events[:5] == [
        TextDelta("Hm `<think>`"),
        ThinkingDelta(CALL),
        ThinkingEnded(),
        TextDelta("Well."),
        ThinkingDelta("more"),
    ]
    assert read(text).said[-1] == ("read_file", {"path": "a.py"})


def test_values_are_raw_and_entities_are_not_decoded():
    assert read(wrote("a &lt; b && c")).said == written("a &lt; b && c")


def test_cdata_is_unwrapped_and_taken_exactly():
    inside = " \n</content>\n</write_to_file>\n]]> <![CDATA[ "
    escaped = inside.replace("]]>", "]]]]><![CDATA[>")
    text = (
        "<write_to_file>\n<path><![CDATA[ a ]]></path>\n"
        f"<content><![CDATA[{escaped}]]></content>\n</write_to_file>"
    )
    assert read(text).said == [("write_to_file", {"path": " a ", "content": inside})]


def test_one_line_end_is_taken_from_free_text_and_all_space_from_short_values():
    text = (
        "<write_to_file>\n<path>\n  a.md \n</path>\n<content>\n\n  x \n\n</content>\n"
        "</write_to_file>"
    )
    assert read(text).said == [("write_to_file", {"path": "a.md", "content": "\n  x \n"})]


def test_missing_parameters_are_left_to_the_scheduler():
    assert read("<write_to_file>\n<path>a</path>\n</write_to_file>").said == [
        ("write_to_file", {"path": "a"})
    ]
    assert read("<read_file>\n</read_file>").said == [("read_file", {})]
    assert read("<read_file/>").said == [("read_file", {})]


def test_unknown_parameters_are_left_to_the_scheduler():
    text = "<write_to_file><content>x</content><mode>2</mode></write_to_file>"
    assert read(text).said == [("write_to_file", {"content": "x", "mode": 2})]


def test_a_repeated_parameter_does_not_overwrite_the_first():
    again = read("<read_file>\n<path>a</path>\n<path>b</path>\n</read_file>")
    assert again.said == [("read_file", {"path": "a"})]
    assert [notice.kind for notice in again.notices] == ["repeated_parameter"]


def test_words_between_parameters_are_left_out_with_a_notice():
    stray = read("<read_file>\n<path>a</path> well\n</read_file>")
    assert stray.said == [("read_file", {"path": "a"})]
    assert [notice.kind for notice in stray.notices] == ["stray_text"]


def test_a_misspelled_tool_is_text_with_a_suggestion_and_nothing_in_it_runs():
    text = f"<read_fil>\n<path>x</path>\n{CALL}\n</read_fil>"
    wrong = read(text)
    assert wrong.message.parts == (Text(text),)
    assert [notice.message for notice in wrong.notices] == [
        '"read_fil" is not a tool and was not called; did you mean "read_file"?'
    ]


def test_a_tool_that_may_not_be_called_now_is_text_with_a_notice():
    text = wrote(CALL)
    refused = read(f"{text}\n{CALL}", only=["read_file"])
    assert refused.said == [text, ("read_file", {"path": "a.py"})]
    assert [notice.kind for notice in refused.notices] == ["tool_not_allowed"]


def test_a_call_that_is_not_closed_is_incomplete():
    open_call = read("<read_file>\n<path>a</path>\n")
    assert open_call.events[-2] == ToolCallEnded("c1", complete=False)
    assert [notice.kind for notice in open_call.notices] == ["unclosed_call"]


def test_a_call_that_the_next_one_interrupts_is_incomplete():
    two = read(f"<read_file>\n<path>a</path>\n{wrote('x')}")
    assert [call.complete for call in two.message.calls] == [False, True]


def test_a_call_too_large_ends_with_a_notice_and_does_not_run():
    large = read(wrote("x" * 500), limits=XmlLimits(call=300))
    assert [call.complete for call in large.message.calls] == [False]
    assert [notice.kind for notice in large.notices] == ["too_large"]
    assert [n.kind for n in read("x" * 50, limits=XmlLimits(message=40)).notices] == ["too_large"]


VALUES = tool(
    "values",
    s=STRING,
    i={"type": "integer"},
    n={"type": "number"},
    b={"type": "boolean"},
    z={"type": "null"},
    maybe={"type": ["string", "null"]},
    any={},
    list={"type": "array", "items": STRING},
    matrix={"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
    object={"type": "object", "properties": {"path": STRING, "deep": {"$ref": "#/$defs/deep"}}},
    free={"type": "object"},
)
VALUES.parameters["$defs"] = {"deep": {"type": "object", "properties": {"x": {"type": "integer"}}}}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("s", "12", "12"),
        ("i", " 12\n", 12),
        ("i", "12 apples", "12 apples"),
        ("i", "123456789012345678901234567890", 123456789012345678901234567890),
        ("n", "-1.5e3", -1500.0),
        ("b", "True", True),
        ("b", "maybe", "maybe"),
        ("z", "null", None),
        ("maybe", "null", None),
        ("maybe", "nil", "nil"),
        ("maybe", "<![CDATA[null]]>", "null"),
        ("any", '{"a": [1]}', {"a": [1]}),
        ("any", "{a}", "{a}"),
        ("any", "true", True),
        ("list", "<item>a</item>\n<item>b <i> </item> c</item>", ["a", "b <i> </item> c"]),
        ("list", '["a", "b"]', ["a", "b"]),
        ("list", "<suggest>a</suggest>", ["a"]),
        ("list", "", []),
        ("list", "just words", "just words"),
        (
            "matrix",
            "<item><item>1</item><item>2</item></item><item><item>3</item></item>",
            [[1, 2], [3]],
        ),
        ("matrix", "<item>[1, 2]</item>", [[1, 2]]),
        (
            "object",
            "\n<path>a</path>\n<deep>\n<x>1</x>\n</deep>\n",
            {"path": "a", "deep": {"x": 1}},
        ),
        ("object", '{"path": "</path>"}', {"path": "</path>"}),
        ("object", "<path>a", "<path>a"),
        ("free", '{"a": 1}', {"a": 1}),
        ("free", "", {}),
    ],
)
def test_values_follow_the_schema(name: str, text: str, value: object):
    call = read(f"<values>\n<{name}>{text}</{name}>\n</values>", [VALUES])
    assert call.said == [("values", {name: value})]


def test_arguments_may_be_one_json_object():
    text = '<read_file>\n{"path": "}</read_fil", "lines": ["1"]}\n</read_file>\nbye'
    whole = read(text)
    assert whole.said == [("read_file", {"path": "}</read_fil", "lines": ["1"]}), "bye"]
    assert whole.events == read(list(text)).events


def test_a_freeform_tool_gets_its_text_as_it_is():
    patch = '*** Begin\n+ "x" </input> y\n*** End'
    text = f"<apply_patch>\n<input>\n{patch}\n</input>\n</apply_patch>"
    call = read(text, [FreeformTool(name="apply_patch")]).message.calls[0]
    assert (call.kind, call.arguments, call.complete) == (CallKind.FREEFORM, patch, True)


def test_a_name_that_is_not_a_tag_is_called_by_its_alias():
    odd = ToolSpec(name="do it", namespace="mcp", parameters=RUN.parameters)
    from toolwire.prompted.xml.shape import XmlTools

    (tag,) = XmlTools([odd]).by_tag
    call = read(f"<{tag}>\n<command>ls</command>\n</{tag}>", [odd]).message.calls[0]
    assert (call.name, call.namespace) == ("do it", "mcp")


def test_a_tool_and_its_parameter_may_have_one_name():
    search = tool("search", search=STRING)
    call = read("<search>\n<search>a </search> b</search>\n</search>", [search])
    assert call.said == [("search", {"search": "a </search> b"})]


def test_calls_without_spaces_between_tags_are_read():
    text = "<edit><path>a</path><old_string>x</old_string><new_string>y</new_string></edit>"
    said = [("edit", {"path": "a", "old_string": "x", "new_string": "y"})]
    assert read(text).said == said
    assert read(text + text).said == said + said


def test_each_delta_is_the_growing_json_of_the_final_arguments():
    text = f"go\n{wrote('a </content> b')}\n{CALL}"
    for event_list in (read(list(text)).events, read(text).events):
        spelled = [e.arguments for e in event_list if isinstance(e, ToolCallDelta)]
        assert [arguments(json) for json in spelled] == [
            {"path": "a.md", "content": "a </content> b"},
            {"path": "a.py"},
        ]
