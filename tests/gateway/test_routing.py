import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolwire.config import Settings, load
from toolwire.config.gateway import RouteTable, RouteTarget
from toolwire.errors import ConnectionFailed, ErrorKind, ProviderError, ToolwireError
from toolwire.events import Finished, ModelEvent, Notice, StopReason, TextDelta
from toolwire.gateway.deployments import (
    ModelOpener,
    OpenDeployment,
    first_within,
    with_members,
)
from toolwire.gateway.parts import Deployment, GatewayRefusal
from toolwire.gateway.routing import CoolDowns, GatewayRoutes, ModelRoute, matching, score
from toolwire.messages import Message, Origin, Text
from toolwire.request import Effort, HttpRequest, ModelRequest

FILE = """
[providers.one]
dialect = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
key_env = "ONE_KEY"
[providers.two]
dialect = "anthropic-messages"
base_url = "http://127.0.0.1:9"
key_env = "TWO_KEY"
[models."one/m"]
context = 1000
[models."one/alpha"]
context = 1000
[models."two/m"]
context = 1000
"""


class World:
    """Routes on real settings, with a clock and a count of busy deployments."""

    def __init__(self, tmp_path: Path, routes: str = "", **options: Any) -> None:
        (tmp_path / "config.toml").write_text(FILE + routes, "utf-8")
        (tmp_path / "system.toml").write_text("", "utf-8")
        self.environ = {
            "TOOLWIRE_HOME": str(tmp_path),
            "TOOLWIRE_SYSTEM_CONFIG": str(tmp_path / "system.toml"),
            "ONE_KEY": "k1",
            "ONE_KEY_2": "k2",
            "TWO_KEY": "k3",
        }
        self.settings: Settings = load(self.environ, tmp_path)
        self.now = 1000.0
        self.busy: Counter[str] = Counter()
        self.cooling = CoolDowns(lambda: self.now)
        self.routes = GatewayRoutes(
            self.settings,
            ModelOpener(self.settings, self.environ),
            cooling=self.cooling,
            busy=self.busy.__getitem__,
            providers=lambda: ["one", "two"],
            clock=lambda: self.now,
            **options,
        )

    def find(self, name: str) -> ModelRoute:
        return asyncio.run(self.routes.find(name))


def names(found: Sequence[Deployment]) -> list[str]:
    return [one.name for one in found]


def error(kind: ErrorKind, status: int = 500, retry_after: float | None = None) -> ProviderError:
    return ProviderError(kind, "no", status=status, retry_after=retry_after)


MATCHES = [
    ("fast", "fast"),
    ("claude-sonnet-5", "claude-sonnet-*"),
    ("claude-haiku-4", "claude-*"),
    ("gpt-5", "gpt-?"),
    ("gpt-50", "*"),
    ("claude-*", "claude-*"),
]


@pytest.mark.parametrize(("name", "route"), MATCHES)
def test_the_same_name_wins_then_the_pattern_with_the_longest_literal_part(
    name: str, route: str
) -> None:
    known = ("*", "claude-*", "fast", "claude-sonnet-*", "gpt-?")
    assert matching(name, known) == route
    assert matching("other", known[1:]) is None


def test_a_name_is_a_route_else_a_model_of_a_provider_else_of_one_catalogue(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, '[gateway.routes."a*"]\nto = ["two/x"]\n')
    assert names(world.find("alpha").deployments) == ["two/x"]
    assert names(world.find("one/any/model").deployments) == ["one/any/model"]
    assert world.find("one/alpha").name == "one/alpha"


def test_a_bare_model_is_found_in_the_catalogue_if_one_provider_has_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.find("alpha").name == "one/alpha"
    with pytest.raises(GatewayRefusal, match="offered by one/m, two/m; name one") as refused:
        world.find("m")
    assert (refused.value.status, refused.value.code) == (404, "model_not_found")


def test_an_unknown_model_is_a_404_with_the_nearest_name(tmp_path: Path) -> None:
    world = World(tmp_path, '[gateway.routes.fast]\nto = ["one/m"]\n')
    for name, near in (("fsat", "fast"), ("alhpa", "one/alpha"), ("nope/alpha", "one/alpha")):
        with pytest.raises(GatewayRefusal, match=f'did you mean "{near}"') as refused:
            world.find(name)
        assert refused.value.status == 404


def test_every_name_may_be_answered_by_one_model(tmp_path: Path) -> None:
    world = World(tmp_path, every=lambda name: f"one/{name}")
    assert names(world.find("whatever").order("", None)) == ["one/whatever"]


def test_a_route_with_an_unknown_provider_is_refused_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(ToolwireError, match=r'routes\."r": unknown provider "onne"; did you mean'):
        World(tmp_path, '[gateway.routes.r]\nto = ["one/m"]\nfallback = ["onne/m"]\n')


BALANCED = """
[gateway.routes.r]
balance = "{}"
to = ["one/a", {{ model = "one/a", key = "ONE_KEY_2"{} }}, "two/b"]
fallback = ["two/last"]
"""


