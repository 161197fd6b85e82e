"""From a ModelRequest to a request body: system, tools, thinking, sampling, output format."""

from fnmatch import fnmatchcase

from toolwire.dialects import Encoded
from toolwire.dialects import tools as arguments
from toolwire.dialects.anthropic.encode_messages import (
    BlockWriter,
    Original,
    Turn,
    encode_messages,
    spare_marks,
    thinking_broken,
)
from toolwire.dialects.anthropic.shapes import EFFORTS, NAME
from toolwire.dialects.losses import Losses, kept_member, restore
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.tools import OfferedTools
from toolwire.request import (
    Effort,
    FreeformTool,
    HttpRequest,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
    ToolSpec,
    budget_of,
)
from toolwire.schema import Profile, convert
from toolwire.wire.json_access import encode, is_object, object_or_empty, parse_object
from toolwire.wire.names import NameRule, ToolNames

VERSION = "2023-06-01"
_RULE = NameRule(limit=64)
_ANY_NAME = NameRule(limit=1 << 16, allowed=r"\s\S", first=r"\s\S")
"""Names that a client of this format chose are sent as they are."""
_HEADERS = (("content-type", "application/json"), ("anthropic-version", VERSION))
_LEAST_BUDGET = 1024
_written = OfferedTools()


def encode_request(request: ModelRequest, quirks: Quirks) -> Encoded:
    """The HTTP request, and what it could not carry."""
    original = Original(request, quirks)
    losses = Losses()
    losses.foreign(request, NAME)
    rule = quirks.name_rule or (_ANY_NAME if original.same_format else _RULE)
    names = ToolNames(request.tools, rule, wrap_freeform=True)
    spare = frozenset[str]() if original.same_format else spare_marks(request)
    writer = BlockWriter(names, losses, files=_knows_files(request), spare_marks=spare)
    body: JsonObject = {}
    if not original.copy(body, "model", "model"):
        body["model"] = request.model
    system, turns = encode_messages(request, original, quirks, writer, losses)
    if system or not original.copy(body, "system", "system"):
        system = writer.texts(request.system, "system") + system
        if system:
            body["system"] = system
    SettingsWriter(request, quirks, original, writer, losses).write(body, turns)
    # The stable members come first, for caches that compare request bodies.
    body = restore({**body, "messages": turns}, request.kept, NAME)
    headers = _HEADERS if not request.betas else (*_HEADERS, *_beta(request, quirks, losses))
    http = HttpRequest(path="/v1/messages", body=encode(body), headers=headers)
    return Encoded(http=http, losses=losses.done(), names=names)


def _beta(request: ModelRequest, quirks: Quirks, losses: Losses) -> list[tuple[str, str]]:
    """The header with the features that the server knows."""
    known: list[str] = []
    for feature in dict.fromkeys(request.betas):
        if any(fnmatchcase(feature, pattern) for pattern in quirks.betas):
            known.append(feature)
        else:
            losses.add("anthropic-beta", feature, "the server does not know this feature")
    return [("anthropic-beta", ",".join(known))] if known else []


def _knows_files(request: ModelRequest) -> bool:
    """Whether file ids may be this vendor's."""
    decoded_from = request.kept.dialect if request.kept is not None else request.source.dialect
    return decoded_from in ("", NAME)


