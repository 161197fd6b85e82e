import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest

from tests.prompted.leaked_speaking import (
    MARKED,
    OPEN,
    all_events,
    asked,
    ids,
    notices,
    said,
    saying,
    spec,
    told,
)
from toolwire.errors import IncompleteStream, UnknownName
from toolwire.events import (
    CitationAdded,
    Finished,
    ModelEvent,
    Notice,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import Citation, Origin, Seal
from toolwire.prompted import leaked
from toolwire.request import FreeformTool, ModelRequest, ToolChoice, ToolSpec

GREET = spec("greet", who="string")
CALL = '<tool_call>{"name": "greet", "arguments": {"who": "Ada"}}</tool_call>'
MADE = ("greet", '{"who": "Ada"}')

PROSE = [
    "Models write <tool_call> and </tool_call> around a call.",
    f"Write it so: `{CALL}` and nothing else.",
    f"```xml\n{CALL}\n```\nThat is how it looks.",
    f"~~~\n{CALL}\n~~~",
    f"````md\n```\n{CALL}\n```\n````",
    "The tool greet takes who; greet(who) is how I call it.",
    '```json\n{"who": "Ada", "name": "greet"}\n```',
    '```json\n{"name": "greet", "version": 2}\n```',
    '```json\n{"name": "other", "arguments": {"who": "Ada"}}\n```',
    '```python\ngreet(who="Ada")\n```',
    'Use {"name": "greet", "arguments": {"who": "Ada"}} for that.',
    "See [greet(who)](https://a.example) and [1].",
    "[greet(who)](https://a.example)",
    "[1] first\n[2] second",
    '{"who": "Ada"}',
    "{not json} at all",
    "a < b, <invoke> is a word, <function=> too, <|channel|>analysis<|message|>x<|end|>",
    "functools[0] is an index; [TOOL_CALLS] is a token; [TOOL_CALL] as well",
    "<|python_tag|>print('hello')",
    "<tool_call>greet the person</tool_call>",
    "<|tool_calls_section_begin|> starts a section",
]


@pytest.mark.parametrize("text", PROSE)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_prose_that_speaks_of_calls_is_not_a_call(text: str, size: int) -> None:
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    assert said(told(chunks, [GREET], tuple(leaked.FORMATS))) == [text]


def test_a_call_after_prose_about_calls_is_made() -> None:
    text = f"I use `<tool_call>` now, <tool_call> that is.\n{CALL}"
    assert said(told([text], [GREET], ["hermes"])) == [text.removesuffix(CALL), MADE]


def test_plain_text_is_passed_on_at_once() -> None:
    chunks = ["Hello ", "there <", "b> and ", "<tool", "box"]
    events = told(chunks, [GREET], ["hermes"])
    assert events[:-1] == [
        TextDelta("Hello "),
        TextDelta("there "),
        TextDelta("<b> and "),
        TextDelta("<toolbox"),
    ]


def test_blanks_between_calls_are_dropped_and_words_kept() -> None:
    events = told([f"\n{CALL}\n\n{CALL} so\n{CALL}\n"], [GREET], ["hermes"])
    assert said(events) == [MADE, MADE, " so\n", MADE]


def test_blanks_before_words_are_emitted_once() -> None:
    chunks = ["\n", " ", "one", " two", "\n"]
    assert said(told(chunks, [GREET], ["hermes"])) == ["\n one two\n"]
    assert said(told([" \n"], [GREET], ["hermes"])) == [" \n"]


def test_a_seal_is_dropped_with_the_text_it_sealed() -> None:
    seal = Seal(origin=Origin("d"), data="{}")
    spoken: list[ModelEvent] = [
        TextDelta(CALL),
        TextEnded(seal),
        TextDelta("words"),
        TextEnded(seal),
        Finished(reason=StopReason.END),
    ]
    events = all_events(leaked.wrap(saying(spoken), ["hermes"], ids()), asked([GREET]))
    assert [it for it in events if not isinstance(it, Notice)] == [
        ToolCallStarted("id1", "greet", made_id=True),
        ToolCallDelta("id1", MADE[1]),
        ToolCallEnded("id1"),
        TextDelta("words"),
        TextEnded(seal),
        Finished(reason=StopReason.TOOL_CALLS),
    ]
    assert notices(events) == ["printed_call", "seal_dropped"]


def test_a_call_does_not_go_on_across_another_kind_of_part() -> None:
    spoken: list[ModelEvent] = [
        TextDelta(CALL[:20]),
        ThinkingDelta("hm"),
        TextDelta(CALL[20:]),
        Finished(reason=StopReason.END),
    ]
    events = all_events(leaked.wrap(saying(spoken), ["hermes"], ids()), asked([GREET]))
    assert [it for it in events if not isinstance(it, Notice)] == spoken


def test_the_rest_of_a_call_that_was_cut_by_another_part_is_not_looked_through() -> None:
    spoken: list[ModelEvent] = [
        TextDelta('<tool_call>{"name": "write", "arguments": {"text": "'),
        ThinkingDelta("hm"),
        TextDelta(CALL),
        Finished(reason=StopReason.END),
    ]
    events = all_events(leaked.wrap(saying(spoken), ["hermes"], ids()), asked([GREET]))
    assert [it for it in events if not isinstance(it, Notice)] == spoken


def test_a_citation_in_the_middle_does_not_cut_a_call() -> None:
    cited = CitationAdded(Citation(dialect="d", data="{}"))
    spoken: list[ModelEvent] = [
        TextDelta(f"so {CALL[:20]}"),
        cited,
        TextDelta(CALL[20:]),
        Finished(reason=StopReason.END),
    ]
    events = all_events(leaked.wrap(saying(spoken), ["hermes"], ids()), asked([GREET]))
    assert events[:2] == [TextDelta("so "), cited]
    assert said(it for it in events if it != cited) == ["so ", MADE]


def test_a_broken_stream_still_gives_the_text_that_was_held_back() -> None:
    async def model(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield TextDelta("so " + CALL[:20])
        raise IncompleteStream("gone")

    seen: list[ModelEvent] = []

    async def read() -> None:
        async for event in leaked.wrap(model, ["hermes"], ids())(asked([GREET])):
            seen.append(event)

    with pytest.raises(IncompleteStream):
        asyncio.run(read())
    assert said(seen) == ["so " + CALL[:20]]


def test_a_reader_that_stops_early_stops_the_model() -> None:
    closed: list[bool] = []

    async def model(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        try:
            yield TextDelta("one")
            yield TextDelta("two")
        finally:
            closed.append(True)

    async def read() -> None:
        events = leaked.wrap(model, ["hermes"], ids())(asked([GREET]))
        await anext(events)
        await events.aclose()  # pyright: ignore[reportAttributeAccessIssue] - a generator here

    asyncio.run(read())
    assert closed == [True]


def test_markup_inside_a_broken_call_is_not_a_call() -> None:
    inner = '<invoke name="greet"><parameter name="who">Eve</parameter></invoke>'
    broken = f'<tool_call>{{"name": "write", "arguments": {{"text": "\\x {inner}"}}}}</tool_call>'
    events = told([f"{broken}\n{CALL}"], [GREET], MARKED)
    assert said(events) == [f"{broken}\n", MADE]


def test_markup_inside_a_call_that_was_cut_is_not_a_call() -> None:
    inner = '<invoke name="greet"><parameter name="who">Eve</parameter></invoke>'
    cut = f'<tool_call>{{"name": "write", "arguments": {{"text": "{inner}'
    assert said(told([cut], [GREET], MARKED, StopReason.LENGTH)) == [cut]


def test_a_value_may_hold_its_own_closing_tag() -> None:
    write = spec("write", path="string", text="string")
    text = (
        "<function=write><parameter=path>a.md</parameter><parameter=text>\nuse </parameter> here\n"
        "</parameter></function>"
    )
    events = told([text], [write], ["qwen3-coder"])
    assert said(events) == [("write", '{"path":"a.md","text":"use </parameter> here"}')]


def test_a_value_whose_end_is_not_certain_is_refused() -> None:
    write = ToolSpec(name="write", parameters=OPEN)
    text = "<function=write><parameter=a>1<parameter=b>2</parameter></function>"
    assert said(told([text], [write], ["qwen3-coder"])) == [text]


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("string", "5", "5"),
        ("string", " padded ", " padded "),
        ("integer", "5", 5),
        ("number", " 0.5 ", 0.5),
        ("boolean", "True", True),
        ("boolean", "false", False),
        ("object", '{"a": [1]}', {"a": [1]}),
        ("object", "{'a': [True, None]}", {"a": [True, None]}),
        ("array", "['x']", ["x"]),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "None", None),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, '["x"]', ["x"]),
        ({"type": ["string", "integer"]}, "5", "5"),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({}, "5", 5),
        ({}, "five", "five"),
        ({"type": "STRING"}, "5", "5"),
    ],
)
def test_a_tagged_value_has_the_kind_its_schema_asks_for(
    kind: object, written: str, value: object
) -> None:
    text = f"<tool_call>set<arg_key>x</arg_key><arg_value>{written}</arg_value></tool_call>"
    found = said(told([text], [spec("set", x=kind)], ["glm"]))
    assert [(name, json.loads(it)) for name, it in found] == [("set", {"x": value})]


