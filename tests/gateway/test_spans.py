import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place, Simulated
from tests.gateway.served import serving
from toolwire.events import Usage
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.spans import new_trace, route_of, signals_of
from toolwire.simulator import Question, Reply, Say
from toolwire.telemetry.signals import Measure, Span

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WORDS = "marmalade"
BODY = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": WORDS}]}


def answering(question: Question) -> Reply:
    return Reply(pieces=(Say(f"{WORDS} it is"),))


def attributes(span: Any) -> dict[str, Any]:
    found = ((one["key"], one["value"]) for one in span["attributes"])
    return {key: next(iter(value.values())) for key, value in found}


def spans_in(file: Path) -> list[Any]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [
        span
        for line in lines
        for resource in line.get("resourceSpans", ())
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


@pytest.mark.parametrize("forwards", [True, False])
def test_a_request_is_a_server_span_around_a_client_span(tmp_path: Path, forwards: bool):
    place, file = Place(tmp_path), tmp_path / "telemetry.jsonl"
    (place.home / "config.toml").write_text(
        f'[telemetry]\noutfile = "{file}"\n[gateway]\ntraceparent = {str(forwards).lower()}\n'
    )
    with (
        Simulated(answering) as sim,
        serving(place, ("--upstream", sim.upstream("openai-chat", model="m-1"))) as (origin, _, _),
    ):
        headers = {"content-type": "application/json", "traceparent": CALLER}
        asked = urllib.request.Request(
            f"{origin}/v1/messages", json.dumps({**BODY, "stream": True}).encode(), headers
        )
        with urllib.request.urlopen(asked) as answer:
            answer.read()
        [received] = sim.requests
    inner, outer = spans_in(file)
    assert {inner["traceId"], outer["traceId"]} == {CALLER.split("-")[1]}
    assert outer["parentSpanId"] == CALLER.split("-")[2]
    assert inner["parentSpanId"] == outer["spanId"]
    assert (outer["name"], outer["kind"]) == ("POST /v1/messages", 2)
    assert (inner["name"], inner["kind"]) == ("chat m-1", 3)
    sent = f"00-{inner['traceId']}-{inner['spanId']}-01" if forwards else None
    assert received.headers.get("traceparent") == sent
    found = attributes(inner)
    assert found["gen_ai.provider.name"] == "upstream"
    assert found["gen_ai.response.finish_reasons"]["values"] == [{"stringValue": "end"}]
    assert int(found["gen_ai.usage.output_tokens"]) > 0
    assert attributes(outer)["http.response.status_code"] == "200"
    text = file.read_text()
    assert WORDS not in text
    for name in ("duration", "time_to_first_chunk", "time_per_output_chunk"):
        assert f'"gen_ai.client.operation.{name}"' in text


def test_an_error_of_the_upstream_is_one_of_both_spans():
    record = RequestRecord(
        id="req_1",
        path="/v1/chat/completions",
        provider="google",
        model="gemini-3-pro",
        status=502,
        error="auth",
        trace=new_trace(""),
        usage=Usage(input=3, output=4),
        duration=1.0,
    )
    found = [*signals_of(record, lambda size: size)]
    spans = [one for one in found if isinstance(one, Span)]
    assert [(one.name, one.error) for one in spans] == [
        ("generate_content gemini-3-pro", "auth"),
        ("POST /v1/chat/completions", "auth"),
    ]
    measures = {one.name: one.attributes for one in found if isinstance(one, Measure)}
    assert measures["gen_ai.client.operation.duration"]["error.type"] == "auth"


def test_without_a_trace_nothing_is_recorded():
    assert [*signals_of(RequestRecord(id="req_1"), lambda size: size)] == []


@pytest.mark.parametrize(
    ("path", "route"),
    [
        (
            "/v1beta/models/a/b:streamGenerateContent",
            "/v1beta/models/{model}:streamGenerateContent",
        ),
        ("/v1/models/gpt-5", "/v1/models/{model}"),
        ("/v1/responses/resp_1/input_items", "/v1/responses/{id}/input_items"),
        ("/v1/responses/compact", "/v1/responses/compact"),
    ],
)
def test_names_are_not_in_the_name_of_a_span(path: str, route: str):
    assert route_of(path) == route
