"""From a request body to a ModelRequest: system, tools, thinking, sampling, output format."""

from typing import Any, Literal, cast

from toolwire.dialects.anthropic.decode_messages import messages_of, text_part
from toolwire.dialects.anthropic.shapes import EFFORTS, NAME, cache_mark, known
from toolwire.dialects.losses import keep
from toolwire.dialects.tools import ReceivedTools
from toolwire.errors import BadInput
from toolwire.messages import Kept, Message, Text
from toolwire.request import (
    AnyTool,
    Effort,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    Source,
    ToolChoice,
    ToolSpec,
)
from toolwire.wire.json_access import dump, flag, integer, is_object, number, obj, seq, text

_CHOICES: dict[object, Literal["auto", "required", "none"]] = {
    "auto": "auto",
    "any": "required",
    "tool": "required",
    "none": "none",
}
_DISPLAYS = {"summarized": True, "omitted": False}
_NOTHING_KEPT = Kept(dialect=NAME, fields="{}")
_received = ReceivedTools()


def decode_request(body: bytes, model: str = "") -> ModelRequest:
    """A client's request; `model` if it is not in the body (Bedrock, Vertex)."""
    members, raws = _received.members(body, "request")
    source = Source(NAME, members)
    messages = messages_of(raws.get("messages"), members.pop("messages", None), source)
    request = _RequestReader(source).request(messages, model)
    source.record(request)
    return request