@pytest.mark.parametrize(
    "arguments",
    ['{"who": 5}', '{"who": "Ada", "more": 1}', "{}", "[]", '"x"', '{"who": NaN}', "{'who': 'x'}"],
)
def test_arguments_must_fit_the_schema(arguments: str) -> None:
    text = f'<tool_call>{{"name": "greet", "arguments": {arguments}}}</tool_call>'
    assert said(told([text], [GREET], ["hermes"])) == [text]


def test_a_list_of_calls_is_taken_whole_or_not_at_all() -> None:
    one = '{"name": "greet", "arguments": {"who": "Ada"}}'
    text = f'[TOOL_CALLS][{one}, {{"name": "nobody", "arguments": {{}}}}]'
    assert said(told([text], [GREET], ["mistral"])) == [text]


def test_a_tool_without_a_schema_takes_no_arguments() -> None:
    text = '<tool_call>{"name": "now", "arguments": %s}</tool_call>'
    tools = [ToolSpec(name="now")]
    assert said(told([text % "{}"], tools, ["hermes"])) == [("now", "{}")]
    assert said(told([text % '{"a": 1}'], tools, ["hermes"])) == [text % '{"a": 1}']


def test_schemas_that_point_elsewhere_are_never_fetched() -> None:
    remote = ToolSpec(
        name="greet", parameters={"properties": {"who": {"$ref": "http://127.0.0.1:1/x"}}}
    )
    events = told([CALL], [remote], ["hermes"])
    assert said(events) in ([CALL], [MADE])


