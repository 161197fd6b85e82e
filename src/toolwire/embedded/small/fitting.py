"""A request in the form a small model gets it: short instructions, tools and results."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pkgutil import get_data
from types import MappingProxyType
from typing import cast

import msgspec

from toolwire.embedded.small.past import Past, RequestKind
from toolwire.embedded.small.tools import KnownFiles, shown_tools, without_paths
from toolwire.events import (
    Notice,
)
from toolwire.request import JsonObject, ModelRequest, ToolChoice, ToolSpec

_MOST_WRITTEN = 600
"""Tokens of one answer: a minute on two slow cores; longer answers are loops."""
_calls = re.compile(r'^\{"tool": "([^"]+)"', re.MULTILINE).findall


class Fitted(msgspec.Struct, frozen=True):
    """A request shortened for a small model, and notices of what was left out."""

    request: ModelRequest
    instructions: str
    """The system prompt. It describes all tools even if only a reply is allowed, so that the cached
    prefix stays valid.
    """
    notices: tuple[Notice, ...] = ()


def fit(
    request: ModelRequest,
    project: KnownFiles,
    *,
    listed: KnownFiles,
    kinds: Mapping[str, RequestKind | None] = MappingProxyType({}),
    closing: bool = False,
    without: Sequence[str] = (),
) -> Fitted:
    """The request with short instructions, short tools and short results.

    `listed` are the files named in the first message: they stay the same while the project
    changes, so that the cached prefix stays valid. `closing` allows only a reply;
    `without` names tools whose last call was refused.
    """
    past = Past(project, listed, kinds)
    messages = tuple(past.message(message) for message in request.messages)
    tools = shown_tools(request.tools, project)
    choice = request.tool_choice
    if closing or past.must_reply:
        choice = ToolChoice(mode="none")
    elif past.must_act:
        choice = ToolChoice(mode="required")
    fitted = msgspec.structs.replace(
        request,
        system=(),
        messages=messages,
        tools=tuple(it for it in _useful(tools, past) if it.name not in without),
        tool_choice=choice,
        parallel_calls=None,
        max_output_tokens=min(request.max_output_tokens or _MOST_WRITTEN, _MOST_WRITTEN),
    )
    return Fitted(fitted, _instructions(tools), tuple(past.notices))


def _useful(tools: Sequence[ToolSpec], past: Past) -> tuple[ToolSpec, ...]:
    """The tools that are useful now: no shell for a question, no call a third time."""
    return tuple(
        without_paths(tool, past.read) if tool.name == "read_file" else tool
        for tool in tools
        if tool.name not in past.repeated
        and (tool.name != "run_shell_command" or past.kind is RequestKind.COMMAND)
    )


def _instructions(tools: Sequence[ToolSpec]) -> str:
    offered = {tool.name for tool in tools}
    examples = [block for block in _examples() if set(_calls(block)) <= offered]
    return (
        _text("prompt.md")
        .replace("{tools}", "\n".join(map(_line, tools)))
        .replace("{examples}", "\n\n".join(examples))
        .rstrip()
    )


@cache
def _text(name: str) -> str:
    return (get_data("toolwire.embedded.small", name) or b"").decode()


@cache
def _examples() -> tuple[str, ...]:
    return tuple(re.split(r"\n\n(?=Request: )", _text("examples.md").strip()))


def _line(tool: ToolSpec) -> str:
    members = cast(JsonObject, tool.parameters.get("properties") or {})
    about = tool.description.strip().partition("\n")[0][:160]
    return f"{tool.name}({', '.join(members)}): {about}"
