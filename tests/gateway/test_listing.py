import pytest

from toolwire.gateway.listing import (
    ListedModel,
    described,
    for_shape,
    listed,
    shape_of,
    without_picker_prefix,
)
from toolwire.providers._spec import ModelFacts
from toolwire.wire.http1 import read_head

ENTRIES = [
    ListedModel(id="fast", owner="toolwire"),
    ListedModel(
        id="claude-sonnet-5", owner="anthropic", facts=ModelFacts(context=200_000, output=64_000)
    ),
    ListedModel(id="google/gemini-3", owner="google", facts=ModelFacts(context=1_000_000)),
    ListedModel(id="fast", owner="again"),
]


@pytest.mark.parametrize(
    ("path", "line", "wanted"),
    [
        ("/v1/models", "X: y", "openai"),
        ("/v1/models", "anthropic-version: 2023-06-01", "anthropic"),
        ("/v1beta/models", "X: y", "gemini"),
        ("/v1/models", "x-goog-api-key: k", "gemini"),
    ],
)
def test_the_caller_gets_the_shape_it_reads(path: str, line: str, wanted: str):
    head = read_head(f"GET {path} HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n".encode())
    assert shape_of(head) == wanted


def test_the_list_of_openai():
    found = listed(for_shape(ENTRIES, "openai"), "openai", "")
    assert found == {
        "object": "list",
        "data": [
            {"id": "fast", "object": "model", "created": 0, "owned_by": "toolwire"},
            {
                "id": "claude-sonnet-5",
                "object": "model",
                "created": 0,
                "owned_by": "anthropic",
                "context_length": 200_000,
                "max_output_tokens": 64_000,
            },
            {
                "id": "google/gemini-3",
                "object": "model",
                "created": 0,
                "owned_by": "google",
                "context_length": 1_000_000,
            },
        ],
    }


def test_the_list_of_anthropic_has_names_for_the_picker_and_pages():
    entries = for_shape(ENTRIES, "anthropic")
    names = [entry.id for entry in entries]
    assert names == [
        *("fast", "claude-sonnet-5", "google/gemini-3"),
        *("claude-via/fast", "claude-via/google/gemini-3"),
    ]
    first = listed(entries, "anthropic", "limit=2")
    assert [each["id"] for each in first["data"]] == names[:2]
    assert (first["has_more"], first["first_id"], first["last_id"]) == (True, *names[:2])
    rest = listed(entries, "anthropic", f"limit=9&after_id={names[1]}")
    assert [each["id"] for each in rest["data"]] == names[2:]
    assert rest["has_more"] is False
    back = listed(entries, "anthropic", f"limit=2&before_id={names[3]}")
    assert [each["id"] for each in back["data"]] == names[1:3]
    assert listed([], "anthropic", "") == {
        "data": [],
        "has_more": False,
        "first_id": None,
        "last_id": None,
    }
    assert len(listed(entries, "anthropic", "limit=x")["data"]) == 5
    assert described(entries[3], "anthropic")["display_name"] == "fast"
    assert without_picker_prefix("claude-via/google/gemini-3") == "google/gemini-3"
    assert without_picker_prefix("claude-sonnet-5") == "claude-sonnet-5"


def test_the_list_of_gemini_has_pages_too():
    entries = for_shape(ENTRIES, "gemini")
    first = listed(entries, "gemini", "pageSize=2")
    assert [each["name"] for each in first["models"]] == ["models/fast", "models/claude-sonnet-5"]
    rest = listed(entries, "gemini", f"pageSize=2&pageToken={first['nextPageToken']}")
    assert [each["name"] for each in rest["models"]] == ["models/google/gemini-3"]
    assert "nextPageToken" not in rest
    assert described(entries[1], "gemini") == {
        "name": "models/claude-sonnet-5",
        "displayName": "claude-sonnet-5",
        "inputTokenLimit": 200_000,
        "outputTokenLimit": 64_000,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    }


@pytest.mark.parametrize(
    "query", ["pageToken=999&pageSize=0", "limit=0&after_id=x", "%ff=%ff", "a" * 9]
)
def test_any_query_gets_a_list(query: str):
    for shape in ("openai", "anthropic", "gemini"):
        assert listed(for_shape(ENTRIES, shape), shape, query)
