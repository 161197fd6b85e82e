"""The 374 samples of other parsers' tests, all formats switched on at once."""

import gzip
import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from tests.corpus_harness import CORPUS
from tests.prompted.leaked_expectation import NOT_OFFERED, expected, in_order
from tests.prompted.leaked_speaking import MARKED, OPEN, said, told
from toolwire.prompted.leaked import FORMATS
from toolwire.prompted.leaked.gate import Gate
from toolwire.prompted.leaked.recogniser import Recogniser, Taken
from toolwire.request import ToolSpec

SAMPLES = CORPUS / "text_markup.jsonl.gz"
pytestmark = pytest.mark.skipif(not SAMPLES.is_file(), reason="../shared/corpus is not there")


@cache
def samples() -> list[dict[str, Any]]:
    with gzip.open(SAMPLES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def tools() -> tuple[ToolSpec, ...]:
    names = {name for sample in samples() for name, _ in expected(sample)}
    return tuple(ToolSpec(name=name, parameters=OPEN) for name in sorted(names))


def read(text: str, size: int) -> list[Any]:
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    return said(told(chunks, tools(), MARKED))


@cache
def gate() -> Gate:
    return Gate(tools())


def recognised(text: str) -> list[Any]:
    """The calls in a text that was cut at its end."""
    recogniser = Recogniser([FORMATS[name] for name in MARKED], gate())
    pieces = [*recogniser.feed(text), *recogniser.end(whole=False)]
    taken = [it for it in pieces if isinstance(it, Taken)]
    return [(call.tool.name, call.arguments) for it in taken for call in it.calls]


def calls(pieces: list[Any]) -> list[Any]:
    return [(it[0], json.loads(it[1])) for it in pieces if isinstance(it, tuple)]


def test_every_sample_gives_the_calls_it_spells_and_no_others() -> None:
    wrong: list[Any] = []
    counts: Counter[tuple[str, str]] = Counter()
    for sample in samples():
        found = read(sample["text"], 1_000_000)
        if in_order(calls(found)) != expected(sample):
            wrong.append((sample["id"], sample["text"], calls(found), expected(sample)))
        if not calls(found) and sample["text"]:
            assert found == [sample["text"]]
        counts[sample["family"], "samples"] += 1
        counts[sample["family"], "with calls"] += bool(calls(found))
        counts[sample["family"], "calls"] += len(calls(found))
    for family in sorted({family for family, _ in counts}):
        row = {word: counts[family, word] for word in ("samples", "with calls", "calls")}
        print(f"{family:34}", row)
    print(len(samples()), "samples,", sum(n for (_, w), n in counts.items() if w == "calls"))
    assert wrong == []


def test_unknown_tools_are_never_called() -> None:
    called = {name for sample in samples() for name, _ in calls(read(sample["text"], 1_000_000))}
    assert not called & NOT_OFFERED


@pytest.mark.parametrize("size", [1, 2, 5, 13])
def test_no_sample_depends_on_chunks(size: int) -> None:
    for sample in samples():
        assert read(sample["text"], size) == read(sample["text"], 1_000_000), sample["text"]


@pytest.mark.sweep
def test_no_sample_cut_anywhere_gives_a_call_it_does_not_spell() -> None:
    for sample in samples():
        text = sample["text"]
        whole = recognised(text)
        for end in range(0, len(text), 3):
            made = recognised(text[:end])
            assert made == whole[: len(made)], text[:end]
