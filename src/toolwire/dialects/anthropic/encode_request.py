"""From a ModelRequest to a request body: turns, tools, thinking, sampling, output format."""

from typing import cast

from toolwire.dialects import Encoded, arguments
from toolwire.dialects.anthropic.encode_messages import BlockWriter, message_content
from toolwire.dialects.anthropic.shapes import (
    CUSTOM,
    EFFORTS,
    NAME,
    NO_MODEL,
    OUTPUT_FORMAT,
    SYSTEM_STRING,
)
from toolwire.dialects.kept import form, kept_member, restore
from toolwire.dialects.losses import Losses
from toolwire.dialects.offered_tools import OfferedTools
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.thinking import budget_of
from toolwire.messages import Message, Part, ToolResult
from toolwire.request import (
    AnyTool,
    Effort,
    FreeformTool,
    HttpRequest,
    JsonObject,
    ModelRequest,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
)
from toolwire.schema import Profile, convert
from toolwire.wire.json_access import encode, is_object, parse_object
from toolwire.wire.names import NameRule, ToolNames

_LEAST_BUDGET = 1024
_written = OfferedTools()


class SettingsWriter:
    """Writes everything of a request but the conversation."""

    def __init__(
        self, request: ModelRequest, quirks: Quirks, writer: BlockWriter, losses: Losses, own: bool
    ) -> None:
        self._request = request
        self._quirks = quirks
        self._writer = writer
        self._losses = losses
        self._own = own

    def write(self, body: JsonObject, thinking_broken: bool) -> None:
        """Put the settings into the body. `thinking_broken`: the turn under way did not begin with
        signed thinking, which a fixed budget demands.
        """
        self._max_tokens(body)
        body.update(self._tools())
        self._thinking(body, thinking_broken)
        self._choice(body)
        self._output(body)
        self._sampling(body)
        if self._request.stream is not None:
            body["stream"] = self._request.stream
        self._unknown_here()

    def _max_tokens(self, body: JsonObject) -> None:
        request = self._request
        if request.max_output_tokens is not None:
            body["max_tokens"] = request.max_output_tokens
        elif not self._own:
            room = self._quirks.default_max_tokens
            budget = self._budget(request.reasoning) if request.reasoning else None
            body["max_tokens"] = room + (budget or 0)

    def _tools(self) -> JsonObject:
        tools = self._request.tools
        if self._own or not tools:
            return self._write_tools()
        terms = (self._quirks, self._request.tool_choice, self._writer.spare_marks_on_tools)

        def write(losses: Losses) -> JsonObject:
            writer = self._writer.reporting_to(losses)
            settings = SettingsWriter(self._request, self._quirks, writer, losses, self._own)
            return settings._write_tools()

        return _written.members(tools, terms, self._losses, write)

    def _write_tools(self) -> JsonObject:
        names = self._subset()
        if names:
            self._losses.add("tool_choice", ", ".join(names), "a subset; only those are offered")
        tools: list[JsonObject] = []
        for at, tool in enumerate(self._request.tools):
            path = f"tools[{at}]"
            if names and not isinstance(tool, ServerTool) and tool.name not in names:
                self._losses.add(path, tool.name, "outside the subset that may be called; left out")
                continue
            written = self._tool(tool, path)
            if written is not None:
                tools.append(written)
        return {"tools": tools} if tools else {}

    def _subset(self) -> tuple[str, ...]:
        choice = self._request.tool_choice
        if choice is None or choice.mode == "none":
            return ()
        named = choice.mode == "required" and len(choice.names) == 1
        return () if named else choice.names

    def _tool(self, tool: ToolSpec | FreeformTool | ServerTool, path: str) -> JsonObject | None:
        match tool:
            case ServerTool():
                if tool.dialect != NAME:
                    return None
                return parse_object(tool.data, path)
            case FreeformTool():
                return self._spec(arguments.as_function(tool, path, self._losses), path)
            case ToolSpec():
                return self._spec(tool, path)

    def _spec(self, tool: ToolSpec, path: str) -> JsonObject:
        written: JsonObject = {"name": self._writer.name(tool.name, tool.namespace)}
        if tool.description:
            written["description"] = tool.description
        written["input_schema"] = self._schema(tool, path)
        if tool.strict is not None and (self._own or (tool.strict and self._quirks.strict_tools)):
            written["strict"] = tool.strict
        elif tool.strict:
            self._losses.add(f"{path}.strict", "strict", "not sent to this server")
        if form(tool.kept, NAME) == CUSTOM:
            written["type"] = CUSTOM
        return self._writer.mark(restore(written, tool.kept, NAME), tool.cache, path)

    def _schema(self, tool: ToolSpec, path: str) -> JsonObject:
        schema = tool.parameters
        if self._own:
            return schema
        converted = convert(schema, Profile.ANTHROPIC, f"{path}.parameters")
        self._losses.extend(converted.losses)
        return converted.schema

    def _choice(self, body: JsonObject) -> None:
        request = self._request
        choice, parallel = request.tool_choice, request.parallel_calls
        if not self._own and "tools" not in body:
            if choice is not None and choice.mode != "none":
                self._losses.add("tool_choice", choice.mode, "no tools are offered")
            if parallel is not None:
                self._losses.add("parallel_calls", str(parallel), "no tools are offered")
            return
        if choice is None and parallel is None:
            return
        written = self._choice_word(choice or ToolChoice(), "thinking" in body and body["thinking"])
        if parallel is not None and written["type"] != "none":
            written["disable_parallel_tool_use"] = not parallel
        elif parallel is not None:
            self._losses.add("parallel_calls", str(parallel), "no tool may be called")
        body["tool_choice"] = restore(written, choice.kept if choice else None, NAME)

    def _choice_word(self, choice: ToolChoice, thinking: object) -> JsonObject:
        taken = self._quirks.tool_choices
        if choice.mode != "required":
            return {"type": choice.mode}
        named = len(choice.names) == 1
        if not self._own:
            thinks = isinstance(thinking, dict) and thinking != {"type": "disabled"}
            if thinks or ("named" if named else "required") not in taken:
                why = "a forced call excludes thinking" if thinks else "not taken by this server"
                self._losses.add("tool_choice", f"required {' '.join(choice.names)}".strip(), why)
                return {"type": "auto"}
        if named:
            return {"type": "tool", "name": self._writer.chosen_name(choice.names[0])}
        return {"type": "any"}

    def _thinking(self, body: JsonObject, broken: bool) -> None:
        reasoning = self._request.reasoning
        if reasoning is None:
            return
        written = self._own_thinking(reasoning) if self._own else self._foreign(reasoning, body)
        if written and written.get("type") == "enabled" and broken and not self._own:
            why = "the turn under way did not begin with thinking signed by this vendor"
            self._losses.add("reasoning", "thinking", why)
            written = {"type": "disabled"}
        if written:
            body["thinking"] = written

    def _own_thinking(self, reasoning: Reasoning) -> JsonObject:
        written: JsonObject = {}
        if reasoning.enabled is False:
            written["type"] = "disabled"
        elif reasoning.budget == -1:
            written["type"] = "adaptive"
        elif reasoning.budget is not None:
            written |= {"type": "enabled", "budget_tokens": reasoning.budget}
        elif reasoning.enabled and kept_member(reasoning.kept, NAME, "type") is None:
            written["type"] = "enabled"
        if reasoning.visible is not None:
            written["display"] = "summarized" if reasoning.visible else "omitted"
        return restore(written, reasoning.kept, NAME)

    def _foreign(self, reasoning: Reasoning, body: JsonObject) -> JsonObject | None:
        off = reasoning.enabled is False or reasoning.effort is Effort.NONE
        if off or reasoning.budget == 0:
            for member in ("effort", "budget", "visible"):
                value = getattr(reasoning, member)
                if value is not None:
                    self._losses.add(f"reasoning.{member}", str(value), "thinking is off")
            return {"type": "disabled"}
        written = self._way_to_think(reasoning, body)
        if written is not None and reasoning.visible is not None:
            written["display"] = "summarized" if reasoning.visible else "omitted"
        elif reasoning.visible is not None:
            self._losses.add(
                "reasoning.visible", str(reasoning.visible), "thinking is not asked for"
            )
        return restore(written, reasoning.kept, NAME) if written else None

    def _way_to_think(self, reasoning: Reasoning, body: JsonObject) -> JsonObject | None:
        budget = self._budget(reasoning)
        if budget is None:
            wanted = reasoning.enabled or reasoning.effort or reasoning.budget
            if wanted and self._quirks.adaptive_thinking:
                return {"type": "adaptive"}
            return None
        most = body["max_tokens"] - 1
        if most < _LEAST_BUDGET:
            self._losses.add("reasoning.budget", str(budget), "more than the whole answer may have")
            return None
        fitting = max(_LEAST_BUDGET, min(budget, most))
        if fitting != reasoning.budget:
            told = "reasoning.budget" if reasoning.budget is not None else "reasoning.effort"
            self._losses.add(told, str(reasoning.budget or reasoning.effort), f"sent as {fitting}")
        return {"type": "enabled", "budget_tokens": fitting}

    def _budget(self, reasoning: Reasoning) -> int | None:
        """A fixed number of thinking tokens, where one is asked for or must be."""
        if reasoning.enabled is False or reasoning.effort is Effort.NONE:
            return None
        if reasoning.budget is not None and reasoning.budget > 0:
            return max(reasoning.budget, _LEAST_BUDGET)
        if self._quirks.adaptive_thinking:
            return None
        if reasoning.effort is not None:
            return max(budget_of(reasoning.effort), _LEAST_BUDGET)
        wanted = reasoning.enabled or reasoning.budget == -1
        return budget_of(Effort.MEDIUM) if wanted else None

    def _output(self, body: JsonObject) -> None:
        rest = kept_member(self._request.kept, NAME, "output_config")
        config: JsonObject = dict(cast(JsonObject, rest)) if is_object(rest) else {}
        effort = self._effort()
        if effort:
            config["effort"] = effort
        output = self._request.output
        if output is not None and output.kind == "json_schema" and output.schema is not None:
            shape = restore({"type": "json_schema", "schema": output.schema}, output.kept, NAME)
            if form(output.kept, NAME) == OUTPUT_FORMAT:
                body["output_format"] = shape
            else:
                config["format"] = shape
            if output.name:
                self._losses.add("output.name", output.name, "formats have no names here")
        elif output is not None and output.kind != "text":
            self._losses.add("output", output.kind, "only a schema can be demanded")
        if config:
            body["output_config"] = config

    def _effort(self) -> str:
        reasoning = self._request.reasoning
        if reasoning is None or reasoning.effort is None:
            return ""
        effort = reasoning.effort
        if self._own:
            return effort.value
        if (
            effort is Effort.NONE
            or reasoning.enabled is False
            or not self._quirks.adaptive_thinking
        ):
            return ""
        if effort.value in EFFORTS:
            return effort.value
        self._losses.add("reasoning.effort", effort.value, "sent as low")
        return Effort.LOW.value

    def _sampling(self, body: JsonObject) -> None:
        request = self._request
        wanted: JsonObject = {
            "temperature": request.temperature,
            "top_p": request.top_p,
            "top_k": request.top_k,
        }
        for name, value in wanted.items():
            if value is None:
                continue
            why = "" if self._own else self._refused(name, value, body)
            if why:
                self._losses.add(name, str(value), why)
            elif name == "temperature" and value > 1 and not self._own:
                self._losses.add(name, str(value), "sent as 1, the highest")
                body[name] = 1
            else:
                body[name] = value
        self._stop(body)

    def _refused(self, name: str, value: float, body: JsonObject) -> str:
        if not self._quirks.sampling:
            return "the newest models take none"
        thinking = body.get("thinking")
        if is_object(thinking) and thinking != {"type": "disabled"}:
            fits = (name == "temperature" and value == 1) or (name == "top_p" and value >= 0.95)
            if not fits:
                return "not accepted beside thinking"
        if name == "top_p" and "temperature" in body:
            return "not accepted beside temperature"
        return ""

    def _stop(self, body: JsonObject) -> None:
        stop = self._request.stop
        kept = [word for word in stop if self._own or word.strip()]
        if len(kept) < len(stop):
            self._losses.add("stop", "white space", "a stop sequence must hold more than that")
        if kept:
            body["stop_sequences"] = kept

    def _unknown_here(self) -> None:
        for name in ("seed", "frequency_penalty", "presence_penalty", "previous_response_id"):
            value = getattr(self._request, name)
            if value is not None and value != "":
                self._losses.add(name, str(value), "this format has no such member")


