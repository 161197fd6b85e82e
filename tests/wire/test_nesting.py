from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.wire.nesting import is_deeper

LIMIT = 40
JSON = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\ a\n'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('[]{}"\\'), inner),
    max_leaves=60,
)


def depth(value: Any) -> int:
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = [*value.values()]
    elif isinstance(value, list):
        inner = value
    else:
        return 0
    return 1 + max(map(depth, inner), default=0)


@given(value=JSON, limit=st.integers(0, 6), around=st.integers(0, 30))
def test_the_depth_is_that_of_the_decoded_value(value: Any, limit: int, around: int):
    for _ in range(around):
        value = [value, {"a": value}] if around < 6 else [value]
    body = msgspec.json.encode(value)
    for most in (limit, limit + around):
        assert is_deeper(body, most) is (depth(value) > most)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_one_level_more_than_the_limit_is_too_deep(opening: bytes, closing: bytes):
    def nested(levels: int) -> bytes:
        return opening * levels + b'"]}\\""' + closing * levels

    assert not is_deeper(nested(LIMIT), LIMIT)
    assert is_deeper(nested(LIMIT + 1), LIMIT)


@pytest.mark.parametrize(
    "body", [b"]" * 600, b"[" * 600, b'"' + b"[" * 600, b"\\" * 600 + b"[" * 600, b"{]" * 600]
)
def test_text_that_is_not_json_has_an_answer_too(body: bytes):
    assert is_deeper(body, 512) in (True, False)
