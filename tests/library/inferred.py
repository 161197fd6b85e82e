"""What a type checker knows of the library; pyright fails on a line that is not so."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal, assert_type

import msgspec

from toolwire import Agent, Hooks, Result, Tool, ToolContext


class City(msgspec.Struct):
    """A Struct."""

    name: str


@dataclass
class Trip:
    """A dataclass."""

    to: City


async def outputs() -> None:
    """The output of each kind of agent and run."""
    plain = Agent("openai/gpt-5")
    city = Agent("openai/gpt-5", output=City)
    assert_type(plain, Agent[str])
    assert_type(plain.run_sync("?").output, str)
    assert_type(city, Agent[City])
    assert_type(await city.run("?"), Result[City])
    assert_type(city.run_sync("?").output.name, str)
    assert_type(city.run_sync("?", output=Trip).output, Trip)
    assert_type((await city.run("?", output=list[int])).output, list[int])
    assert_type(plain.run_sync("?", output=City | None).output, City | None)
    assert_type(Agent("m", output=Literal["a", "b"]).run_sync("?").output, Literal["a", "b"])
    assert_type(city.stream_output("?"), AsyncGenerator[City, None])
    assert_type(
        city.stream_output("?", output=dict[str, int]), AsyncGenerator[dict[str, int], None]
    )
    assert_type(city.as_tool("city", "Finds a city."), Tool)
    with city as same:
        assert_type(same, Agent[City])


def dependencies(context: ToolContext[City], other: ToolContext) -> None:
    """The dependencies of a tool."""
    assert_type(context.deps, City)
    assert_type(other.call_id, str)


HOOKS = Agent("openai/gpt-5", hooks=Hooks())
