"""Every SDK through `toolwire serve` to every upstream: ids, signatures, limits and cut streams."""

import itertools
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.gateway.scripted_model import FOLLOW_UP, SCENARIOS, ScriptedModel, expected
from tests.gateway.sdk_clients import CLIENTS, client_of, converse
from tests.gateway.served import UPSTREAMS, Served, served
from toolwire import dialects
from toolwire.request import ModelRequest

FOUR = ("chat", "responses", "anthropic", "gemini")
SHAPES = ("whole", "streamed")
_names = itertools.count()


class _Gateways:
    """One gateway per upstream, started when a test first uses it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._running: dict[str, Served] = {}

    def __getitem__(self, name: str) -> Served:
        if name not in self._running:
            self._running[name] = self._stack.enter_context(served(name, ScriptedModel()))
        return self._running[name]


@pytest.fixture(scope="module")
def gateways() -> Generator[_Gateways]:
    with ExitStack() as stack:
        yield _Gateways(stack)


class _Run:
    """A conversation, and what the upstream saw of it."""

    def __init__(self, gateway: Served, scenario: str) -> None:
        self.gateway = gateway
        self.scenario = scenario
        self.prompt = f"{scenario} run {next(_names)}"
        self._requests = len(gateway.upstream.requests)
        self._seals = len(gateway.upstream.seals.issued)

    def texts(self, client: str, shape: str, *more: str) -> list[str]:
        chat = client_of(client, self.gateway.origin, thinks=self.scenario == "signed")
        turns = converse(chat, (self.prompt, *more), stream=shape == "streamed")
        return [turn.text for turn in turns]

    @property
    def received(self) -> list[Any]:
        return self.gateway.upstream.requests[self._requests :]

    @property
    def decoded(self) -> list[ModelRequest]:
        codec = dialects.get(self.gateway.dialect)
        return [codec.decode_request(one.body, "m") for one in self.received]

    @property
    def seals(self) -> list[str]:
        return self.gateway.upstream.seals.issued[self._seals :]

    def check_upstream(self) -> None:
        """The vendor refused nothing, and every id in the history is one it gave."""
        assert [one.refusal for one in self.received] == [""] * len(self.received)
        issued = self.gateway.upstream.seals
        if self.gateway.dialect == "gemini":
            return
        for request in self.decoded:
            for message in request.messages:
                for call in message.calls:
                    assert issued.thoughts(call.id) is not None, call.id

    def statuses(self) -> list[int]:
        return [one.status for one in self.received]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("upstream", FOUR)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("scenario", ["one-call", "parallel"])
def test_calls_arrive_and_their_results_reach_the_model(
    gateways: _Gateways, client: str, upstream: str, scenario: str, shape: str
):
    run = _Run(gateways[upstream], scenario)
    texts = run.texts(client, shape)
    assert texts == ["Let me look.", expected(scenario)]
    assert run.statuses() == [200, 200]
    run.check_upstream()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_signed_thinking_reaches_the_vendor_again_in_every_later_turn(
    gateways: _Gateways, client: str, upstream: str, shape: str
):
    run = _Run(gateways[upstream], "signed")
    texts = run.texts(client, shape, FOLLOW_UP)
    answer = expected("signed")
    assert texts == ["", "", answer, f"Again: {answer}"]
    run.check_upstream()
    bodies = [one.body.decode() for one in run.received]
    if upstream == "chat":
        # A server of open models gives no signature; it wants its words back beside the call.
        assert [body.count("First a.") for body in bodies] == [0, 1, 1, 1]
        assert [body.count("Then b.") for body in bodies] == [0, 0, 1, 1]
        return
    first, second, *_ = run.seals
    assert [body.count(first) for body in bodies] == [0, 1, 1, 1]
    assert [body.count(second) for body in bodies] == [0, 0, 1, 1]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("upstream", FOUR)
@pytest.mark.parametrize("client", CLIENTS)
def test_the_gateway_waits_where_the_vendor_limits(
    gateways: _Gateways, client: str, upstream: str, shape: str
):
    run = _Run(gateways[upstream], "limited")
    assert run.texts(client, shape) == ["Let me look.", expected("limited")]
    assert run.statuses() == [429, 200, 200]
    run.check_upstream()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("upstream", FOUR)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_cut_answer_is_never_taken_for_a_whole_one(
    gateways: _Gateways, client: str, upstream: str, shape: str
):
    run = _Run(gateways[upstream], "cut")
    if shape == "whole":
        # Nothing was sent yet, so that the gateway may ask again.
        assert run.texts(client, shape) == ["Let me look.", expected("cut")]
        return
    with pytest.raises(Exception, match=r"\S") as raised:
        run.texts(client, shape)
    assert not isinstance(raised.value, AssertionError | KeyError), raised.value
    assert len(run.received) == 1


def test_every_scenario_is_in_the_matrix():
    assert set(SCENARIOS) == {"one-call", "parallel", "signed", "limited", "cut"}
