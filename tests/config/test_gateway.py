from pathlib import Path
from typing import Any

import pytest

from toolwire.config import edit, load, resolve
from toolwire.config.display import rows
from toolwire.config.gateway import (
    GatewaySettings,
    RouteTable,
    RouteTarget,
    RouteTimeout,
    duration,
    read_route,
)
from toolwire.config.layers import config_files
from toolwire.errors import ToolwireError

FILE = """\
[gateway]
hold_seconds = 5
max_requests = 20

[gateway.routes."claude-sonnet-*"]
to = ["anthropic/claude-sonnet-5", "openrouter/anthropic/claude-sonnet-5"]

[gateway.routes.fast]
balance = "least_busy"
to = [{ model = "groq/qwen-3", weight = 3, concurrent = 20 }, "cerebras/qwen-3"]
long_context = "google/gemini-3-flash"
timeout = { first = 120, silence = 300 }
cache = "1h"
"""


def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "TOOLWIRE_HOME": str(tmp_path),
        "TOOLWIRE_SYSTEM_CONFIG": str(_written(tmp_path / "system.toml", "")),
    }


def _written(file: Path, text: str) -> Path:
    file.write_text(text, "utf-8")
    return file


def test_a_file_with_routes_is_read_into_typed_values(tmp_path: Path) -> None:
    _written(tmp_path / "config.toml", FILE)
    found = load(environ(tmp_path), tmp_path).gateway
    assert found == GatewaySettings(
        hold_seconds=5.0,
        max_requests=20,
        routes={
            "claude-sonnet-*": RouteTable(
                to=("anthropic/claude-sonnet-5", "openrouter/anthropic/claude-sonnet-5")
            ),
            "fast": RouteTable(
                balance="least_busy",
                to=(RouteTarget(model="groq/qwen-3", weight=3, concurrent=20), "cerebras/qwen-3"),
                long_context="google/gemini-3-flash",
                timeout=RouteTimeout(first=120.0, silence=300.0),
                cache="1h",
            ),
        },
    )
    assert found.routes["fast"].targets[1] == RouteTarget(model="cerebras/qwen-3")
    assert found.routes["fast"].cache_seconds == 3600


def test_a_higher_layer_replaces_a_route_as_a_whole(tmp_path: Path) -> None:
    _written(tmp_path / "config.toml", '[gateway.routes.fast]\nto = ["groq/a"]\n')
    system = (
        '[gateway.routes.fast]\nto = ["groq/b"]\ncache = "1h"\n[gateway.routes.x]\nto = ["a/b"]'
    )
    variables = environ(tmp_path)
    _written(tmp_path / "system.toml", system)
    found = load(variables, tmp_path).gateway.routes
    assert found == {"fast": RouteTable(to=("groq/a",)), "x": RouteTable(to=("a/b",))}


def test_a_project_may_not_set_a_route(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / ".toolwire").mkdir(parents=True)
    _written(folder / ".toolwire" / "config.toml", '[gateway.routes.a]\nto = ["a/b"]\n')
    with pytest.raises(ToolwireError, match=r"gateway\.routes: a project may not set this"):
        load(environ(tmp_path), folder, trusted=True)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, 'gateway.routes."r": "to" is missing; name the models: to = ["provider/model"]'),
    ({"to": []}, "to: expected `array` of length >= 1"),
    ({"to": ["fast"]}, "to[0]: expected `str` matching regex"),
    ({"to": [{"model": "a/b", "wieght": 2}]}, 'to[0] "wieght"; did you mean "weight"?'),
    ({"to": [{"model": "a/b", "weight": 0}]}, "to[0].weight: expected `int` >= 1"),
    ({"to": [{"model": "a/b", "weight": 2}]}, "a weight has no effect with balance"),
    ({"to": [{"model": "a/b", "key": "sk-live"}]}, "to[0].key: expected `str` matching regex"),
    ({"to": ["a/b"], "balance": "random"}, "balance: invalid enum value 'random'"),
    ({"to": ["a/b"], "cache": "soon"}, "cache: expected `str` matching regex"),
    ({"to": ["a/b"], "timeout": {"first": -1}}, "timeout.first: expected `float` >= 0"),
    ({"to": ["a/b"], "fallbacks": []}, '"fallbacks"; did you mean "fallback"?'),
]


@pytest.mark.parametrize(("table", "words"), WRONG)
def test_a_wrong_route_is_an_error_that_names_the_setting(
    table: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolwireError) as failed:
        read_route("r", table)
    assert 'gateway.routes."r"' in str(failed.value)
    assert words in str(failed.value)


def test_a_setting_of_the_gateway_is_set_by_a_variable_and_shown_with_it(tmp_path: Path) -> None:
    variables = environ(tmp_path) | {"TOOLWIRE_GATEWAY_PORT": "9000"}
    found = resolve(variables, tmp_path)
    assert found.settings.gateway.port == 9000
    assert found.origins["gateway.port"] == "TOOLWIRE_GATEWAY_PORT"
    with pytest.raises(
        ToolwireError, match=r"gateway\.port must be a whole number from 0 to 65535"
    ):
        resolve(environ(tmp_path) | {"TOOLWIRE_GATEWAY_PORT": "70000"}, tmp_path)


def test_a_route_is_changed_and_shown_by_its_path(tmp_path: Path) -> None:
    file = _written(tmp_path / "config.toml", FILE)
    variables = environ(tmp_path)
    files = config_files(variables, tmp_path)
    edit.set_value(files, file, 'gateway.routes."claude-sonnet-*".balance', "in_turn", tmp_path)
    edit.set_value(files, file, "gateway.routes.token.to", '["a/b"]', tmp_path)
    shown = {row.key: row.value for row in rows(resolve(variables, tmp_path))}
    assert shown['gateway.routes."claude-sonnet-*".balance'] == "in_turn"
    assert shown["gateway.routes.token.to"] == ["a/b"]
    with pytest.raises(ToolwireError, match=r"name an entry: gateway\.routes\.<name>"):
        edit.set_value(files, file, "gateway.routes", "x", tmp_path)


def test_a_duration_is_a_number_and_a_unit() -> None:
    assert [duration(text) for text in ("90s", "30m", "2h", "7d")] == [90, 1800, 7200, 604_800]
    with pytest.raises(ToolwireError, match="is not a duration"):
        duration("1 week")
