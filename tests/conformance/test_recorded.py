"""The project's samples, served as they are: over HTTP they read as they do from the file.

What they should read as is settled beside them, by the tests of each dialect.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.driving import Case, driven, only, run
from tests.samples import FOLDERS, HERE
from toolwire import providers
from toolwire.codec import read_answer
from toolwire.collect import Collector
from toolwire.errors import ToolwireError
from toolwire.messages import Part, Text, Thinking, ToolCall
from toolwire.simulator import Reply


def recorded() -> list[Any]:
    return [
        pytest.param(dialect, path, id=f"{folder}-{path.stem}")
        for dialect, folder in FOLDERS.items()
        for path in sorted((HERE / folder).glob("*.sse"))
    ]


def told(parts: tuple[Part, ...]) -> list[Any]:
    """What was said, without ids that are made up anew each time."""
    found: list[Any] = []
    for part in parts:
        match part:
            case Text() | Thinking():
                found.append((type(part), part.text, part.seal and part.seal.data))
            case ToolCall():
                seal = part.seal and part.seal.data
                found.append((part.name, part.arguments, part.complete, seal))
            case _:
                found.append(type(part))
    return found


@pytest.mark.parametrize(("dialect", "path"), recorded())
def test_a_recorded_answer_is_read_over_http_as_from_the_file(dialect: str, path: Path) -> None:
    body = path.read_bytes()
    wanted = read_answer(dialect, body)

    async def scenario() -> None:
        case = Case(providers.get("simulator").with_dialect(dialect), "simulated")
        async with driven(case, only(Reply(body=body))) as d:
            collector = Collector()
            error: ToolwireError | None = None
            try:
                await d.hear(collector)
            except ToolwireError as broken:
                error = broken
            assert type(error) is type(wanted.error)
            assert told(collector.message().parts) == told(wanted.message.parts)
            assert collector.finished == wanted.finished

    run(scenario())