class SettingsWriter:
    """Encodes everything of a request but the conversation."""

    def __init__(
        self,
        request: ModelRequest,
        quirks: Quirks,
        original: Original,
        writer: BlockWriter,
        losses: Losses,
    ) -> None:
        self._request = request
        self._quirks = quirks
        self._original = original
        self._writer = writer
        self._losses = losses

    def write(self, body: JsonObject, turns: list[Turn]) -> None:
        """Puts the settings into the body; `turns` is the conversation they are sent with."""
        self._max_tokens(body)
        self._tools(body)
        self._thinking(body, turns)
        self._choice(body)
        self._output(body)
        self._sampling(body)
        self._stop(body)
        stream = self._request.stream
        if not self._original.copy(body, "stream", "stream") and stream is not None:
            body["stream"] = stream
        self._unknown_here()

    def _max_tokens(self, body: JsonObject) -> None:
        if self._original.copy(body, "max_tokens", "max_output_tokens"):
            return
        limit = self._limit()
        if limit is not None:
            body["max_tokens"] = limit

    def _limit(self) -> int | None:
        """Maximum tokens of the answer; the default unless the request came in this format."""
        request = self._request
        if request.max_output_tokens is not None or self._original.same_format:
            return request.max_output_tokens
        budget = self._budget(request.reasoning) if request.reasoning else None
        limit = self._quirks.default_max_tokens + (budget or 0)
        return min(limit, self._quirks.most_tokens or limit)

    def _tools(self, body: JsonObject) -> None:
        request, original = self._request, self._original
        if not (self._subset() or self._quirks.name_rule) and original.copy(body, "tools", "tools"):
            return
        if original.same_format or not request.tools:
            body.update(self._write_tools())
            return
        terms = (self._quirks, request.tool_choice, self._writer.spare_marks_on_tools)

        def write(losses: Losses) -> JsonObject:
            writer = self._writer.reporting_to(losses)
            return SettingsWriter(request, self._quirks, original, writer, losses)._write_tools()

        body.update(_written.members(request.tools, terms, self._losses, write))

    def _write_tools(self) -> JsonObject:
        names = self._subset()
        if names:
            self._losses.add("tool_choice", ", ".join(names), "a subset; only those are offered")
        tools: list[JsonObject] = []
        for at, tool in enumerate(self._request.tools):
            path = f"tools[{at}]"
            if names and not isinstance(tool, ServerTool) and tool.name not in names:
                self._losses.add(path, tool.name, "not in the subset that may be called; left out")
                continue
            written = self._original.tool(tool) or self._tool(tool, path)
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
        parameters = f"{path}.parameters"
        schema = self._converted(tool.parameters, Profile.ANTHROPIC, parameters)
        written["input_schema"] = schema
        if tool.strict and not self._quirks.strict_tools:
            self._losses.add(f"{path}.strict", "strict", "not sent to this server")
        elif tool.strict and tool.parameters and convert(schema, Profile.ANTHROPIC_OUTPUT).losses:
            why = "the schema would have to change: closed objects, no bounds"
            self._losses.add(f"{path}.strict", "strict", why)
        elif tool.strict:
            written["strict"] = True
            written["input_schema"] = {**schema, "additionalProperties": False}
        return self._writer.mark(restore(written, tool.kept, NAME), tool.cache, path)

    def _converted(self, schema: JsonObject, profile: Profile, path: str) -> JsonObject:
        converted = convert(schema, profile, path)
        self._losses.extend(converted.losses)
        return converted.schema

    def _choice(self, body: JsonObject) -> None:
        request = self._request
        choice, parallel = request.tool_choice, request.parallel_calls
        offered = "tools" in body
        original = self._original
        as_it_was = (offered or original.has("tools")) and self._takes_choice(choice)
        if as_it_was and original.copy(body, "tool_choice", "tool_choice", "parallel_calls"):
            return
        if not offered:
            if choice is not None and choice.mode != "none":
                self._losses.add("tool_choice", choice.mode, "no tools are offered")
            if parallel is not None:
                self._losses.add("parallel_calls", str(parallel), "no tools are offered")
            return
        if choice is None and parallel is None:
            return
        written = self._choice_member(choice or ToolChoice(), body.get("thinking"))
        if parallel is not None and written["type"] != "none":
            written["disable_parallel_tool_use"] = not parallel
        elif parallel is not None:
            self._losses.add("parallel_calls", str(parallel), "no tool may be called")
        body["tool_choice"] = restore(written, choice.kept if choice else None, NAME)

    def _takes_choice(self, choice: ToolChoice | None) -> bool:
        """Whether no quirk of the server concerns the choice."""
        if choice is None or choice.mode != "required":
            return True
        named = len(choice.names) == 1
        if named and self._quirks.name_rule:
            return False
        return ("named" if named else "required") in self._quirks.tool_choices

    def _choice_member(self, choice: ToolChoice, thinking: object) -> JsonObject:
        if choice.mode != "required":
            return {"type": choice.mode}
        named = len(choice.names) == 1
        thinks = isinstance(thinking, dict) and thinking != {"type": "disabled"}
        if thinks or ("named" if named else "required") not in self._quirks.tool_choices:
            why = "a forced call excludes thinking" if thinks else "not accepted by this server"
            self._losses.add("tool_choice", f"required {' '.join(choice.names)}".strip(), why)
            return {"type": "auto"}
        if named:
            return {"type": "tool", "name": self._writer.chosen_name(choice.names[0])}
        return {"type": "any"}

    def _thinking(self, body: JsonObject, turns: list[Turn]) -> None:
        if self._takes_thinking() and self._original.copy(body, "thinking", "reasoning"):
            written = object_or_empty(body.get("thinking"))
        else:
            reasoning = self._request.reasoning
            written = self._fitted(reasoning) if reasoning is not None else None
        if written and written.get("type") == "enabled" and thinking_broken(turns):
            # The vendor rejects a budget if the current turn did not begin with signed thinking.
            why = "the current turn did not begin with thinking signed by this vendor"
            self._losses.add("reasoning", "thinking", why)
            written = {"type": "disabled"}
        if written:
            body["thinking"] = written

    def _takes_thinking(self) -> bool:
        """Whether no quirk of the server concerns the thinking."""
        reasoning = self._request.reasoning
        if self._quirks.adaptive_thinking or reasoning is None or reasoning.enabled is False:
            return True
        return reasoning.effort is None and reasoning.budget is not None and reasoning.budget >= 0

    def _fitted(self, reasoning: Reasoning) -> JsonObject | None:
        off = reasoning.enabled is False or reasoning.effort is Effort.NONE
        if off or reasoning.budget == 0:
            for member in ("effort", "budget", "visible"):
                value = getattr(reasoning, member)
                if value is not None:
                    self._losses.add(f"reasoning.{member}", str(value), "thinking is off")
            return {"type": "disabled"}
        written = self._mode(reasoning)
        if written is not None and reasoning.visible is not None:
            written["display"] = "summarized" if reasoning.visible else "omitted"
        elif reasoning.visible is not None:
            self._losses.add(
                "reasoning.visible", str(reasoning.visible), "thinking is not requested"
            )
        return restore(written, reasoning.kept, NAME) if written else None

    def _mode(self, reasoning: Reasoning) -> JsonObject | None:
        budget = self._budget(reasoning)
        if budget is None:
            requested = reasoning.enabled or reasoning.effort or reasoning.budget
            if requested and self._quirks.adaptive_thinking:
                return {"type": "adaptive"}
            return None
        limit = self._limit()
        most = budget if limit is None else limit - 1
        if most < _LEAST_BUDGET:
            self._losses.add("reasoning.budget", str(budget), "larger than max_tokens")
            return None
        fitting = max(_LEAST_BUDGET, min(budget, most))
        if fitting != reasoning.budget:
            path = "reasoning.budget" if reasoning.budget is not None else "reasoning.effort"
            self._losses.add(path, str(reasoning.budget or reasoning.effort), f"sent as {fitting}")
        return {"type": "enabled", "budget_tokens": fitting}

    def _budget(self, reasoning: Reasoning) -> int | None:
        """Thinking tokens, if the request or the server demands a fixed number."""
        if reasoning.enabled is False or reasoning.effort is Effort.NONE:
            return None
        if reasoning.budget is not None and reasoning.budget > 0:
            return max(reasoning.budget, _LEAST_BUDGET)
        if self._quirks.adaptive_thinking:
            return None
        if reasoning.effort is not None:
            return max(budget_of(reasoning.effort), _LEAST_BUDGET)
        requested = reasoning.enabled or reasoning.budget == -1
        return budget_of(Effort.MEDIUM) if requested else None

    def _output(self, body: JsonObject) -> None:
        members = ("output_config", "output_format")
        if self._takes_thinking() and all(
            self._original.copy(body, member, "reasoning", "output") for member in members
        ):
            return
        rest = kept_member(self._request.kept, NAME, "output_config")
        config: JsonObject = dict(rest) if is_object(rest) else {}
        effort = self._effort()
        if effort:
            config["effort"] = effort
        output = self._request.output
        schema = self._output_schema(output) if output is not None else None
        if output is not None and schema is not None:
            config["format"] = restore({"type": "json_schema", "schema": schema}, output.kept, NAME)
            if output.name:
                self._losses.add("output.name", output.name, "output formats have no names here")
        elif output is not None and output.kind != "text":
            why = "only a JSON schema that describes its members can be required"
            self._losses.add("output", output.kind, why)
        if config:
            body["output_config"] = config

    def _output_schema(self, output: OutputFormat) -> JsonObject | None:
        """The schema of the answer; None without one, and for any object: it would be `{}`."""
        schema = output.schema
        if schema is None or output.kind != "json_schema" or self._original.has("output"):
            return schema
        if schema.keys() <= {"type", "title", "description"} and schema.get("type") == "object":
            return None
        return self._converted(schema, Profile.ANTHROPIC_OUTPUT, "output.schema")

    def _effort(self) -> str:
        reasoning = self._request.reasoning
        if reasoning is None or reasoning.effort is None:
            return ""
        effort = reasoning.effort
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
        for name in ("temperature", "top_p", "top_k"):
            value = getattr(self._request, name)
            if self._quirks.sampling and self._original.copy(body, name, name):
                continue
            if value is None:
                continue
            why = self._refused(name, value, body)
            if why:
                self._losses.add(name, str(value), why)
            elif name == "temperature" and not 0 <= value <= 1:
                body[name] = int(value > 1)
                self._losses.add(name, str(value), f"sent as {body[name]}: it is from 0 to 1")
            else:
                body[name] = value

    def _refused(self, name: str, value: float, body: JsonObject) -> str:
        if not self._quirks.sampling:
            return "not accepted by this model"
        thinking = body.get("thinking")
        if is_object(thinking) and thinking != {"type": "disabled"}:
            fits = (name == "temperature" and value == 1) or (name == "top_p" and value >= 0.95)
            if not fits:
                return "not accepted beside thinking"
        if name == "top_p" and "temperature" in body:
            return "not accepted beside temperature"
        return ""

    def _stop(self, body: JsonObject) -> None:
        if self._original.copy(body, "stop_sequences", "stop"):
            return
        stop = self._request.stop
        sequences = [word for word in stop if word.strip()]
        if len(sequences) < len(stop):
            self._losses.add("stop", "white space", "a stop sequence must not be blank")
        if sequences:
            body["stop_sequences"] = sequences

    def _unknown_here(self) -> None:
        for name in ("seed", "frequency_penalty", "presence_penalty", "previous_response_id"):
            value = getattr(self._request, name)
            if value is not None and value != "":
                self._losses.add(name, str(value), "this format has no such member")
