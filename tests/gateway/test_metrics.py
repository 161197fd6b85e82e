import re

from toolwire.events import Usage
from toolwire.gateway.metrics import Metrics, Sample, gauges, of_process
from toolwire.gateway.record import RequestRecord

LINE = re.compile(r'[a-z_]+(\{([a-z_]+="([^"\\\n]|\\.)*",?)*\})? [0-9.e+-]+(Inf)?')


def record(**members: object) -> RequestRecord:
    usual = RequestRecord(
        id="r",
        key="ada",
        client_format="anthropic-messages",
        upstream_format="gemini",
        provider="google",
        model="gemini-3",
        status=200,
        duration=0.3,
        overhead=0.0009,
        first_event=0.2,
        usage=Usage(input=100, output=20, cached=60, reasoning=5),
        cost=0.5,
    )
    for name, value in members.items():
        setattr(usual, name, value)
    return usual


def rendered(metrics: Metrics) -> dict[str, str]:
    text = metrics.render().decode()
    assert text.endswith("\n")
    lines = [line for line in text.splitlines() if not line.startswith("# TYPE ")]
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return dict(line.rsplit(" ", 1) for line in lines)


def test_requests_tokens_and_costs_are_counted():
    metrics = Metrics(lambda: frozenset({"ada", "google/gemini-3"}))
    metrics(record())
    metrics(record(retries=2, fallback=True, losses=3, error="rate_limit", disconnected="held"))
    found = rendered(metrics)
    named = 'client="anthropic-messages",upstream="gemini"'
    of_model = f'{{{named},provider="google",model="gemini-3",status="200"}}'
    assert found[f"toolwire_requests_total{of_model}"] == "2"
    assert found['toolwire_tokens_total{direction="input",kind="plain"}'] == "80"
    assert found['toolwire_tokens_total{direction="input",kind="cached"}'] == "120"
    assert found['toolwire_tokens_total{direction="output",kind="reasoning"}'] == "10"
    assert found['toolwire_cost_dollars_total{key="ada",model="gemini-3"}'] == "1"
    assert found[f"toolwire_losses_total{{{named}}}"] == "3"
    assert found["toolwire_retries_total"] == "2"
    assert found["toolwire_fallbacks_total"] == "1"
    assert found['toolwire_disconnects_total{when="held"}'] == "1"
    assert found['toolwire_upstream_errors_total{provider="google",kind="rate_limit"}'] == "1"
    assert found['toolwire_request_seconds_bucket{le="0.25"}'] == "0"
    assert found['toolwire_request_seconds_bucket{le="0.5"}'] == "2"
    assert found['toolwire_request_seconds_bucket{le="+Inf"}'] == "2"
    assert found["toolwire_request_seconds_count"] == "2"
    assert found['toolwire_overhead_seconds_bucket{le="0.001"}'] == "2"


def test_names_that_clients_invent_are_other():
    metrics = Metrics(lambda: frozenset({"fast"}))
    for number in range(5000):
        metrics(record(model=f"invented-{number}", key=""))
    metrics(record(model="x", route="fast", key=""))
    found = rendered(metrics)
    assert len(found) < 100
    assert found['toolwire_cost_dollars_total{key="other",model="other"}'] == "2500"
    assert found['toolwire_cost_dollars_total{key="other",model="fast"}'] == "0.5"


def test_one_metric_has_only_so_many_series():
    metrics = Metrics()
    for number in range(5000):
        metrics.count("made_up_total", provider=f"p{number}")
    found = rendered(metrics)
    assert found['made_up_total{provider="other"}'] == "3000"


def test_label_values_are_escaped():
    metrics = Metrics()
    metrics.count("made_up_total", provider='a"b\\c\nd')
    assert 'made_up_total{provider="a\\"b\\\\c\\nd"} 1' in metrics.render().decode()


def test_values_are_read_when_the_metrics_are():
    now = {"streams_open": 1.0, "hits_total": 2}
    metrics = Metrics(sources=[lambda: gauges("toolwire_", now), of_process])
    metrics.add_source(lambda: [Sample("toolwire_cooling", "gauge", 1, (("deployment", "a/b"),))])
    now["streams_open"] = 7
    found = rendered(metrics)
    assert (found["toolwire_streams_open"], found["toolwire_hits_total"]) == ("7", "2")
    assert found['toolwire_cooling{deployment="a/b"}'] == "1"
    assert float(found["process_cpu_seconds_total"]) > 0
    assert b"# TYPE toolwire_hits_total counter" in metrics.render()