def test_arguments_keep_the_text_the_model_wrote() -> None:
    text = '<tool_call>{"name":"greet","arguments":{ "who" :  "\\u0041da" }}</tool_call>'
    assert said(told([text], [GREET], ["hermes"])) == [("greet", '{ "who" :  "\\u0041da" }')]


def test_tool_choice_rules_over_printed_calls() -> None:
    other = spec("other")
    spoken: list[ModelEvent] = [TextDelta(CALL), Finished(reason=StopReason.END)]
    model = leaked.wrap(saying(spoken), ["hermes"], ids())
    none = asked([GREET, other], ToolChoice(mode="none"))
    named = asked([GREET, other], ToolChoice(mode="required", names=("other",)))
    assert said(all_events(model, none)) == [CALL]
    assert said(all_events(model, named)) == [CALL]


def test_freeform_tools_are_not_called_so() -> None:
    assert said(told([CALL], [FreeformTool(name="greet")], ["hermes"])) == [CALL]


def test_a_namespaced_tool_is_known_by_its_joined_name() -> None:
    tool = ToolSpec(name="greet", namespace="people", parameters=OPEN)
    text = CALL.replace('"greet"', '"people__greet"')
    events = told([text], [tool], ["hermes"])
    assert ToolCallStarted("id1", "greet", namespace="people", made_id=True) in events


def test_harmony_may_stop_without_its_stop_token_but_not_be_cut_there() -> None:
    text = '<|channel|>commentary to=functions.greet<|message|>{"who": "Ada"}'
    assert said(told([text], [GREET], ["harmony"])) == [MADE]
    assert said(told([text], [GREET], ["harmony"], StopReason.LENGTH)) == [text]


def test_no_formats_leave_the_model_alone() -> None:
    model = saying([])
    assert leaked.wrap(model, (), ids()) is model


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(UnknownName, match='did you mean "hermes"'):
        leaked.wrap(saying([]), ["hermess"], ids())


@pytest.mark.parametrize(
    "unit",
    [
        "<tool_call>",
        '<tool_call>{"name": "x", "a": "',
        '<invoke name="greet"><parameter name="who">',
        "<tool_call>greet\n<arg_key>",
        "`",
        "<",
        "\n   ",
        "<function=greet><parameter=who></parameter>",
        '```json\n{"name": "',
    ],
)
def test_the_cost_grows_with_the_text_and_no_faster(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        told([text[at : at + 3] for at in range(0, len(text), 3)], [GREET], MARKED)
        return time.process_time() - start

    seconds(2_000)
    small, large = seconds(10_000), seconds(60_000)
    assert large < 6 * small * 3 + 0.2