VERSION = "2023-06-01"
_RULE = NameRule(limit=64)
_HEADERS = (("content-type", "application/json"), ("anthropic-version", VERSION))
_MOST_MARKS = 4
_NOTHING_SAID = "(The conversation begins here.)"


def encode_request(request: ModelRequest, quirks: Quirks) -> Encoded:
    """The request as it goes over the wire, and what it could not carry."""
    own = request.kept is not None and request.kept.dialect == NAME
    losses = Losses()
    losses.foreign(request, NAME)
    rule = quirks.name_rule or _RULE
    names = ToolNames(() if own else request.tools, rule, wrap_freeform=True)
    spare = frozenset[str]() if own else _spare_marks(request)
    files = own or request.kept is None
    writer = BlockWriter(names, losses, own=own, files=files, spare_marks=spare)
    body = _body(request, quirks, writer, losses) if not own else _own_body(request, writer)
    settings = SettingsWriter(request, quirks, writer, losses, own)
    settings.write(body, not own and _thinking_broken(body["messages"]))
    if own:
        body = restore(body, request.kept, NAME)
    else:
        # What stays the same comes first, for caches of requests as they are sent.
        body["messages"] = body.pop("messages")
    http = HttpRequest(path="/v1/messages", body=encode(body), headers=_HEADERS)
    return Encoded(http=http, losses=losses.done(), names=names)


