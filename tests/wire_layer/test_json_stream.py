import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.wire.json_stream import JsonSplitter

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
json_objects = st.dictionaries(st.text(max_size=4), json_values, max_size=4)


def split(*chunks: bytes) -> list[bytes]:
    splitter = JsonSplitter()
    return [piece for chunk in chunks for piece in splitter.feed(chunk)]


@pytest.mark.parametrize(
    ("body", "objects"),
    [
        (b'{"a":1}', [b'{"a":1}']),
        (b'{"a":1}{"b":2}', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'[{"a":1}\n,\r\n{"b":[{}]}]', [b'{"a":1}', b'{"b":[{}]}']),
        (b'{"a":"}{\\"]["}', [b'{"a":"}{\\"]["}']),
        (b'{"a":"\\\\"}{}', [b'{"a":"\\\\"}', b"{}"]),
        (b"[]", []),
        (b"", []),
    ],
)
def test_whole_objects_are_cut_out(body: bytes, objects: list[bytes]):
    assert split(body) == objects
    assert split(*(body[at : at + 1] for at in range(len(body)))) == objects


@given(st.lists(json_objects), st.sampled_from(["array", "lines", "glued"]), st.booleans())
def test_every_object_comes_out_as_it_went_in(
    values: list[dict[str, object]], shape: str, ascii_only: bool
):
    texts = [json.dumps(value, ensure_ascii=ascii_only, indent=1) for value in values]
    match shape:
        case "array":
            body = "[" + ",\r\n".join(texts) + "]"
        case "lines":
            body = "\n".join(texts)
        case _:
            body = "".join(texts)
    raw = body.encode("utf-8", "surrogatepass")
    assert split(raw) == [text.encode("utf-8", "surrogatepass") for text in texts]


@given(st.binary() | st.text('{}[]"\\a ').map(str.encode), st.lists(st.integers(0, 60)))
def test_what_comes_out_does_not_depend_on_where_the_input_is_cut(body: bytes, cuts: list[int]):
    places = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    pieces = [body[start:end] for start, end in itertools.pairwise(places)]
    whole, cut = JsonSplitter(), JsonSplitter()
    expected = whole.feed(body)
    assert [piece for chunk in pieces for piece in cut.feed(chunk)] == expected
    assert (cut.open, cut.pending) == (whole.open, whole.pending)


@pytest.mark.parametrize(
    ("body", "is_open", "pending"),
    [
        (b"", False, 0),
        (b'{"a":1}', False, 0),
        (b'[{"a":1}', True, 0),
        (b'[{"a":1},{"b', True, 3),
        (b'{"a":"\\', True, 7),
        (b'[{"a":1}]', False, 0),
    ],
)
def test_it_knows_whether_the_text_stops_inside_a_value(body: bytes, is_open: bool, pending: int):
    splitter = JsonSplitter()
    splitter.feed(body)
    assert (splitter.open, splitter.pending) == (is_open, pending)
