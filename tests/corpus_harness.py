"""Runs the recorded exchanges of ../shared/corpus through our codecs and compares with the SDKs.

`python -m tests.corpus_harness responses|requests DIALECT [-v]` prints the counts and differences.
"""

import gzip
import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from toolwire import dialects
from toolwire.cli.decode import described
from toolwire.codec import read_answer
from toolwire.errors import ToolwireError

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"
WITH_CORPUS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")
Row = dict[str, Any]


@cache
def rows(dialect: str) -> list[Row]:
    with gzip.open(CORPUS / f"{dialect}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def body(row: Row) -> tuple[bytes, bool]:
    """The response bytes, and whether they are one JSON body."""
    if row.get("response_text") is not None:
        return row["response_text"].encode(), False
    return json.dumps(row["response_json"], ensure_ascii=False).encode(), True


def read(row: Row) -> dict[str, Any]:
    data, whole = body(row)
    return described(read_answer(row["dialect"], data, whole=whole))


def judged(row: Row) -> bool:
    return row["oracle"] is not None and not row.get("oracle_suspect")


def _calls(oracle: Row, ours: list[Row]) -> list[str]:
    theirs = oracle["tool_calls"]
    if len(theirs) != len(ours):
        return [f"calls: {len(ours)}, oracle {len(theirs)}: {ours} != {theirs}"]
    found: list[str] = []
    for number, (our, their) in enumerate(zip(ours, theirs, strict=True)):
        wanted: Row = {"name": their["name"]}
        if their["id"] is not None:
            wanted["id"] = their["id"]
        if their.get("custom"):
            wanted["raw"] = their["input"]
        elif their["arguments"] is None:
            wanted["raw"] = their.get("arguments_raw")
        else:
            wanted["arguments"] = their["arguments"]
        got = {key: our.get(key) for key in wanted}
        if got != wanted:
            found.append(f"call {number}: {got} != {wanted}")
    return found


def differences(row: Row) -> list[str]:
    """Where our reading differs from the oracle of a judged row."""
    oracle, ours = row["oracle"], read(row)
    found = [
        f"{key}: {ours[key]!r} != {oracle[key]!r}"
        for key in ("text", "reasoning")
        if ours[key] != oracle[key]
    ]
    found += _calls(oracle, ours["tool_calls"])
    usage = oracle["usage"] or {}
    for key in ("input", "output", "cached", "reasoning"):
        if ours["usage"][key] != usage.get(key):
            found.append(f"usage.{key}: {ours['usage'][key]} != {usage.get(key)}")
    if ours["error"] is not None:
        found.append(f"error: {ours['error']}")
    return found


def same_after_round_trip(dialect: str, request: Any) -> str | None:
    """None if the request comes back equal, else what happened."""
    codec = dialects.get(dialect)
    data = json.dumps(request).encode()
    encoded = codec.encode_request(codec.decode_request(data))
    again = json.loads(encoded.http.body)
    if again == request:
        return None
    return f"losses={[loss.what for loss in encoded.losses]} at {first_difference(request, again)}"


def first_difference(one: Any, other: Any, path: str = "$") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *other]:
            if key not in one or key not in other:
                side = "added" if key not in one else "lost"
                return f"{path}.{key}: {side} {str(one.get(key, other.get(key)))[:120]}"
            if one[key] != other[key]:
                return first_difference(one[key], other[key], f"{path}.{key}")
    if isinstance(one, list) and isinstance(other, list):
        for number, (left, right) in enumerate(zip(one, other, strict=False)):
            if left != right:
                return first_difference(left, right, f"{path}[{number}]")
        return f"{path}: {len(one)} items, now {len(other)}"
    return f"{path}: {str(one)[:120]!r} -> {str(other)[:120]!r}"


def _responses(dialect: str, verbose: bool) -> None:
    counts: Counter[str] = Counter()
    for row in rows(dialect):
        try:
            if not judged(row):
                read(row)
                counts["unjudged read"] += 1
                continue
            found = differences(row)
        except ToolwireError as error:
            counts["raised"] += 1
            print("RAISED", row["id"], repr(error))
            continue
        except Exception as error:  # the harness shows every crash
            counts["CRASHED"] += 1
            print("CRASHED", row["id"], type(error).__name__, error)
            continue
        counts["different" if found else "equal"] += 1
        if found:
            print("DIFF", row["id"], row["vendor"], "stream" if row["stream"] else "whole")
            for line in found if verbose else found[:3]:
                print("    ", line if verbose else line[:300])
    print(dialect, dict(counts))


def _requests(dialect: str) -> None:
    counts: Counter[str] = Counter()
    for row in rows(dialect):
        if not isinstance(row["request"], dict):
            continue
        try:
            found = same_after_round_trip(dialect, row["request"])
        except Exception as error:
            counts["CRASHED"] += 1
            print("CRASHED", row["id"], type(error).__name__, error)
            continue
        counts["different" if found else "equal"] += 1
        if found:
            print("DIFF", row["id"], row["vendor"], found)
    print(dialect, dict(counts))


if __name__ == "__main__":
    if sys.argv[1] == "responses":
        _responses(sys.argv[2], "-v" in sys.argv)
    else:
        _requests(sys.argv[2])
