import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.errors import IncompleteStream, MalformedStream
from toolwire.wire.sse import Frame, SseDecoder, SseEncoder


def frames(*chunks: bytes, max_frame: int = 1 << 20) -> list[Frame]:
    decoder = SseDecoder(max_frame)
    found = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    return found + decoder.close()


def outcome(chunks: list[bytes], max_frame: int) -> list[Frame] | str:
    try:
        return frames(*chunks, max_frame=max_frame)
    except (IncompleteStream, MalformedStream) as error:
        return str(error)


def bytewise(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


CASES: dict[str, tuple[bytes, list[Frame]]] = {
    "a blank line ends a frame": (b"data: a\n\ndata: b\n\n", [Frame(b"a"), Frame(b"b")]),
    "lines end with CR": (b"data: a\r\rdata: b\r\r", [Frame(b"a"), Frame(b"b")]),
    "lines end with CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [Frame(b"a"), Frame(b"b")]),
    "line ends are mixed": (
        b"data: a\n\r\ndata: b\r\n\ndata: c\r\r\n",
        [Frame(b"a"), Frame(b"b"), Frame(b"c")],
    ),
    "more than one blank line": (b"\n\ndata: a\n\n\n\n\ndata: b\n\n\n", [Frame(b"a"), Frame(b"b")]),
    "a byte order mark comes first": (b"\xef\xbb\xbfdata: a\n\n", [Frame(b"a")]),
    "a byte order mark and blank lines": (b"\xef\xbb\xbf\r\n\ndata: a\n\n", [Frame(b"a")]),
    "comments say nothing": (b": OPENROUTER PROCESSING\n\n:\ndata: a\n: x\n\n:\n\n", [Frame(b"a")]),
    "a frame has a name": (b"event: ping\ndata: {}\n\n", [Frame(b"{}", "ping")]),
    "the name comes after the data": (b"data: {}\nevent: ping\n\n", [Frame(b"{}", "ping")]),
    "the last name counts": (b"event: a\nevent: b\ndata: 1\n\n", [Frame(b"1", "b")]),
    "a name lasts for one frame": (
        b"event: a\ndata: 1\n\ndata: 2\n\n",
        [Frame(b"1", "a"), Frame(b"2")],
    ),
    "a name without data is no frame": (b"event: a\n\ndata: 2\n\n", [Frame(b"2")]),
    "lines of data are joined": (b"data: a\ndata:\ndata: b\n\n", [Frame(b"a\n\nb")]),
    "named lines of data are joined": (b"event: e\ndata: a\ndata: b\n\n", [Frame(b"a\nb", "e")]),
    "ids and retry times are skipped": (b"id: 1\nretry: 5\ndata: a\nid\n\n", [Frame(b"a")]),
    "unknown fields are skipped": (b"foo: 1\ndatax: 2\ndata: a\n\n", [Frame(b"a")]),
    "no space after the colon": (b"event:e\ndata:a\n\ndata:b\n\n", [Frame(b"a", "e"), Frame(b"b")]),
    "only one space is taken away": (b"data:  a\n\n", [Frame(b" a")]),
    "spaces before the field": (
        b" data: a\n\n  event: e\n data: b\n\n",
        [Frame(b"a"), Frame(b"b", "e")],
    ),
    "data without anything is a keep-alive": (
        b"data:\n\ndata: \n\nevent: e\ndata:\n\ndata\n\n",
        [],
    ),
    "the end mark": (b"data: [DONE]\n\n", [Frame(b"[DONE]")]),
    "an unterminated end is cut": (b"data: a\n\ndata: b", [Frame(b"a"), Frame(b"b", cut=True)]),
    "one line end is not enough": (b"event: e\ndata: b\n", [Frame(b"b", "e", cut=True)]),
    "an unterminated end mark is cut too": (b"data: [DONE]", [Frame(b"[DONE]", cut=True)]),
    "an unterminated comment is nothing": (b"data: a\n\n: x", [Frame(b"a")]),
    "an unterminated field name is nothing": (b"data: a\n\ndat", [Frame(b"a")]),
    "other line ends of Unicode end no line": (
        "data: a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\n\n".encode(),
        [Frame("a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg".encode())],
    ),
    "bytes that are no UTF-8 pass": (
        b"event: \xff\ndata: \xff\x00\n\n",
        [Frame(b"\xff\x00", "\ufffd")],
    ),
    "an error object is the whole body": (
        b' {"error": {"code": 1}}\n',
        [Frame(b'{"error": {"code": 1}}')],
    ),
    "a JSON array is a stream of its objects": (
        b'[{"a": "x"}\r\n,\r\n{"b": [{}, "]"]}]',
        [Frame(b'{"a": "x"}'), Frame(b'{"b": [{}, "]"]}')],
    ),
    "lines of JSON": (
        b'{"a":1}\n{"b":2}\n\n{"c":3}',
        [Frame(b'{"a":1}'), Frame(b'{"b":2}'), Frame(b'{"c":3}')],
    ),
    "an error object stands between frames": (
        b'data: a\n\n{\n "error": {\n  "code": 1}\n}\n\ndata: b\n\n',
        [Frame(b"a"), Frame(b'{\n "error": {\n  "code": 1}\n}'), Frame(b"b")],
    ),
    "an error object of one line stands between frames": (
        b'data: a\n\n{"error": 1}\n\ndata: b\n\n',
        [Frame(b"a"), Frame(b'{"error": 1}'), Frame(b"b")],
    ),
    "an error array stands at the end": (
        b'data: a\n\n[{"error": 1}]',
        [Frame(b"a"), Frame(b'[{"error": 1}]', cut=True)],
    ),
    "nothing": (b"", []),
    "only a byte order mark": (b"\xef\xbb\xbf", []),
    "only blank lines": (b"\r\n\r\n \t\n", []),
    "half a byte order mark": (b"\xef\xbb", []),
    "another kind of body": (b"<html>\n\n<body>", []),
}


@pytest.mark.parametrize("case", CASES)
def test_a_body_gives_its_frames_in_one_piece_and_byte_by_byte(case: str):
    body, expected = CASES[case]
    assert frames(body) == expected
    assert frames(*bytewise(body)) == expected


@pytest.mark.parametrize("case", CASES)
def test_a_body_may_be_cut_in_two_anywhere(case: str):
    body, expected = CASES[case]
    for at in range(len(body) + 1):
        assert frames(body[:at], b"", body[at:]) == expected


def test_a_chunk_after_a_whole_frame_reads_as_its_bytes_do_one_by_one():
    first = b"event: e\ndata: 0\n\n"
    words = (b"data: a", b"event: e", b"data: ", b"\n", b"\r", b"\r\n")
    for count in range(1, 6):
        for chosen in itertools.product(words, repeat=count):
            chunk = b"".join(chosen)
            assert frames(first, chunk) == frames(first, *bytewise(chunk)), chunk


def test_a_frame_is_emitted_as_soon_as_its_blank_line_begins():
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r\n") == []
    assert decoder.feed(b"\r") == [Frame(b"a")]
    assert decoder.feed(b"\ndata: b\n\n") == [Frame(b"b")]


def test_a_character_may_be_cut():
    assert frames(b"data: \xf0\x9f", b"\x98\x80\n\n") == [Frame("😀".encode())]


@pytest.mark.parametrize("body", [b'{"error": {', b'[{"a":1},', b'{"a":"'])
def test_a_body_that_ends_inside_its_json_is_incomplete(body: bytes):
    with pytest.raises(IncompleteStream):
        frames(body)


@pytest.mark.parametrize("body", [b"data: 123456789\n\n", b'{"a":"12345"}', b"data: 12345678901"])
def test_a_frame_over_the_limit_is_refused_however_it_is_cut(body: bytes):
    with pytest.raises(MalformedStream, match="longer than 10 bytes"):
        frames(body, max_frame=10)
    with pytest.raises(MalformedStream, match="longer than 10 bytes"):
        frames(*bytewise(body), max_frame=10)


def test_many_frames_in_one_chunk_may_be_longer_than_the_limit_together():
    assert frames(b"data: 1234\n\n" * 50, max_frame=10) == [Frame(b"1234")] * 50


def test_blank_lines_before_the_first_frame_are_not_kept():
    decoder = SseDecoder(max_frame=10)
    for _ in range(1000):
        assert decoder.feed(b"\r\n") == []
    assert decoder.feed(b"data: a\n\n") == [Frame(b"a")]


pieces = st.sampled_from(
    [
        b"data: x",
        b"data:",
        b"event: e",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b": c",
        b" ",
        b"{",
        b"}",
        b"\xef\xbb\xbf",
        b"[",
        b"]",
        b'"',
        b"\\",
        b"id: 1",
        "\u2028é".encode(),
        b"\x85",
        b"data",
    ]
)
bodies = st.binary(max_size=60) | st.lists(pieces, max_size=25).map(b"".join)


@given(bodies, st.lists(st.integers(0, 80)), st.sampled_from([4, 12, 1000]))
def test_frames_do_not_depend_on_the_chunking(body: bytes, cuts: list[int], max_frame: int):
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    chunks = [body[start:end] for start, end in itertools.pairwise(places)]
    assert outcome(chunks, max_frame) == outcome([body], max_frame)


@given(bodies)
def test_only_the_last_frame_can_be_cut(body: bytes):
    found = outcome([body], 1000)
    assert isinstance(found, str) or not any(frame.cut for frame in found[:-1])


names = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8)
json_texts = st.dictionaries(st.text(max_size=5), st.text(), max_size=3).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)


