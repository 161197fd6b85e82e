"""Token counts both ways."""

from toolwire.dialects.gemini.json_kinds import whole_number
from toolwire.events import Usage
from toolwire.request import JsonObject

_COUNTS = (
    ("promptTokenCount", "input"),
    ("candidatesTokenCount", "output"),
    ("cachedContentTokenCount", "cached"),
    ("thoughtsTokenCount", "reasoning"),
)
_TOTAL, _TOOLS = "totalTokenCount", "toolUsePromptTokenCount"


def read_usage(metadata: JsonObject) -> tuple[Usage, JsonObject]:
    """The counts, and the members that no count of ours carries."""
    rest = dict(metadata)
    counts: JsonObject = {}
    for wire_name, name in _COUNTS:
        if whole_number(rest.get(wire_name)) is not None:
            counts[name] = rest.pop(wire_name)
    usage = Usage(**counts, reasoning_in_output=False)
    if _TOTAL in rest and rest[_TOTAL] == _total(usage, rest):
        del rest[_TOTAL]
    return usage, rest


def write_usage(usage: Usage, rest: JsonObject) -> JsonObject:
    """`usageMetadata`; empty if nothing was counted."""
    metadata: JsonObject = dict(rest)
    if usage.input is not None:
        metadata["promptTokenCount"] = usage.total_input
    output, reasoning = usage.output, usage.reasoning
    if output is not None and reasoning and usage.reasoning_in_output:
        output = max(0, output - reasoning)
    for name, value in (
        ("candidatesTokenCount", output),
        ("cachedContentTokenCount", usage.cached),
        ("thoughtsTokenCount", reasoning),
    ):
        if value is not None:
            metadata[name] = value
    if _TOTAL not in metadata:
        own = Usage(input=usage.input and usage.total_input, output=output, reasoning=reasoning)
        total = _total(own, rest)
        if total is not None:
            metadata[_TOTAL] = total
    return metadata


def _total(usage: Usage, rest: JsonObject) -> int | None:
    if usage.input is None and usage.output is None and usage.reasoning is None:
        return None
    extra = whole_number(rest.get(_TOOLS)) or 0
    return (usage.input or 0) + (usage.output or 0) + (usage.reasoning or 0) + extra
