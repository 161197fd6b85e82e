"""Recorded answers, rewritten without a change of meaning: what is read of them stays the same."""

import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from tests import corpus_harness as harness
from toolwire.cli.decode import described
from toolwire.codec import read_answer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not harness.CORPUS.is_dir(), reason="the recorded corpus lies beside the project, not in it"
    ),
]

Json = dict[str, Any]
Events = list[tuple[str, Any]]
"""A stream: names and data of its frames; data that is no JSON stays text."""
CHAT, RESPONSES, ANTHROPIC, GEMINI = harness.WITH_CORPUS


def said(dialect: str, body: Any, *, whole: bool = False) -> Json:
    """What is read, without what may differ: ids we made, the spelling of arguments."""
    told = described(read_answer(dialect, body, whole=whole, make_id=lambda: "made"))
    for call in told["tool_calls"]:
        if call["arguments"] is not None:
            del call["raw"]
    del told["server_items"]
    return told


def frames(body: str) -> Events | None:
    """The frames of a well-formed stream, or None if it is not one."""
    found: Events = []
    for block in body.replace("\r\n", "\n").split("\n\n"):
        name, data = "", []
        for line in block.split("\n"):
            field, _, value = line.partition(":")
            if field == "event":
                name = value.strip()
            elif field == "data":
                data.append(value.removeprefix(" "))
        if data:
            text = "\n".join(data)
            try:
                found.append((name, json.loads(text)))
            except ValueError:
                found.append((name, text))
    return found if any(isinstance(data, dict) for _, data in found) else None


def written(events: Events, *, names: bool = True, line: str = "\n", between: str = "") -> bytes:
    out: list[str] = []
    for name, data in events:
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        head = f"event: {name}{line}" if name and names else ""
        out.append(f"{between}{head}data: {text}{line}{line}")
    return "".join(out).encode("utf-8", "surrogatepass")


# Rewritings of frames and bytes, for every format


def crlf(events: Events) -> bytes:
    return written(events, line="\r\n")


def carriage_returns(events: Events) -> bytes:
    return written(events, line="\r")


def no_names(events: Events) -> bytes:
    return written(events, names=False)


def comments(events: Events) -> bytes:
    return b"\xef\xbb\xbf" + written(events, between=": keep-alive\n\n:\nretry: 5\n")


def no_blank_lines(events: Events) -> bytes:
    return written(events).replace(b"\n\n", b"\n")


def no_last_blank_line(events: Events) -> bytes:
    return written(events).rstrip(b"\n")


def pretty(events: Events) -> bytes:
    def spread(data: Any) -> str:
        text = data if isinstance(data, str) else json.dumps(data, indent=1)
        return text.replace("\n", "\ndata: ")

    return written([(name, spread(data)) for name, data in events])


def backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(item) for item in value] if isinstance(value, list) else value


def members_backwards(events: Events) -> bytes:
    return written([(name, backwards(data)) for name, data in events])


def unknown_members(events: Events) -> bytes:
    return written(
        [
            (name, {"x_new": {"a": [1]}, **data} if isinstance(data, dict) else data)
            for name, data in events
        ]
    )


def pings(events: Events) -> bytes:
    ping = ("ping", {"type": "ping"})
    return written([frame for event in events for frame in (event, ping)])


ANY: list[Callable[[Events], bytes]] = [
    crlf,
    carriage_returns,
    no_names,
    comments,
    no_blank_lines,
    no_last_blank_line,
    pretty,
    members_backwards,
    unknown_members,
]


# Rewritings of one format


def deltas(events: Events) -> Iterator[tuple[int, Json]]:
    """The tool-call fragments of choice 0, with the number of their chunk."""
    for number, (_, data) in enumerate(events):
        for choice in (data.get("choices") or ()) if isinstance(data, dict) else ():
            if not choice.get("index"):
                for fragment in (choice.get("delta") or {}).get("tool_calls") or ():
                    yield number, fragment


def copied(events: Events) -> Events:
    return json.loads(json.dumps(events))


def repeat_ids_and_names(events: Events) -> bytes:
    events = copied(events)
    known: dict[Any, tuple[Any, Any]] = {}
    for _, fragment in deltas(events):
        function = fragment.setdefault("function", {})
        key = fragment.get("index")
        call_id, name = known.get(key, (None, None))
        call_id, name = fragment.get("id") or call_id, function.get("name") or name
        known[key] = call_id, name
        fragment["id"], function["name"] = call_id, name
    return written(events)


def drop_indexes(events: Events) -> bytes:
    events = copied(events)
    ids: dict[Any, Any] = {}
    for _, fragment in deltas(events):
        index = fragment.pop("index", None)
        fragment["id"] = ids[index] = fragment.get("id") or ids.get(index)
    return written(events)


def index_zero_for_all(events: Events) -> bytes:
    events = copied(events)
    ids: dict[Any, Any] = {}
    for _, fragment in deltas(events):
        index = fragment.get("index")
        fragment["index"] = 0
        fragment["id"] = ids[index] = fragment.get("id") or ids.get(index)
    return written(events)