@given(st.lists(st.tuples(json_texts, names.filter(lambda name: name[:1] != " "))))
def test_what_is_encoded_decodes_to_the_same_json(said: list[tuple[str, str]]):
    body = b"".join(
        SseEncoder().encode(Frame(text.encode("utf-8", "surrogatepass"), name))
        for text, name in said
    )
    decoded = [
        (json.loads(frame.data.decode("utf-8", "surrogatepass")), frame.event)
        for frame in frames(body)
    ]
    assert decoded == [(json.loads(text), name) for text, name in said]


@pytest.mark.parametrize(
    ("frame", "encoded"),
    [
        (Frame(b"{}"), b"data: {}\n\n"),
        (Frame(b"{}", "ping"), b"event: ping\ndata: {}\n\n"),
        (Frame(b"[DONE]"), b"data: [DONE]\n\n"),
        (Frame(b"a\nb\r\nc\rd"), b"data: a\ndata: b\ndata: c\ndata: d\n\n"),
        (
            Frame('"\u2028é\u2029\u0085"'.encode()),
            '"\\u2028é\\u2029\\u0085"'.encode().join([b"data: ", b"\n\n"]),
        ),
    ],
)
def test_a_frame_is_written_so_that_every_client_reads_it(frame: Frame, encoded: bytes):
    assert SseEncoder().encode(frame) == encoded
