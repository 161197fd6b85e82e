import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from toolwire.config.document import page, settings_schema
from toolwire.config.schema import keys

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "configuration.md"


def test_the_page_about_the_settings_is_what_the_settings_say() -> None:
    assert PAGE.read_text("utf-8") == page(), (
        "run: python -m toolwire.config.document > docs/configuration.md"
    )


def test_the_stored_schema_is_what_the_settings_say() -> None:
    stored = json.loads((DOCS / "settings.schema.json").read_text("utf-8"))
    assert stored == json.loads(msgspec.json.encode(settings_schema())), "run: make docs"


def errors(table: dict[str, Any]) -> list[str]:
    validator = jsonschema_rs.Draft7Validator(settings_schema())
    return [error.message for error in validator.iter_errors(table)]


def at(path: str, value: object) -> dict[str, Any]:
    table: Any = value
    for name in reversed(path.split(".")):
        table = {name: table}
    return table


_FITTING = {
    "default_model": "openai/x",
    "sessions.store": "postgresql://h/d",
    "gateway.store": "postgresql://h/d",
    "gateway.prefix": "/toolwire",
}
"""Values of settings that not every text fits."""


@pytest.mark.parametrize("path", [key.path for key in keys().values() if not key.tables])
def test_every_setting_is_in_the_schema_with_its_default(path: str) -> None:
    default = msgspec.to_builtins(keys()[path].default)
    if default in (None, ""):
        default = _FITTING.get(path, "text")
        if keys()[path].expected.startswith("one of"):
            default = re.findall(r'"([^"]+)"', keys()[path].expected)[0]
        elif "number" in keys()[path].expected:
            default = 1
        elif keys()[path].expected == "true or false":
            default = True
    assert errors(at(path, default)) == []
    assert errors(at(f"{path}x", default)) != []


def test_every_example_of_the_page_fits_the_schema() -> None:
    examples = re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert examples
    for example in examples:
        assert errors(tomllib.loads(example)) == [], example


@pytest.mark.parametrize(
    "table",
    [
        {"limit": {}},
        {"limits": {"turns": "many"}},
        {"limits": {"turns": -1}},
        {"approval_mode": "bold"},
        {"default_model": "no-provider"},
        {"providers": {"mine": {"basurl": "x"}}},
        {"models": {"a/b": {"contxt": 1}}},
        {"mcp_servers": {"docs": {"comand": "x"}}},
        {"mcp_servers": {"docs": {"oauth": {"x": 1}}}},
    ],
)
def test_what_toolwire_would_refuse_is_flagged(table: dict[str, Any]) -> None:
    assert errors(table) != []
