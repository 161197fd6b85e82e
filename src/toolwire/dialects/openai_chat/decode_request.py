"""A client's chat request, read."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from toolwire.dialects.kept import keep
from toolwire.dialects.openai_chat.decode_messages import decode_messages
from toolwire.dialects.openai_chat.leftovers import gather
from toolwire.dialects.openai_chat.read_tools import read_choice, read_tools
from toolwire.dialects.openai_chat.wire import NAME
from toolwire.messages import Kept
from toolwire.request import Effort, JsonObject, ModelRequest, OutputFormat, Reasoning
from toolwire.wire.json_access import dump, flag, integer, number, parse_object
from toolwire.wire.surrogates import whole_characters

_Value = TypeVar("_Value")
_EFFORTS = frozenset(effort.value for effort in Effort)


def decode_request(body: bytes, model: str = "") -> ModelRequest:
    """A client's request; what we have no value for is kept, also every null."""
    rest = parse_object(whole_characters(body), "request")
    words: list[str] = []
    messages = decode_messages(rest.pop("messages", []))
    named = rest.get("model")
    if isinstance(named, str) and named:
        model = rest.pop("model")
    tools = read_tools(rest)
    choice = read_choice(rest)
    return ModelRequest(
        model=model,
        messages=messages,
        tools=tools,
        tool_choice=choice,
        parallel_calls=_take(rest, "parallel_tool_calls", flag),
        max_output_tokens=_spelled(rest, ("max_completion_tokens", "max_tokens"), integer, words),
        temperature=_take(rest, "temperature", number),
        top_p=_take(rest, "top_p", number),
        top_k=_take(rest, "top_k", number),
        frequency_penalty=_take(rest, "frequency_penalty", number),
        presence_penalty=_take(rest, "presence_penalty", number),
        seed=_spelled(rest, ("seed", "random_seed"), integer, words),
        stop=_stop(rest, words),
        reasoning=_reasoning(rest),
        output=_output(rest),
        stream=_take(rest, "stream", flag),
        kept=Kept(dialect=NAME, fields=dump(rest), form=" ".join(words)),
    )


def _take(rest: JsonObject, key: str, read: Callable[[Any, str], _Value | None]) -> _Value | None:
    value = read(rest.get(key), key)
    if value is not None:
        del rest[key]
    return value


def _spelled(
    rest: JsonObject,
    keys: tuple[str, ...],
    read: Callable[[Any, str], _Value | None],
    words: list[str],
) -> _Value | None:
    """The first of several spellings; a second one stays as it is."""
    for key in keys:
        value = _take(rest, key, read)
        if value is not None:
            words.append(key)
            return value
    return None


def _stop(rest: JsonObject, words: list[str]) -> tuple[str, ...]:
    value = rest.get("stop")
    if isinstance(value, str):
        del rest["stop"]
        words.append("stop")
        return (value,)
    if value and isinstance(value, list):
        items = cast(list[Any], value)
        if all(isinstance(item, str) for item in items):
            del rest["stop"]
            return tuple(items)
    return ()


def _reasoning(rest: JsonObject) -> Reasoning | None:
    """The first way in which thinking is asked for; the others stay."""
    effort = rest.get("reasoning_effort")
    if effort in _EFFORTS:
        del rest["reasoning_effort"]
        return Reasoning(effort=Effort(effort))
    match rest.get("reasoning"):
        case {**asked} if asked:
            del rest["reasoning"]
            return _asked(asked)
        case _:
            pass
    match rest.get("thinking"):
        case {"type": "enabled" | "disabled" as state, **others}:
            del rest["thinking"]
            kept = keep(NAME, others, frozenset(), "thinking")
            return Reasoning(enabled=state == "enabled", kept=kept)
        case _:
            pass
    if isinstance(rest.get("enable_thinking"), bool):
        enabled = rest.pop("enable_thinking")
        return Reasoning(enabled=enabled, kept=gather({}, words=["enable_thinking"]))
    return None


def _asked(asked: JsonObject) -> Reasoning:
    """OpenRouter's `reasoning` object."""
    effort = asked.pop("effort") if asked.get("effort") in _EFFORTS else None
    budget = asked.get("max_tokens")
    if isinstance(budget, int) and not isinstance(budget, bool):
        del asked["max_tokens"]
    else:
        budget = None
    enabled = asked.pop("enabled") if isinstance(asked.get("enabled"), bool) else None
    hidden = asked.pop("exclude") if isinstance(asked.get("exclude"), bool) else None
    return Reasoning(
        enabled=enabled,
        effort=Effort(effort) if effort else None,
        budget=budget,
        visible=None if hidden is None else not hidden,
        kept=keep(NAME, asked, frozenset(), "reasoning"),
    )


def _output(rest: JsonObject) -> OutputFormat | None:
    found: OutputFormat | None = None
    match rest.get("response_format"):
        case {"type": "text", **others} if not others:
            found = OutputFormat(kind="text")
        case {"type": "json_object", **others} if not others:
            found = OutputFormat(kind="json")
        case {"type": "json_schema", "json_schema": {**inner}, **others} if not others:
            found = _schema(inner)
        case _:
            pass
    if found is not None:
        del rest["response_format"]
    return found


def _schema(inner: JsonObject) -> OutputFormat:
    schema = inner.get("schema")
    if isinstance(schema, dict):
        del inner["schema"]
    else:
        schema = None
    name = inner.get("name")
    if isinstance(name, str) and name:
        del inner["name"]
    else:
        name = ""
    strict = inner.pop("strict") if isinstance(inner.get("strict"), bool) else None
    return OutputFormat(
        kind="json_schema",
        schema=cast("JsonObject | None", schema),
        name=name,
        strict=strict,
        kept=keep(NAME, inner, frozenset()),
    )
