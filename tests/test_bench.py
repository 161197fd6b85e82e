import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from bench import agent_peers, agent_session, agent_turn, floor, mcp, ours, sdks, streams
from bench.measure import trend
from bench.report import Goal, Table, render, render_goals
from bench.startup import Sample
from toolwire.collect import Collector
from toolwire.events import Finished, StopReason
from toolwire.messages import Text, ToolCall
from toolwire.wire.calls import MAX_CALLS

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
    # Gemini's calls are whole, and one answer may make no more of them.
    events = MAX_CALLS if name == "gemini-tools" else streams.EVENTS
    assert abs(len(streams.build(name).frames) - events) <= 20


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


@pytest.mark.sweep
def test_one_headless_turn_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    table, _ = agent_turn.measure_turns(tmp_path, 1)
    assert [row[0] for row in table.rows[:4]] == [
        "toolwire, two tool calls",
        "toolwire, answer alone",
        "toolwire, a shell command",
        "bare python",
    ]


def program(folder: Path, name: str, body: str) -> None:
    file = folder / name
    file.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{name} 1.2.3" && exit\n{body}\n')
    file.chmod(0o755)


def test_agents_that_cannot_be_compared_are_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/nowhere")
    program(tmp_path / "bin", "gemini", "echo this folder is not trusted >&2; exit 55")
    program(tmp_path / "bin", "codex", "echo something else")
    commands, left_out = agent_turn.installed_peers("http://127.0.0.1:9", tmp_path)
    assert commands == {}
    assert left_out == [
        "gemini-cli 1.2.3 (exited with 55 without the answer: this folder is not trusted)",
        "codex 1.2.3 (exited with 0 without the answer: something else)",
        "Claude Code (`claude` is not on the path)",
    ]


def test_an_agent_gets_its_settings_and_no_other_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret")
    for peer in agent_peers.PEERS:
        program(
            tmp_path / "bin",
            peer.program,
            f'env > "$HOME/variables"; echo "{agent_peers.ANSWER}"',
        )
    commands, left_out = agent_turn.installed_peers("http://127.0.0.1:9", tmp_path)
    assert [name.partition(",")[0] for name in commands] == [
        "gemini-cli 1.2.3",
        "codex 1.2.3",
        "Claude Code 1.2.3",
    ]
    assert left_out == []
    for peer in agent_peers.PEERS:
        variables = (tmp_path / peer.program / "variables").read_text()
        assert f"HOME={tmp_path / peer.program}\n" in variables
        assert "secret" not in variables
    settings = json.loads((tmp_path / "gemini" / ".gemini" / "settings.json").read_text())
    assert settings["privacy"] == {"usageStatisticsEnabled": False}


def test_the_ratio_to_another_agent_is_of_rounds_measured_together():
    ours_taken = [Sample(100, 1, 10), Sample(200, 1, 10), Sample(400, 1, 10)]
    theirs = [Sample(300, 1, 50), Sample(400, 1, 50), Sample(2000, 1, 50)]
    turn = agent_turn.middle("gemini-cli 1.2.3, two tool calls", theirs, ours_taken)
    assert (turn.cpu_ms, turn.cpu_ratio, turn.rss_ratio) == (400, 3, 5)
    assert [goal.measured for goal in agent_turn.goals((turn,))] == [3, 3, 5]
    alone = agent_turn.middle("bare python", theirs, ours_taken)
    assert (alone.cpu_ratio, agent_turn.goals((alone,))) == (None, ())


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


def test_a_trend_counts_growth_in_full_and_a_disturbed_figure_little():
    turns = [float(turn) for turn in range(400, 2001, 200)]
    steady = [10.0] * 9
    growing = [10 + 3 * (turn - 400) / 1600 for turn in turns]
    assert trend(turns, steady) == 1
    assert trend(turns, growing) == pytest.approx(1.3)
    for at in range(9):
        for figure in (5.0, 20.0):
            disturbed = [*steady[:at], figure, *steady[at + 1 :]]
            assert trend(turns, disturbed) == 1
            disturbed = [*growing[:at], figure, *growing[at + 1 :]]
            assert trend(turns, disturbed) == pytest.approx(1.3, abs=0.05)


@pytest.mark.parametrize("way", mcp.WAYS)
def test_every_way_to_an_mcp_server_gets_its_answers(way: str):
    if way == "SDK":
        pytest.importorskip("mcp", reason="the official SDK is not installed")
    assert mcp.cost(way, 1000, 2, 1) > 0
