import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from bench import agent_session, agent_turn, floor, ours, sdks, streams
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


@pytest.mark.parametrize("context", [0, 12_000])
def test_a_long_session_is_measured_as_it_goes(
    context: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    work = agent_session.Work("openai-chat", 6, context, tmp_path)
    asyncio.run(agent_session.run(work, 3))
    lines = capsys.readouterr().out.splitlines()
    reports = [msgspec.json.decode(line, type=agent_session.Report) for line in lines]
    marks = [one for one in reports if isinstance(one, agent_session.Mark)]
    assert [mark.turns for mark in marks] == [3, 6]
    assert all(mark.rss_mb > 1 and mark.body_kb > 10 for mark in marks)
    assert isinstance(reports[-1], agent_session.Resumed)
    prefixes = [one for one in reports if isinstance(one, agent_session.Prefix)]
    assert [(one.requests, one.changes) for one in prefixes] == ([] if context else [(12, 0)])


def test_a_small_window_keeps_requests_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    longest: list[float] = []
    for context in (0, 12_000):
        home = tmp_path / str(context)
        home.mkdir()
        asyncio.run(agent_session.run(agent_session.Work("gemini", 16, context, home), 16))
        mark = msgspec.json.decode(
            capsys.readouterr().out.splitlines()[0], type=agent_session.Report
        )
        assert isinstance(mark, agent_session.Mark)
        longest.append(mark.body_kb)
    assert longest[1] < longest[0] * 0.8


def test_bytes_in_common_are_counted():
    assert agent_session.common(b"abcd", b"abxd") == 2
    assert agent_session.common(b"", b"a") == 0
    assert agent_session.common(b"ab", b"abc") == 2


@pytest.mark.slow
def test_one_headless_turn_is_measured(tmp_path: Path):
    table, goals = agent_turn.measure_turns(tmp_path, 1)
    assert [row[0] for row in table.rows[:-1]] == [
        "toolwire, two tool calls",
        "toolwire, answer alone",
        "toolwire, a shell command",
        "bare python",
    ]
    assert str(table.rows[-1][0]).startswith("gemini-cli")
    assert [goal.limit for goal in goals] == [5, 8, 4]


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