def _own_body(request: ModelRequest, writer: BlockWriter) -> JsonObject:
    """A request that was read from this format: nothing is added or repaired."""
    forms = form(request.kept, NAME).split()
    body: JsonObject = {} if NO_MODEL in forms else {"model": request.model}
    if request.system:
        blocks = writer.texts(request.system, "system")
        plain = SYSTEM_STRING in forms and len(request.system) == 1
        body["system"] = request.system[0].text if plain else blocks
    body["messages"] = [
        message_content(message, writer.content(message, f"messages[{at}]"))
        for at, message in enumerate(request.messages)
    ]
    return body


def _body(request: ModelRequest, quirks: Quirks, writer: BlockWriter, losses: Losses) -> JsonObject:
    body: JsonObject = {"model": request.model}
    system = writer.texts(request.system, "system")
    messages = list(enumerate(request.messages))
    while messages and messages[0][1].role == "system":
        at, message = messages.pop(0)
        system += _only_text(writer.content(message, f"messages[{at}]"), at, losses)
    if system:
        body["system"] = system
    turns: list[JsonObject] = []
    for at, message in messages:
        _add_turn(turns, message, writer.content(message, f"messages[{at}]"), at, quirks, losses)
    _order(turns, losses)
    body["messages"] = turns
    return body


