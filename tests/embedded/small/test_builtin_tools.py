from typing import Any

import pytest

from toolwire.embedded.small.tools import LEFT_OUT, TOOLS, KnownFiles, shown_tools, to_real
from toolwire.tools.registry import builtins

BUILT_IN = {spec.name: spec for spec in builtins().specs()}
PROJECT = KnownFiles(root="/home/me/app", files=("a.py",), text={"a.py": "a = 1\nb = 2\n"}.get)
WRITTEN = {"path": "a.py", "old": "a = 1", "new": "a = 3", "lines": "c = 3"}


def test_every_built_in_tool_is_shown_in_short_form_or_left_out() -> None:
    shown = set(TOOLS)
    assert shown | LEFT_OUT == set(BUILT_IN), "add the tool to TOOLS or to LEFT_OUT"
    assert not shown & LEFT_OUT


def test_of_the_built_in_tools_a_small_model_gets_only_short_forms() -> None:
    offered = shown_tools(tuple(BUILT_IN.values()), PROJECT)
    assert {tool.name for tool in offered} == {it for it in TOOLS if not TOOLS[it].planned}


@pytest.mark.parametrize("name", TOOLS)
def test_a_short_call_has_the_arguments_of_the_built_in_tool(name: str) -> None:
    short = TOOLS[name]
    schema: dict[str, Any] = BUILT_IN[name].parameters
    written = {one.shown: WRITTEN.get(one.shown, "some text") for one in short.arguments}
    real = to_real(name, written, PROJECT)
    assert set(real) <= set(schema["properties"])
    assert set(schema.get("required", ())) <= set(real)
