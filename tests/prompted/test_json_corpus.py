"""The constrained JSON style with every recorded tool schema."""

import gzip
import json
from typing import Any

import jsonschema_rs
import pytest

from tests.corpus_harness import CORPUS
from toolwire.messages import Message, Text
from toolwire.prompted import json as json_style
from toolwire.request import ModelRequest, ToolSpec
from toolwire.schema import Profile, convert

SCHEMAS = CORPUS / "schemas.jsonl.gz"
pytestmark = [
    pytest.mark.skipif(not SCHEMAS.is_file(), reason="../shared/corpus is not there"),
    pytest.mark.slow,
]
HELLO = Message(role="user", parts=(Text("hello"),))


def refuse(address: str) -> Any:
    raise ValueError(address)


def compiled(schema: Any) -> Any:
    return jsonschema_rs.validator_for(schema, retriever=refuse)


def test_examples_fit_both_the_response_schema_and_the_tools_own() -> None:
    shown = fitting = total = 0
    wrong: list[Any] = []
    with gzip.open(SCHEMAS, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        if not isinstance(row["schema"], dict):
            continue
        total += 1
        tool = ToolSpec(name=row["name"] or "tool", parameters=row["schema"])
        found = json_style.prepare(ModelRequest(model="m", messages=(HELLO,), tools=(tool,)))
        assert found is not None
        output = found.request.output
        assert output is not None
        answer_schema = compiled(output.schema)
        own = compiled(convert(row["schema"], Profile.GEMINI_JSON).schema)
        lines_told = found.request.system[-1].text.splitlines()
        examples = [json.loads(line) for line in lines_told if line.startswith('{"tool": "')]
        for example in examples:
            shown += 1
            if answer_schema.is_valid(example) and own.is_valid(example["arguments"]):
                fitting += 1
            else:
                wrong.append((row["id"], example))
    print(f"{total} schemas, {shown} examples, {fitting} fit")
    assert wrong == []
