from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.prompted.test_xml_hazards import FRAGMENTS, MESSAGE
from tests.prompted.xml_reading import STRING, TOOLS, arguments, read, tool
from toolwire.messages import ToolCall
from toolwire.prompted.xml.shape import XmlTools
from toolwire.prompted.xml.values import render_call
from toolwire.request import ToolSpec

TAGS = ["<all>", "</all>", "<text>", "</text>", "<items>", "</items>", "</path>", "</item>"]
tagged_text = st.lists(st.sampled_from([*FRAGMENTS, *TAGS]) | st.text(max_size=4), max_size=12).map(
    "".join
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | tagged_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(tagged_text, inner, max_size=3),
    max_leaves=6,
)
ENTRY = {
    "type": "object",
    "properties": {
        "path": STRING,
        "line": {"type": ["integer", "null"]},
        "inner": {"type": "array", "items": {"type": "array", "items": STRING}},
    },
}
ALL = tool(
    "all",
    text=STRING,
    path=STRING,
    maybe={"type": ["string", "null"]},
    number={"type": "number"},
    flag={"type": "boolean"},
    items={"type": "array", "items": ENTRY},
    entry=ENTRY,
    words={"type": "array", "items": STRING},
    any={},
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "path": tagged_text,
        "line": st.none() | st.integers(),
        "inner": st.lists(st.lists(tagged_text, max_size=2), max_size=2),
        "not declared": json_values,
    },
)
fitting = st.fixed_dictionaries(
    {},
    optional={
        "text": tagged_text,
        "path": tagged_text,
        "maybe": st.none() | tagged_text,
        "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
        "flag": st.booleans(),
        "items": st.lists(entries, max_size=3),
        "entry": entries,
        "words": st.lists(tagged_text, max_size=3),
        "any": json_values,
        "undeclared": json_values,
    },
)


def calls_of(text: str, *tools: ToolSpec) -> list[tuple[str, object]]:
    return [
        (call.name, arguments(call.arguments))
        for call in read(text, tools).message.calls
        if call.complete
    ]


def same(one: object, other: object) -> bool:
    return msgspec.json.encode(one) == msgspec.json.encode(other)


def reads_back(values: dict[str, Any]) -> None:
    values = msgspec.json.decode(msgspec.json.encode(values))
    call = ToolCall(id="1", name="all", arguments=msgspec.json.encode(values).decode())
    text = render_call(call, XmlTools([ALL]))
    for around in (text, f"Words.\n{text}\nMore words."):
        found = read(around, [ALL])
        assert [c.complete for c in found.message.calls] == [True], around
        assert same(arguments(found.message.calls[0].arguments), values), around
    assert same([a for _, a in calls_of(f"{text}\n{text}", ALL)], [values, values])


@pytest.mark.slow
@settings(max_examples=300)
@given(values=fitting)
@example(values={"text": "<![CDATA["})
@example(values={"text": "", "path": "<all><text>"})
@example(values={"text": "a\nb\r", "path": "\n", "words": ["]]>", " "]})
def test_a_rendered_call_reads_back_as_itself(values: dict[str, Any]):
    reads_back(values)


@pytest.mark.slow
@settings(max_examples=200)
@given(
    values=st.dictionaries(
        st.sampled_from(list(ALL.parameters["properties"])) | tagged_text, json_values, max_size=4
    )
)
def test_a_rendered_call_reads_back_even_if_it_breaks_its_schema(values: dict[str, Any]):
    reads_back(values)


@settings(max_examples=80)
@given(cuts=st.lists(st.integers(0, len(MESSAGE)), max_size=30))
def test_events_do_not_depend_on_how_the_text_is_cut(cuts: list[int]):
    places = [0, *sorted(cuts), len(MESSAGE)]
    pieces = [MESSAGE[a:b] for a, b in pairwise(places)]
    assert read(pieces).events == read(MESSAGE).events


@settings(max_examples=120)
@given(
    pieces=st.lists(
        st.sampled_from([*FRAGMENTS, "</write_to_file>", "</content>\n</write_to_file>\n"])
        | st.text(max_size=3),
        max_size=40,
    ),
    cut=st.booleans(),
)
def test_any_text_is_read_the_same_however_it_is_cut(pieces: list[str], cut: bool):
    text = "".join(pieces)
    whole = read(text, cut=cut)
    assert read(list(text), cut=cut).events == whole.events
    assert read(pieces, cut=cut).events == whole.events
    for call in whole.message.calls:
        assert not call.complete or isinstance(arguments(call.arguments), dict)
    assert len({call.id for call in whole.message.calls}) == len(whole.message.calls)


@given(text=st.text())
def test_text_without_tags_comes_out_as_it_went_in(text: str):
    text = text.replace("<", "")
    assert read(text, TOOLS).message.text == text.strip()