def test_without_a_balance_the_order_is_that_of_the_settings(tmp_path: Path) -> None:
    route = World(tmp_path, BALANCED.format("in_order", "")).find("r")
    for conversation in ("", "c1", "c2"):
        expected = ["one/a", "one/a#ONE_KEY_2", "two/b", "two/last"]
        assert names(route.order(conversation, None)) == expected


def test_in_turn_each_is_first_equally_often_and_the_fallback_last(tmp_path: Path) -> None:
    route = World(tmp_path, BALANCED.format("in_turn", "")).find("r")
    orders = [names(route.order("", None)) for _ in range(6)]
    assert Counter(order[0] for order in orders) == {"one/a": 2, "one/a#ONE_KEY_2": 2, "two/b": 2}
    assert {order[-1] for order in orders} == {"two/last"}
    assert all(len(set(order)) == 4 for order in orders)


def test_by_weight_each_is_first_as_often_as_its_weight_and_not_in_one_go(tmp_path: Path) -> None:
    route = World(tmp_path, BALANCED.format("weighted", ", weight = 3")).find("r")
    firsts = [names(route.order("", None))[0] for _ in range(10)]
    assert Counter(firsts) == {"one/a": 2, "one/a#ONE_KEY_2": 6, "two/b": 2}
    assert "one/a#ONE_KEY_2" in firsts[:2]
    assert len(set(firsts[:5])) == 3


def test_the_least_busy_is_first_measured_by_its_weight(tmp_path: Path) -> None:
    world = World(tmp_path, BALANCED.format("least_busy", ", weight = 3"))
    route = world.find("r")
    world.busy.update({"one/a": 2, "one/a#ONE_KEY_2": 3, "two/b": 5})
    expected = ["one/a#ONE_KEY_2", "one/a", "two/b", "two/last"]
    assert names(route.order("", None)) == expected


def test_a_conversation_stays_at_its_deployment_until_it_cools(tmp_path: Path) -> None:
    world = World(tmp_path, BALANCED.format("least_busy", ""))
    route = world.find("r")
    first = {number: names(route.order(f"c{number}", None))[0] for number in range(60)}
    assert set(first.values()) == {"one/a", "one/a#ONE_KEY_2", "two/b"}
    assert first == {n: names(route.order(f"c{n}", None))[0] for n in range(60)}
    world.cooling.failed("two/b", error(ErrorKind.RATE_LIMIT, 429, 30.0))
    moved = {n: names(route.order(f"c{n}", None))[0] for n in range(60)}
    assert {n for n in first if first[n] != moved[n]} == {n for n in first if first[n] == "two/b"}
    world.now += 31
    assert first == {n: names(route.order(f"c{n}", None))[0] for n in range(60)}


@pytest.mark.parametrize("weight", [1, 2, 5, 9])
def test_conversations_are_spread_by_weight(weight: int) -> None:
    def first(number: int) -> str:
        scores = {"a": weight, "b": 1}
        return min(scores, key=lambda name: score(f"c{number}", name, scores[name]))

    share = sum(first(number) == "a" for number in range(1000)) / 1000
    assert abs(share - weight / (weight + 1)) < 0.08


def test_the_maker_of_the_newest_seal_is_first_while_it_does_not_cool(tmp_path: Path) -> None:
    world = World(tmp_path, BALANCED.format("in_order", ""))
    route = world.find("r")
    maker = Origin("anthropic", "two", "b")
    assert names(route.order("c", maker)) == ["two/b", "one/a", "one/a#ONE_KEY_2", "two/last"]
    world.cooling.failed("two/b", error(ErrorKind.AUTH, 401))
    assert names(route.order("c", maker)) == ["one/a", "one/a#ONE_KEY_2", "two/last"]
    assert names(route.order("c", Origin("gemini", "x", "y")))[0] == "one/a"


def test_the_last_deployment_left_is_always_tried(tmp_path: Path) -> None:
    world = World(tmp_path, BALANCED.format("in_order", ""))
    route = world.find("r")
    for number, one in enumerate(route.all):
        world.cooling.failed(one.name, error(ErrorKind.RATE_LIMIT, 429, 50.0 - number))
    assert names(route.order("c", None)) == ["two/last"]
    assert set(world.cooling.cooling()) == set(names(route.all))
    world.now += 100
    assert len(route.order("c", None)) == 4


def test_a_key_that_may_not_use_a_model_does_not_reach_it_by_a_route(tmp_path: Path) -> None:
    route = World(tmp_path, BALANCED.format("in_order", "")).find("r")
    found = route.order("c", None, lambda one: one.opened.name.startswith("two/"))
    assert names(found) == ["two/b", "two/last"]