def split_names(events: Events) -> bytes:
    out: Events = []
    for name, data in copied(events):
        fragments = [fragment for _, fragment in deltas([(name, data)])]
        function = fragments[0].get("function") if len(fragments) == 1 else None
        if function and len(function.get("name") or "") > 1:
            head = json.loads(json.dumps(data))
            (_, fragment), *_ = deltas([(name, head)])
            whole = function["name"]
            fragment["function"] = {"name": whole[:1], "arguments": ""}
            head["choices"][0]["finish_reason"] = None
            head["choices"][0]["delta"] = {"tool_calls": [fragment]}
            head.pop("usage", None)
            out.append((name, head))
            function["name"] = whole[1:]
            fragments[0].pop("id", None)
        out.append((name, data))
    return written(out)


def arguments_as_objects(events: Events) -> bytes:
    events = copied(events)
    for _, fragment in deltas(events):
        function = fragment.get("function") or {}
        try:
            value = json.loads(function.get("arguments") or "")
        except ValueError:
            continue
        if isinstance(value, dict):
            function["arguments"] = value
    return written(events)


def usage_apart(events: Events) -> bytes:
    out: Events = []
    for name, data in copied(events):
        if isinstance(data, dict) and data.get("usage") and data.get("choices"):
            usage = data.pop("usage")
            out += [(name, data), (name, {"choices": [], "usage": usage})]
        else:
            out.append((name, data))
    return written(out)


def no_done(events: Events) -> bytes:
    chunks = [data for _, data in events if isinstance(data, dict)]
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or ()]
    finished = any(choice.get("finish_reason") for choice in choices)
    return written([event for event in events if event[1] != "[DONE]" or not finished])


def no_output_in_the_end(events: Events) -> bytes:
    events = copied(events)
    for _, data in events:
        if isinstance(data, dict) and data.get("type") == "response.completed":
            data["response"]["output"] = []
    return written(events)


def no_places(events: Events) -> bytes:
    told = [data for _, data in events if isinstance(data, dict)]
    known = {data["item"].get("id") for data in told if "item" in data}
    streamed = {data["item_id"] for data in told if "item_id" in data}
    added = [data for data in told if data.get("type") == "response.output_item.added"]
    for data in told:
        streamed |= {item.get("id") for item in (data.get("response") or {}).get("output") or ()}
    if not streamed <= known or len(known) != len(added):
        # Where ids change on the way, places are all there is.
        return written(events)
    events = copied(events)
    for _, data in events:
        if isinstance(data, dict):
            data.pop("output_index", None)
    return written(events)


def only_item_ends(events: Events) -> bytes:
    return written(
        [
            (name, data)
            for name, data in events
            if not isinstance(data, dict) or not str(data.get("type")).endswith(".delta")
        ]
    )


def items_twice(events: Events) -> bytes:
    ends = ("response.output_item.done", "response.output_item.added", "response.created")
    return written(
        [
            event
            for event in events
            for _ in range(1 + (isinstance(event[1], dict) and event[1].get("type") in ends))
        ]
    )


def start_twice(events: Events) -> bytes:
    return written([events[0], *events])


def unknown_blocks(events: Events) -> bytes:
    block = {"type": "brand_new", "x": 1}
    out: Events = []
    for name, data in events:
        if isinstance(data, dict) and data.get("type") == "message_delta":
            out += [
                ("", {"type": "content_block_start", "index": 900, "content_block": block}),
                ("", {"type": "content_block_delta", "index": 900, "delta": {"type": "new_delta"}}),
                ("", {"type": "content_block_stop", "index": 900}),
                ("", {"type": "brand_new_event"}),
            ]
        out.append((name, data))
    return written(out)


def no_block_ends(events: Events) -> bytes:
    return written(
        [
            event
            for event in events
            if not isinstance(event[1], dict) or event[1].get("type") != "content_block_stop"
        ]
    )


def array(events: Events) -> bytes:
    return json.dumps([data for _, data in events if isinstance(data, dict)], indent=2).encode()


def objects_in_a_row(events: Events) -> bytes:
    return b"\n".join(json.dumps(data).encode() for _, data in events if isinstance(data, dict))


def usage_last(events: Events) -> bytes:
    events = copied(events)
    usage: Any = None
    for _, data in events:
        if isinstance(data, dict) and "usageMetadata" in data:
            usage = data.pop("usageMetadata")
    return written([*events, ("", {"usageMetadata": usage})])


def snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            "".join(f"_{c.lower()}" if c.isupper() else c for c in key): (
                inner if key in ("args", "usageMetadata") else snake(inner)
            )
            for key, inner in value.items()
        }
    return [snake(item) for item in value] if isinstance(value, list) else value


def snake_case(events: Events) -> bytes:
    return written([(name, snake(data)) for name, data in events])


