import json

import pytest

from bench import floor, ours, sdks, streams
from bench.report import Goal, Table, render, render_goals
from toolwire.collect import Collector
from toolwire.events import Finished, StopReason
from toolwire.messages import Text, ToolCall

EVENTS = 40


@pytest.mark.parametrize("name", streams.NAMES)
def test_every_frame_ends_in_a_blank_line_and_holds_json(name: str):
    stream = streams.build(name, EVENTS)
    newline = b"\r\n" if stream.wire == "gemini" else b"\n"
    for frame in stream.frames:
        assert frame.endswith(newline * 2)
        assert frame.count(newline * 2) == 1
        data = frame.strip().split(newline)[-1].removeprefix(b"data: ")
        assert data == b"[DONE]" or isinstance(json.loads(data), dict)


@pytest.mark.parametrize("name", streams.NAMES)
def test_the_full_streams_have_about_two_thousand_frames(name: str):
    assert abs(len(streams.build(name).frames) - streams.EVENTS) <= 20


@pytest.mark.parametrize("name", streams.NAMES)
def test_our_dialects_read_what_the_streams_say(name: str):
    stream = streams.build(name, EVENTS)
    for chunks in (stream.blocks(100), list(stream.frames), [stream.body]):
        collector = Collector()
        collector.add_all(ours.events(stream.wire, chunks))
        parts = collector.message().parts
        text = "".join(part.text for part in parts if isinstance(part, Text))
        calls = [
            (part.name, json.loads(part.arguments)) for part in parts if isinstance(part, ToolCall)
        ]
        assert text == stream.text
        assert calls == [(call.name, json.loads(call.arguments)) for call in stream.calls]
        assert isinstance(collector.finished, Finished)
        expected = StopReason.TOOL_CALLS if stream.calls else StopReason.END
        assert collector.finished.reason is expected


@pytest.mark.parametrize("name", streams.NAMES)
def test_the_floor_reads_what_the_streams_say(name: str):
    stream = streams.build(name, EVENTS)
    for chunks in (stream.blocks(100), list(stream.frames)):
        feed = floor.feeder(stream.wire)
        events = [event for chunk in chunks for event in feed(chunk)]
        text = "".join(event.text for event in events if isinstance(event, floor.Said))
        closed = [event.arguments for event in events if isinstance(event, floor.Closed)]
        assert text == stream.text
        assert closed == [json.loads(call.arguments) for call in stream.calls]


@pytest.mark.parametrize("wire", streams.WIRES)
def test_one_long_call_is_read_whole(wire: str):
    stream = streams.build_call(wire, 4000)
    collector = Collector()
    collector.add_all(ours.events(wire, stream.blocks()))
    (call,) = collector.message().parts
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == json.loads(stream.calls[0].arguments)


def test_cutting_arguments_loses_nothing():
    deltas = streams.growing_arguments(1000, 20)
    assert len(deltas) == 20
    assert isinstance(json.loads("".join(deltas)), dict)


@pytest.mark.slow
@pytest.mark.parametrize("name", streams.NAMES)
def test_the_vendors_own_decoders_take_the_streams(name: str):
    sdks.reader(streams.build(name, EVENTS))()


def test_a_table_is_markdown_with_aligned_columns():
    table = Table("Things", ("name", "µs"), (("a", 1.234), ("bcdef", 123.4), ("g", None)), "Note.")
    assert render(table) == (
        "### Things\n"
        "\n"
        "Note.\n"
        "\n"
        "| name  |   µs |\n"
        "|-------|-----:|\n"
        "| a     | 1.23 |\n"
        "| bcdef |  123 |\n"
        "| g     |    – |\n"
    )


def test_a_goal_says_whether_its_limit_is_kept():
    kept = Goal("cost", 1.5, 1.2, "chat")
    broken = Goal("gain", 20, 19.0, at_least=True)
    assert (kept.met, broken.met) == (True, False)
    lines = render_goals((kept, broken)).splitlines()
    assert lines[-2].split("|")[-2].strip() == "yes"
    assert lines[-1].split("|")[-2].strip() == "NO"
