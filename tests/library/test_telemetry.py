"""Tracing by one argument."""

from pathlib import Path

import pytest

from tests.fakes.scripted import Scripted, says
from tests.telemetry.test_telemetry import Received, collector, of_file
from toolwire import Agent, TelemetrySettings


def worked(telemetry: str | Path | TelemetrySettings) -> None:
    with Agent(Scripted(says("Done.")), telemetry=telemetry) as agent:
        agent.run_sync("marmalade")


@pytest.mark.parametrize("given", ["text", "path", "settings"])
def test_a_file_gets_the_trace_without_words(tmp_path: Path, given: str):
    file = tmp_path / "trace.jsonl"
    worked({"text": str(file), "path": file}.get(given) or TelemetrySettings(outfile=str(file)))
    assert len(of_file(file).named("invoke_agent toolwire")) == 1
    assert "marmalade" not in file.read_text()


def test_a_server_gets_the_trace():
    with collector() as (address, received):
        worked(address)
    assert len(Received(received).named("invoke_agent toolwire")) == 1


def test_words_are_included_on_request(tmp_path: Path):
    file = tmp_path / "trace.jsonl"
    worked(TelemetrySettings(outfile=str(file), content="spans"))
    assert "marmalade" in file.read_text()


def test_without_it_nothing_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with Agent(Scripted(says("Done."))) as agent:
        agent.run_sync("Go.")
    assert list(tmp_path.iterdir()) == []