OWN: dict[str, list[Callable[[Events], bytes]]] = {
    CHAT: [
        repeat_ids_and_names,
        drop_indexes,
        index_zero_for_all,
        split_names,
        arguments_as_objects,
        usage_apart,
        no_done,
    ],
    RESPONSES: [pings, no_output_in_the_end, no_places, only_item_ends, items_twice],
    ANTHROPIC: [pings, start_twice, unknown_blocks, no_block_ends],
    GEMINI: [array, objects_in_a_row, usage_last, snake_case],
}


@cache
def streams(dialect: str) -> list[tuple[str, bytes, Events]]:
    """Recorded streams that end as they should."""
    found: list[tuple[str, bytes, Events]] = []
    for row in harness.rows(dialect):
        text = row.get("response_text") or ""
        events = frames(text) if row["status"] == 200 else None
        if events is not None and said(dialect, text.encode())["error"] is None:
            found.append((row["id"], text.encode(), events))
    return found


CASES = [
    pytest.param(dialect, rewrite, id=f"{dialect}: {rewrite.__name__}")
    for dialect in harness.WITH_CORPUS
    for rewrite in [*ANY, *OWN[dialect]]
]


@pytest.mark.parametrize(("dialect", "rewrite"), CASES)
def test_an_answer_said_in_other_words_reads_the_same(
    dialect: str, rewrite: Callable[[Events], bytes]
) -> None:
    different = {
        row_id: rewrite.__name__
        for row_id, body, events in streams(dialect)
        if said(dialect, rewrite(events)) != said(dialect, body)
    }
    assert different == {}


@pytest.mark.parametrize("dialect", harness.WITH_CORPUS)
def test_an_answer_cut_into_any_chunks_reads_the_same(dialect: str) -> None:
    dice = random.Random(7)
    different: list[str] = []
    for row_id, body, _ in streams(dialect):
        cuts = sorted(dice.randrange(len(body)) for _ in range(40))
        chunks = [body[a:b] for a, b in pairwise([0, *cuts, len(body)])]
        if said(dialect, chunks) != said(dialect, body):
            different.append(row_id)
    assert different == []


@pytest.mark.parametrize("whole", [False, True])
def test_a_gemini_answer_in_the_envelope_of_code_assist_reads_the_same(whole: bool) -> None:
    different: list[str] = []
    for row in harness.rows(GEMINI):
        body, is_whole = harness.body(row)
        plain = said(GEMINI, body, whole=is_whole)
        if is_whole != whole or plain["error"] is not None:
            continue
        if whole:
            told = said(
                "code-assist", json.dumps({"response": json.loads(body)}).encode(), whole=True
            )
        else:
            events = frames(body.decode()) or []
            wrapped = [(name, {"traceId": "t", "response": data}) for name, data in events]
            told = said("code-assist", written(wrapped)) if wrapped else plain
        if told != plain or said("code-assist", body, whole=is_whole) != plain:
            different.append(row["id"])
    assert different == []


@pytest.mark.parametrize("dialect", harness.WITH_CORPUS)
def test_a_whole_body_where_a_stream_was_asked_for_reads_the_same(dialect: str) -> None:
    different: list[str] = []
    for row in harness.rows(dialect):
        body, whole = harness.body(row)
        if not whole or row["status"] != 200:
            continue
        once = said(dialect, body, whole=True)
        if once["error"] is None and "no_finish_reason" not in str(once["notices"]):
            different += [row["id"]] if said(dialect, body) != once else []
    assert different == []


@pytest.mark.parametrize("dialect", harness.WITH_CORPUS)
def test_a_broken_answer_reports_what_came_and_no_call_it_did_not_see_the_end_of(
    dialect: str,
) -> None:
    dice = random.Random(11)
    wrong: list[tuple[str, int]] = []
    for row_id, body, _ in streams(dialect):
        full = said(dialect, body)
        for cut in {dice.randrange(len(body)) for _ in range(4)}:
            if not is_part(said(dialect, body[:cut]), full):
                wrong.append((row_id, cut))
    assert wrong == []


def is_part(part: Json, full: Json) -> bool:
    """Whether a broken answer is a beginning of the full one."""
    # Cut between two frames, a Gemini stream is one that ended without its mark.
    unmarked = "unmarked_end" in str(part["notices"])
    if part["error"] is None and not unmarked:
        return {**part, "usage": None, "notices": None} == {**full, "usage": None, "notices": None}
    calls = [call for call in part["tool_calls"] if call["status"] == "complete"]
    broken = part["error"] is not None and part["error"]["kind"] == "incomplete_stream"
    return (
        (unmarked or (broken and part["stop_reason"] is None))
        and full["text"].startswith(part["text"])
        and full["reasoning"].startswith(part["reasoning"])
        and all(call in full["tool_calls"] for call in calls)
        and len(part["tool_calls"]) <= len(full["tool_calls"])
    )