def _only_text(blocks: list[JsonObject], at: int, losses: Losses) -> list[JsonObject]:
    texts = [block for block in blocks if block["type"] == "text"]
    if len(texts) < len(blocks):
        losses.add(f"messages[{at}]", "media", "system instructions are text")
    return texts


def _add_turn(
    turns: list[JsonObject],
    message: Message,
    blocks: list[JsonObject],
    at: int,
    quirks: Quirks,
    losses: Losses,
) -> None:
    if not blocks:
        return
    role: str = message.role
    if role == "system" and not quirks.system_in_messages:
        losses.add(f"messages[{at}]", "system turn", "sent as the user's words")
        role = "user"
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append(restore({"role": role, "content": blocks}, message.kept, NAME))


def _order(turns: list[JsonObject], losses: Losses) -> None:
    """Results first in a turn, the user first of all, no white space where an answer goes on."""
    for turn in turns:
        if turn["role"] == "user":
            turn["content"].sort(key=_is_no_result)
    if not turns or turns[0]["role"] != "user":
        if turns:
            losses.add("messages[0]", "first turn", "a user's turn was put before it")
        else:
            losses.add("messages", "no turn", "a user's turn was put in")
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": _NOTHING_SAID}]})
    last = turns[-1]["content"][-1]
    if turns[-1]["role"] == "assistant" and last["type"] == "text":
        trimmed = last["text"].rstrip()
        if trimmed != last["text"]:
            losses.add("messages", "white space", "the last assistant text may not end with it")
            last["text"] = trimmed


def _is_no_result(block: JsonObject) -> bool:
    return block["type"] != "tool_result"


def _thinking_broken(messages: list[JsonObject]) -> bool:
    """Whether the last assistant turn made calls without thinking before them."""
    for message in reversed(messages):
        if message["role"] == "assistant":
            content = cast(list[JsonObject], message["content"])
            kinds = [block["type"] for block in content]
            return "tool_use" in kinds and kinds[0] not in ("thinking", "redacted_thinking")
    return False


def _spare_marks(request: ModelRequest) -> frozenset[str]:
    """Where cache marks stand beyond those that the vendor accepts."""
    marked = [f"tools[{at}]" for at, tool in enumerate(request.tools) if _is_marked(tool)]
    marked += [f"system[{at}]" for at, part in enumerate(request.system) if _is_marked(part)]
    for at, message in enumerate(request.messages):
        marked += _marked_parts(f"messages[{at}]", message.parts)
    # The first two mostly stand on tools and system, the last two on the newest turns.
    return frozenset(marked[2 : len(marked) - 2] if len(marked) > _MOST_MARKS else ())


def _marked_parts(path: str, parts: tuple[Part, ...]) -> list[str]:
    marked: list[str] = []
    for at, part in enumerate(parts):
        where = f"{path}.parts[{at}]"
        if isinstance(part, ToolResult):
            marked += _marked_parts(where, part.parts)
        if _is_marked(part):
            marked.append(where)
    return marked


def _is_marked(value: Part | AnyTool) -> bool:
    return getattr(value, "cache", None) is not None
