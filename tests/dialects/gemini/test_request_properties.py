"""Whatever body can be read is written again as it was."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.dialects.gemini import DIALECT
from toolwire.errors import ToolwireError

WIRE_NAMES = st.sampled_from(
    [
        "contents",
        "role",
        "parts",
        "text",
        "thought",
        "thoughtSignature",
        "thought_signature",
        "functionCall",
        "function_call",
        "functionResponse",
        "response",
        "args",
        "id",
        "name",
        "inlineData",
        "inline_data",
        "mimeType",
        "data",
        "fileData",
        "tools",
        "functionDeclarations",
        "function_declarations",
        "parameters",
        "parametersJsonSchema",
        "type",
        "generationConfig",
        "generation_config",
        "thinkingConfig",
        "thinkingBudget",
        "thinkingLevel",
        "stopSequences",
        "responseSchema",
        "responseMimeType",
        "toolConfig",
        "functionCallingConfig",
        "mode",
        "allowedFunctionNames",
        "systemInstruction",
        "model",
    ]
)
WIRE_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 9)
    | st.sampled_from(["", "user", "model", "STRING", "ANY", "application/json", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WIRE_NAMES, inner, max_size=4),
    max_leaves=20,
)


INNER = st.dictionaries(WIRE_NAMES, WIRE_VALUES, max_size=4)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "text": st.none() | st.text("ab", max_size=2),
        "thought": st.booleans(),
        "thoughtSignature": st.none() | st.text("s", max_size=1),
        "functionCall": INNER,
        "functionResponse": st.fixed_dictionaries(
            {}, optional={"id": st.text("i", max_size=1), "name": st.just("f"), "response": INNER}
        ),
        "inline_data": INNER,
        "odd": INNER,
    },
)
ROLES = st.sampled_from(["user", "model", "function", "system", "", None])
CONTENTS = st.lists(
    st.fixed_dictionaries({"parts": st.lists(PARTS, max_size=4)}, optional={"role": ROLES}),
    max_size=3,
)
BODIES = st.dictionaries(WIRE_NAMES, WIRE_VALUES, max_size=5) | st.fixed_dictionaries(
    {"contents": CONTENTS},
    optional={
        "tools": st.lists(INNER, max_size=2),
        "generationConfig": INNER,
        "tool_config": st.fixed_dictionaries({"functionCallingConfig": INNER}),
        "systemInstruction": st.fixed_dictionaries({"parts": st.lists(PARTS, max_size=3)}),
    },
)


@pytest.mark.slow
@given(BODIES)
@settings(max_examples=400)
def test_any_request_that_can_be_read_comes_back_as_it_was(body: dict[str, Any]) -> None:
    try:
        request = DIALECT.decode_request(json.dumps(body).encode())
    except ToolwireError:
        return
    assert json.loads(DIALECT.encode_request(request).http.body) == body