def test_a_context_that_is_too_long_goes_to_the_long_model_once(tmp_path: Path) -> None:
    world = World(tmp_path, '[gateway.routes.r]\nto = ["one/a", "two/b"]\nlong_context = "two/z"\n')
    route = world.find("r")
    order = route.order("c", None)
    assert names(order) == ["one/a", "two/b"]
    too_long = error(ErrorKind.CONTEXT_TOO_LONG, 400)
    longer = route.after(too_long, order[:1], order[1:])
    assert names(longer) == ["two/z"]
    assert route.after(too_long, [*order[:1], *longer], []) == []


AFTER = [
    (error(ErrorKind.OVERLOADED, 529), True),
    (error(ErrorKind.RATE_LIMIT, 429), True),
    (error(ErrorKind.AUTH, 401), True),
    (ConnectionFailed("refused"), True),
    (error(ErrorKind.BAD_REQUEST, 400), False),
    (error(ErrorKind.CONTENT_FILTER, 400), False),
    (error(ErrorKind.CONTEXT_TOO_LONG, 400), False),
]


@pytest.mark.parametrize(("failed", "goes_on"), AFTER)
def test_the_next_one_is_asked_only_if_it_may_help(
    tmp_path: Path, failed: ToolwireError, goes_on: bool
) -> None:
    route = World(tmp_path, '[gateway.routes.r]\nto = ["one/a", "two/b"]\n').find("r")
    order = route.order("c", None)
    assert (names(route.after(failed, order[:1], order[1:])) == ["two/b"]) is goes_on


def test_a_deployment_without_a_key_is_left_out_and_tried_again_later(tmp_path: Path) -> None:
    routes = '[gateway.routes.r]\nto = [{ model = "one/a", key = "NO_KEY" }, "two/b"]\n'
    world = World(tmp_path, routes)
    assert names(world.find("r").order("c", None)) == ["two/b"]
    assert asyncio.run(world.routes.check()) == [
        'gateway.routes."r": one/a#NO_KEY: NO_KEY is not set, which has the key of one/a; '
        "set the variable"
    ]
    world.environ["NO_KEY"] = "x"
    assert names(world.find("r").order("c", None)) == ["two/b"]
    world.now += 31
    assert names(world.find("r").order("c", None)) == ["one/a#NO_KEY", "two/b"]


def test_a_route_whose_models_all_lack_a_key_says_why(tmp_path: Path) -> None:
    world = World(tmp_path, '[gateway.routes.r]\nto = [{ model = "one/a", key = "NO_KEY" }]\n')
    with pytest.raises(ToolwireError, match="NO_KEY is not set"):
        world.find("r")


def test_a_route_fixes_the_effort_and_puts_its_instructions_first(tmp_path: Path) -> None:
    routes = '[gateway.routes.r]\nto = ["one/a"]\neffort = "high"\nsystem_prefix = "Be brief."\n'
    route = World(tmp_path, routes).find("r")
    request = ModelRequest(
        model="x",
        system=(Text("Client."),),
        messages=(Message(role="user", parts=(Text("hi"),)),),
    )
    adapted = route.adapted(request)
    assert adapted.system == (Text("Be brief."), Text("Client."))
    assert adapted.reasoning is not None
    assert adapted.reasoning.effort is Effort.HIGH
    assert adapted.messages is request.messages


def test_extra_members_are_added_to_each_body(tmp_path: Path) -> None:
    world = World(tmp_path)
    changed = with_members(world.settings, "one/m", {"service_tier": "flex"})
    prepare = changed.provider("one").prepare
    assert prepare is not None
    http = HttpRequest(path="/x", body=b'{"model":"m"}')
    assert prepare(http).body == b'{"model":"m","service_tier":"flex"}'
    assert changed.provider("two") == world.settings.provider("two")


def test_a_first_event_that_is_late_is_a_timeout_and_later_ones_may_take_their_time() -> None:
    async def model(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield Notice("retry", "again")
        await asyncio.sleep(0.0 if request.model == "quick" else 30)
        yield TextDelta("a")
        await asyncio.sleep(0.1)
        yield Finished(reason=StopReason.END)

    async def events(name: str) -> list[ModelEvent]:
        request = ModelRequest(model=name, messages=())
        return [event async for event in first_within(model, 0.05)(request)]

    assert len(asyncio.run(events("quick"))) == 3
    with pytest.raises(ConnectionFailed, match=r"no event within 0\.05 s") as failed:
        asyncio.run(events("slow"))
    assert failed.value.kind == "timeout"


def test_targets_of_one_model_with_two_keys_are_two_deployments(tmp_path: Path) -> None:
    table = RouteTable(to=("one/a", RouteTarget(model="one/a", key="ONE_KEY_2", concurrent=3)))
    world = World(tmp_path)
    opener = ModelOpener(world.settings, world.environ)
    found = [OpenDeployment(one, asyncio.run(opener(one, table))) for one in table.targets]
    assert names(found) == ["one/a", "one/a#ONE_KEY_2"]
    assert [one.slot.most for one in found] == [0, 3]
