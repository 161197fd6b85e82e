"""Telemetry of real runs, decoded with OpenTelemetry's own protobuf classes."""

import base64
import json
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.fakes.simulated import Done, Place, Simulated
from tests.mcp.servers import in_settings
from toolwire.agent.events import (
    AgentEvent,
    ChildEvent,
    Noticed,
    Retrying,
    SessionOpened,
    TurnEnd,
    TurnEnded,
    TurnStarted,
)
from toolwire.simulator import Call, Fault, Reply, Say
from toolwire.telemetry.gemini import GeminiRecords
from toolwire.telemetry.signals import LogRecord

WORD = "marmalade"
"""In the prompt, a file and the answer: no telemetry contains it unless it is asked for."""
SECRET = "sk-sentinel-0123456789abcdef"
KINDS: dict[str, Any] = {
    "traces": ExportTraceServiceRequest,
    "logs": ExportLogsServiceRequest,
    "metrics": ExportMetricsServiceRequest,
}


class Received:
    """What a run recorded, in plain values."""

    def __init__(self, messages: list[tuple[str, Any]]) -> None:
        self.raw = messages
        self.spans = [
            {**_plain(span.attributes), "": span}
            for kind, one in messages
            if kind == "traces"
            for resource in one.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        self.logs = [
            {**_plain(record.attributes), "": record}
            for kind, one in messages
            if kind == "logs"
            for resource in one.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]
        self.metrics = {
            metric.name
            for kind, one in messages
            if kind == "metrics"
            for resource in one.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def named(self, name: str) -> list[dict[str, Any]]:
        return [one for one in self.spans if one[""].name == name]


def _plain(attributes: Any) -> dict[str, Any]:
    return {one.key: _value(one.value) for one in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_value(one) for one in value.array_value.values)
    return getattr(value, kind)


def of_file(file: Path) -> Received:
    found: list[tuple[str, Any]] = []
    for line in file.read_text().splitlines():
        document = json.loads(line, object_hook=_in_base64)
        kind = next(k for k in KINDS if f"resource{_TITLES[k]}" in document)
        found.append((kind, json_format.ParseDict(document, KINDS[kind]())))
    return Received(found)


_TITLES = {"traces": "Spans", "logs": "Logs", "metrics": "Metrics"}


def _in_base64(table: dict[str, Any]) -> dict[str, Any]:
    """OTLP writes ids in hexadecimal, protobuf's own JSON in base64."""
    for name in ("traceId", "spanId", "parentSpanId"):
        if name in table:
            table[name] = base64.b64encode(bytes.fromhex(table[name])).decode()
    return table


def replies(work: Path) -> tuple[Reply, ...]:
    """A request that is retried, two calls, one of which fails, and one of an MCP server."""
    paths = (str(work / "a.txt"), str(work / "missing.txt"))
    return (
        Reply(fault=Fault(status=429, retry_after="0")),
        Reply(pieces=tuple(Call.of("read_file", absolute_path=path) for path in paths)),
        Reply(pieces=(Call.of("echo"),)),
        Reply(pieces=(Say(f"done with {WORD}"),)),
    )


def run(place: Place, *args: str, **env: str) -> Done:
    (place.work / "a.txt").write_text(f"{WORD}\n")
    server = in_settings({"log": cast(Any, str(place.root / "received.jsonl"))})
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in server.items())
    (place.home / "config.toml").write_text(f"[mcp_servers.docs]\n{lines}\ntrust = true\n")
    with Simulated(replies(place.work)) as sim:
        upstream = sim.upstream("openai-chat", key=SECRET, model="gpt-x")
        return place.toolwire(
            "run",
            "--upstream",
            upstream,
            "--allowed-tools",
            "echo",
            "--temperature",
            "0.25",
            *args,
            f"use {WORD} {SECRET}",
            env=env,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def checked(found: Received) -> None:
    """The tables of the conventions."""
    (turn,) = found.named("invoke_agent toolwire")
    assert turn["gen_ai.operation.name"] == "invoke_agent"
    assert turn["gen_ai.agent.name"] == "toolwire"
    assert turn["gen_ai.usage.input_tokens"] > 0
    requests = [one for one in found.spans if one.get("gen_ai.operation.name") == "chat"]
    assert len(requests) == 4
    assert {one[""].parent_span_id for one in requests} == {turn[""].span_id}
    assert requests[-1]["gen_ai.response.finish_reasons"] == ("end",)
    assert requests[-1]["gen_ai.request.model"] == "gpt-x"
    assert requests[-1]["gen_ai.usage.output_tokens"] > 0
    assert requests[0]["error.type"] == "429"
    assert {one["server.address"] for one in requests} == {"127.0.0.1"}
    assert all(one["server.port"] > 0 for one in requests)
    assert {one["gen_ai.request.temperature"] for one in requests} == {0.25}
    assert all(one["gen_ai.response.time_to_first_chunk"] >= 0 for one in requests[1:])
    assert requests[1]["toolwire.attempt"] == 2
    calls = [one for one in found.spans if one.get("gen_ai.tool.call.id")]
    assert [one["gen_ai.tool.name"] for one in calls] == ["read_file"] * 2 + ["echo"]
    assert {one[""].parent_span_id for one in calls} == {turn[""].span_id}
    assert "Reads and returns the content" in calls[0]["gen_ai.tool.description"]
    assert [one["toolwire.tool.effect"] for one in calls] == ["read", "read", "other"]
    assert calls[-1]["toolwire.tool.server"] == "docs"
    (failed,) = [one for one in calls if one.get("error.type")]
    assert failed[""].status.code == 2
    (inner,) = [one for one in found.spans if one.get("mcp.method.name") == "tools/call"]
    assert inner[""].parent_span_id == calls[-1][""].span_id
    assert inner["mcp.protocol.version"] == "2025-11-25"
    assert inner["network.transport"] == "pipe"
    assert inner["jsonrpc.request.id"] > 0
    assert len({one[""].trace_id for one in found.spans}) == 1
    assert found.metrics >= {
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.duration",
        "mcp.client.operation.duration",
    }


def test_a_file_gets_the_spans_and_metrics_without_any_word(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "telemetry.jsonl"
    done = run(place, "--telemetry-outfile", str(file))
    assert done.code == 0, done.err
    found = of_file(file)
    checked(found)
    received = (place.root / "received.jsonl").read_text().splitlines()
    [call] = [m for m in map(json.loads, received) if m.get("method") == "tools/call"]
    (inner,) = found.named("tools/call echo")
    span = inner[""]
    parent = f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01"
    assert call["params"]["_meta"]["traceparent"] == parent
    assert call["id"] == inner["jsonrpc.request.id"]
    assert WORD not in file.read_text()
    assert SECRET not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


def test_the_words_are_included_where_they_are_asked_for(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "telemetry.jsonl"
    env = {
        "TOOLWIRE_TELEMETRY_OUTFILE": str(file),
        "TOOLWIRE_TELEMETRY_CONTENT": "both",
        "TOOLWIRE_TELEMETRY_GEMINI_EVENTS": "true",
        "TOOLWIRE_TELEMETRY_PROMPTS": "true",
    }
    assert run(place, **env).code == 0
    found = of_file(file)
    last = [one for one in found.spans if one.get("gen_ai.operation.name") == "chat"][-1]
    messages = json.loads(last["gen_ai.input.messages"])
    kinds = {part["type"] for message in messages for part in message["parts"]}
    assert kinds == {"text", "tool_call", "tool_call_response"}
    assert WORD in last["gen_ai.output.messages"]
    (system,) = json.loads(last["gen_ai.system_instructions"])
    assert system["type"] == "text"
    defined = {one["name"]: one for one in json.loads(last["gen_ai.tool.definitions"])}
    assert defined["read_file"]["parameters"]["required"] == ["absolute_path"]
    details = [
        one
        for one in found.logs
        if one[""].event_name == "gen_ai.client.inference.operation.details"
    ]
    assert len(details) == 3
    (prompt,) = [one for one in found.logs if one[""].event_name == "gemini_cli.user_prompt"]
    assert WORD in prompt["prompt"]
    asked = [one for one in found.logs if one[""].event_name == "gemini_cli.api_request"]
    assert all(WORD in one["request_text"] for one in asked)
    said = [one for one in found.logs if one[""].event_name == "gemini_cli.api_response"]
    assert said[-1]["response_text"] == f"done with {WORD}"
    assert SECRET not in file.read_text()


def test_records_of_gemini_cli(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "telemetry.jsonl"
    env = {"TOOLWIRE_TELEMETRY_GEMINI_EVENTS": "true"}
    assert run(place, "--telemetry-outfile", str(file), **env).code == 0
    found = of_file(file)
    names = [one["event.name"].removeprefix("gemini_cli.") for one in found.logs]
    assert names[:3] == ["config", "user_prompt", "api_request"]
    assert names.count("api_request") == names.count("api_response") == 3
    assert names.count("tool_call") == 3
    assert "chat.content_retry" in names
    # Two calls that only read run side by side: either may end first.
    made = [one for one in found.logs if one["event.name"] == "gemini_cli.tool_call"]
    assert [one["function_name"] for one in made] == ["read_file", "read_file", "echo"]
    first = next(one for one in made if one["success"])
    assert first["decision"] == "auto_accept"
    assert first["tool_type"] == "native"
    answered = next(one for one in found.logs if one["event.name"] == "gemini_cli.api_response")
    assert answered["total_token_count"] == (
        answered["input_token_count"] + answered["output_token_count"]
    )
    ends = [one["finish_reasons"] for one in found.logs if "finish_reasons" in one]
    assert ends == [("tool_calls",), ("tool_calls",), ("end",)]
    (failed,) = [one for one in found.logs if one["event.name"] == "gemini_cli.api_error"]
    assert {name: failed[name] for name in ("status_code", "error_type", "auth_type")} == {
        "status_code": 429,
        "error_type": "429",
        "auth_type": "",
    }
    assert all(one["session.id"] for one in found.logs)
    assert found.metrics >= {
        "gemini_cli.session.count",
        "gemini_cli.tool.call.count",
        "gemini_cli.api.request.count",
        "gemini_cli.token.usage",
    }
    assert WORD not in file.read_text()


@contextmanager
def collector(status: int = 200, wait: float = 0) -> Generator[tuple[str, list[tuple[str, Any]]]]:
    """A server that takes OTLP over HTTP."""
    received: list[tuple[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            kind = self.path.rsplit("/", 1)[-1]
            received.append((kind, KINDS[kind].FromString(body)))
            time.sleep(wait)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()


def on(address: str, **more: str) -> dict[str, str]:
    return {
        "TOOLWIRE_TELEMETRY_ENABLED": "true",
        "TOOLWIRE_TELEMETRY_ENDPOINT": address,
        **more,
    }


def test_an_endpoint_gets_the_same(place: Place) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with collector() as (address, received):
        env = on(address, TOOLWIRE_TELEMETRY_GEMINI_EVENTS="true", TRACEPARENT=parent)
        done = run(place, **env)
    assert done.code == 0, done.err
    found = Received(received)
    checked(found)
    assert {one[""].trace_id.hex() for one in found.spans} == {parent[3:35]}
    (turn,) = found.named("invoke_agent toolwire")
    assert turn[""].parent_span_id.hex() == parent[36:52]
    assert any(one["event.name"] == "gemini_cli.tool_call" for one in found.logs)
    whole = b"".join(one.SerializeToString() for _, one in received)
    assert WORD.encode() not in whole
    assert SECRET.encode() not in whole


def test_variables_of_opentelemetry_hold(place: Place) -> None:
    with collector() as (address, received):
        env = {"TOOLWIRE_TELEMETRY_ENABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": address}
        assert run(place, **env, OTEL_SDK_DISABLED="true").code == 0
        assert received == []
        assert run(place, **env, OTEL_RESOURCE_ATTRIBUTES="team=wires").code == 0
        assert run(place, **env, OTEL_TRACES_SAMPLER="always_off").code == 0
    traces = [one for kind, one in received if kind == "traces"]
    assert (
        len(
            {
                span.trace_id
                for one in traces
                for r in one.resource_spans
                for s in r.scope_spans
                for span in s.spans
            }
        )
        == 1
    )
    resource = _plain(traces[0].resource_spans[0].resource.attributes)
    assert resource["team"] == "wires"
    assert resource["service.name"] == "toolwire"


@pytest.mark.sweep
@pytest.mark.parametrize("trouble", ["nothing there", "slow", "error"])
def test_a_server_in_trouble_changes_nothing_of_the_run(place: Place, trouble: str) -> None:
    status, wait = (500, 0.0) if trouble == "error" else (200, 60.0)
    with collector(status, wait) as (address, _):
        if trouble == "nothing there":
            address = "http://127.0.0.1:9"
        done = run(place, **on(address))
    assert done.code == 0, done.err
    assert f"done with {WORD}" in done.out
    assert "Traceback" not in done.err
    assert "Failed to export" not in done.err.replace("not taken: Failed to export", "")
    assert done.err.count("telemetry was not") == 1


def test_a_file_that_cannot_be_written_is_named(place: Place) -> None:
    done = run(place, "--telemetry-outfile", "/proc/none/telemetry.jsonl")
    assert done.code != 0
    assert "telemetry.outfile" in done.err
    assert "Traceback" not in done.err


def test_records_of_what_a_session_is_connected_to_and_runs() -> None:
    child = "s2"
    events: list[AgentEvent] = [
        SessionOpened(session="s1", model="openai/gpt", mode="plan"),
        Noticed(kind="ide", message="edits are also shown in Fake Code"),
        Noticed(kind="fallback", message="openai/gpt does not answer; asking openai/mini"),
        ChildEvent(call_id="c", agent="reviewer", session=child, event=TurnStarted()),
        ChildEvent(
            call_id="c",
            agent="reviewer",
            session=child,
            event=TurnEnded(reason=TurnEnd.DONE, requests=3),
        ),
        Retrying(message="again", attempt=2, status=500),
        TurnEnded(reason=TurnEnd.FAILED, error="server"),
    ]
    records = GeminiRecords("s1", prompts=False, content=False)
    found = {
        one.name.removeprefix("gemini_cli."): one.attributes
        for number, event in enumerate(events)
        for one in records.feed(event, number * 1_000_000_000)
        if isinstance(one, LogRecord)
    }
    assert found["ide_connection"]["connection_type"] == "session"
    assert "flash_fallback" in found
    assert found["agent.start"]["agent_name"] == "reviewer"
    finish = found["agent.finish"]
    assert (finish["duration_ms"], finish["turn_count"], finish["terminate_reason"]) == (
        *(1000, 3),
        "done",
    )
    assert found["chat.content_retry_failure"]["total_attempts"] == 2
    assert found["conversation_finished"]["approvalMode"] == "plan"
