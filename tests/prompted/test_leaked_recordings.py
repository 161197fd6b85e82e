"""Recorded answers of models with tools, every format switched on: none of them prints a call."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests import corpus_harness
from tests.prompted.leaked_speaking import said, told
from toolwire import dialects
from toolwire.errors import ToolwireError
from toolwire.prompted.leaked import FORMATS
from toolwire.request import AnyTool

pytestmark = [
    pytest.mark.skipif(not corpus_harness.CORPUS.is_dir(), reason="../shared/corpus is not there"),
    pytest.mark.slow,
]


def answers(dialect: str) -> Iterator[tuple[str, tuple[AnyTool, ...]]]:
    for row in corpus_harness.rows(dialect):
        text: Any = (row["oracle"] or {}).get("text")
        if row["request"] and text:
            body = json.dumps(row["request"]).encode()
            try:
                request = dialects.get(dialect).decode_request(body, row["model"] or "")
            except ToolwireError:
                continue
            if request.tools:
                yield text, request.tools


@pytest.mark.parametrize("dialect", corpus_harness.WITH_CORPUS)
def test_no_recorded_answer_is_taken_for_a_call_or_changed(dialect: str) -> None:
    count = 0
    for text, tools in answers(dialect):
        assert said(told([text], tools, tuple(FORMATS))) == [text]
        count += 1
    print(f"{dialect}: {count} answers")
    assert count