class _RequestReader:
    """Takes members out of the body; the rest is stored in `Kept`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._left = dict(source.body)

    def request(self, messages: tuple[Message, ...], model: str) -> ModelRequest:
        left = self._left
        named = text(left.get("model"), "model")
        if named:
            del left["model"]
        # Most members are missing in most requests.
        choice, parallel = self._choice() if "tool_choice" in left else (None, None)
        config = self._output_config() if "output_config" in left else {}
        return ModelRequest(
            model=named or model,
            messages=messages,
            system=self._system() if "system" in left else (),
            tools=self._tools() if "tools" in left else (),
            tool_choice=choice,
            parallel_calls=parallel,
            max_output_tokens=integer(self._take("max_tokens"), "max_tokens"),
            temperature=self._number("temperature") if "temperature" in left else None,
            top_p=self._number("top_p") if "top_p" in left else None,
            top_k=self._number("top_k") if "top_k" in left else None,
            stop=self._stop() if "stop_sequences" in left else (),
            reasoning=self._reasoning(config) if config or "thinking" in left else None,
            output=self._output(config) if config or "output_format" in left else None,
            stream=flag(self._take("stream"), "stream"),
            kept=self._kept(config),
            source=self._source,
        )

    def _number(self, member: str) -> float | None:
        return number(self._take(member), member)

    def _take(self, member: str) -> object:
        """Removes and returns a member; null is not removed."""
        value = self._left.get(member)
        if value is not None:
            del self._left[member]
        return value

    def _system(self) -> tuple[Text, ...]:
        given = self._left.get("system")
        if not given:
            return ()
        if isinstance(given, str):
            parts: tuple[Text, ...] = (Text(given),)
        else:
            blocks = [obj(block, "system") for block in seq(given, "system")]
            if any(block.get("type") != "text" for block in blocks):
                raise BadInput("system: expected text blocks")
            parts = tuple(text_part(block) for block in blocks)
        del self._left["system"]
        return parts

    def _stop(self) -> tuple[str, ...]:
        given = seq(self._left.get("stop_sequences"), "stop_sequences")
        if given:
            del self._left["stop_sequences"]
        return tuple(text(word, "stop_sequences") for word in given)

    def _tools(self) -> tuple[AnyTool, ...]:
        given = seq(self._left.get("tools"), "tools")
        if given:
            del self._left["tools"]
        return _received.read(given, self._source, lambda source: _read_tools(given, source))

    def _choice(self) -> tuple[ToolChoice | None, bool | None]:
        """The choice, and whether several calls at once are allowed, which is part of it."""
        given = self._left.get("tool_choice")
        if given is None:
            return None, None
        choice = obj(given, "tool_choice")
        kind, name = text(choice.get("type"), "tool_choice.type"), choice.get("name")
        if kind not in _CHOICES or (kind == "tool" and not isinstance(name, str)):
            return None, None
        del self._left["tool_choice"]
        carried = {"type"}
        disabled = choice.get("disable_parallel_tool_use")
        parallel = not disabled if isinstance(disabled, bool) else None
        if parallel is not None:
            carried.add("disable_parallel_tool_use")
        names: tuple[str, ...] = ()
        if kind == "tool":
            carried.add("name")
            names = (cast(str, name),)
        kept = keep(NAME, choice, frozenset(carried))
        return ToolChoice(mode=_CHOICES[kind], names=names, kept=kept), parallel

    def _output_config(self) -> JsonObject:
        given = self._left.get("output_config")
        return dict(given) if is_object(given) else {}

    def _reasoning(self, config: JsonObject) -> Reasoning | None:
        effort = EFFORTS.get(text(config.get("effort"), "output_config.effort"))
        if effort is not None:
            del config["effort"]
        given = self._left.get("thinking")
        if given is None:
            return Reasoning(effort=effort) if effort is not None else None
        thinking = obj(given, "thinking")
        if not isinstance(thinking.get("type"), str):
            return Reasoning(effort=effort) if effort is not None else None
        del self._left["thinking"]
        return _thinking(thinking, effort)

    def _output(self, config: JsonObject) -> OutputFormat | None:
        for holder, member in ((config, "format"), (self._left, "output_format")):
            shape = holder.get(member)
            if not is_object(shape):
                continue
            if shape.get("type") == "json_schema" and is_object(shape.get("schema")):
                del holder[member]
                kept = keep(NAME, shape, frozenset({"type", "schema"}))
                return OutputFormat(kind="json_schema", schema=shape["schema"], kept=kept)
        return None

    def _kept(self, config: JsonObject) -> Kept:
        given = self._left.get("output_config")
        if is_object(given) and given:
            if config:
                self._left["output_config"] = config
            else:
                del self._left["output_config"]
        return Kept(dialect=NAME, fields=dump(self._left)) if self._left else _NOTHING_KEPT


def _thinking(thinking: JsonObject, effort: Effort | None) -> Reasoning:
    kind, budget, display = (thinking.get(key) for key in ("type", "budget_tokens", "display"))
    carried = {"type"}
    visible = _DISPLAYS.get(display) if isinstance(display, str) else None
    if visible is not None:
        carried.add("display")
    tokens: int | None = None
    if kind == "enabled" and type(budget) is int:
        tokens = budget
        carried.add("budget_tokens")
    elif kind == "adaptive":
        tokens = -1
    elif kind not in ("enabled", "disabled"):
        carried.discard("type")
    return Reasoning(
        enabled=kind != "disabled",
        effort=effort,
        budget=tokens,
        visible=visible,
        kept=keep(NAME, thinking, frozenset(carried)),
    )


def _read_tools(given: list[Any], source: Source) -> tuple[AnyTool, ...]:
    tools = tuple(_tool(obj(tool, f"tools[{at}]")) for at, tool in enumerate(given))
    for tool, wire in zip(tools, given, strict=True):
        source.add(tool, wire)
    return tools


def _tool(tool: JsonObject) -> AnyTool:
    kind, name = tool.get("type"), tool.get("name")
    schema = tool.get("input_schema")
    if kind not in (None, "custom") or not isinstance(name, str) or not is_object(schema):
        name_of_kind = kind if isinstance(kind, str) else ""
        return ServerTool(dialect=NAME, kind=name_of_kind, data=dump(tool))
    about, strict = tool.get("description"), tool.get("strict")
    described = isinstance(about, str) and about != ""
    bound = isinstance(strict, bool)
    carried = ("name", "input_schema", *(("description",) if described else ()))
    members = known(tool, *carried, *(("strict",) if bound else ()))
    return ToolSpec(
        name=name,
        description=cast(str, about) if described else "",
        parameters=schema,
        strict=strict if bound else None,
        cache=cache_mark(tool),
        kept=keep(NAME, tool, members),
    )
