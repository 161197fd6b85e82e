"""`generationConfig` and `toolConfig` of our requests."""

from typing import Any

from toolwire.dialects.gemini.config_in import (
    ANY_BUDGET,
    GENERATION,
    JSON_TYPE,
    LEVELS,
    MODE_FOR,
    PLAIN,
    mode_of,
)
from toolwire.dialects.gemini.schemas import from_openapi, in_words, to_gemini
from toolwire.dialects.gemini.spelling import Spelled
from toolwire.dialects.losses import Losses
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.thinking import budget_of, effort_of
from toolwire.request import (
    Effort,
    JsonObject,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ServerTool,
    ToolChoice,
)
from toolwire.wire.names import ToolNames


def generation_config(
    request: ModelRequest, spelled: Spelled, quirks: Quirks, losses: Losses
) -> JsonObject | None:
    """Sampling, limits, thinking and output; None if nothing is to be said."""
    config: JsonObject = {}
    for wire_name, name, _ in PLAIN:
        value = getattr(request, name)
        if value is not None:
            config[wire_name] = value
    if request.stop:
        config["stopSequences"] = list(request.stop)
    if request.reasoning is not None:
        thinking = _thinking(request.reasoning, spelled, quirks, losses)
        if thinking or spelled.exact:
            config["thinkingConfig"] = thinking
    if request.output is not None:
        config.update(_output(request.output, spelled, quirks, losses))
    written = spelled.write(f"{GENERATION}.", config)
    return written if written or spelled.shape(GENERATION) else None


def _thinking(reasoning: Reasoning, request: Spelled, quirks: Quirks, losses: Losses) -> JsonObject:
    spelled = Spelled(reasoning.kept, exact=request.exact)
    if request.exact or spelled.own:
        config = _as_written(reasoning, spelled)
    else:
        config = _amount(reasoning, quirks, losses)
    visible = reasoning.visible
    if visible is None and not request.own and config.get("thinkingBudget") != 0:
        visible = True if reasoning.enabled or config else None
    if visible is not None:
        config["includeThoughts"] = visible
    return spelled.write("", config)


def _as_written(reasoning: Reasoning, spelled: Spelled) -> JsonObject:
    config: JsonObject = {}
    if reasoning.budget is not None:
        config["thinkingBudget"] = reasoning.budget
    elif reasoning.enabled is False and reasoning.effort is None:
        config["thinkingBudget"] = 0
    level = spelled.form.get("level")
    if isinstance(level, str) and LEVELS.get(level.upper()) == reasoning.effort:
        config["thinkingLevel"] = level
    elif reasoning.effort is not None:
        config["thinkingLevel"] = reasoning.effort.upper()
    return config


def _amount(reasoning: Reasoning, quirks: Quirks, losses: Losses) -> JsonObject:
    """How much to think: a level or a budget, never both."""
    effort, budget = reasoning.effort, reasoning.budget
    if reasoning.enabled is False or effort is Effort.NONE:
        if effort is not None:
            losses.add("reasoning.effort", effort, "sent as a budget of nothing")
        if budget:
            losses.add("reasoning.budget", f"{budget} tokens", "thinking is switched off")
        return {"thinkingBudget": 0}
    if effort is not None and (quirks.gemini_thinking == "level" or budget is None):
        if budget is not None:
            losses.add("reasoning.budget", f"{budget} tokens", "a level is sent instead")
        if quirks.gemini_thinking == "budget":
            losses.add("reasoning.effort", effort, "sent as a budget")
            return {"thinkingBudget": min(budget_of(effort), 24576)}
        level = effort.upper() if effort.upper() in LEVELS else "HIGH"
        if level != effort.upper():
            losses.add("reasoning.effort", effort, f"{level} is the most there is")
        return {"thinkingLevel": level}
    if effort is not None and budget is not None and effort_of(budget) is not effort:
        losses.add("reasoning.effort", effort, "the budget is sent instead")
    if budget is None:
        return {"thinkingBudget": ANY_BUDGET} if reasoning.enabled else {}
    return {"thinkingBudget": budget}


def _output(output: OutputFormat, request: Spelled, quirks: Quirks, losses: Losses) -> JsonObject:
    spelled = Spelled(output.kept, exact=request.exact)
    config: JsonObject = {}
    if "mime" in spelled.form and (request.exact or spelled.form["mime"]):
        mime: Any = spelled.form["mime"]
    else:
        mime = None if output.kind == "text" else JSON_TYPE
    if mime is not None:
        config["responseMimeType"] = mime
    if output.kind != "json_schema" or output.schema is None:
        return config
    if output.name:
        losses.add("output.name", output.name, "Gemini gives its formats no names")
    written = spelled.form.get("schema", output.schema)
    openapi = spelled.form.get("member") == "responseSchema"
    if openapi and from_openapi(written) == output.schema:
        config["responseSchema"] = written if spelled.exact else in_words(written)
    elif request.own and not openapi:
        config["responseJsonSchema"] = output.schema
    elif openapi or quirks.gemini_schema == "openapi":
        config["responseSchema"] = to_gemini(
            output.schema, "gemini-openapi", "output.schema", losses
        )
    else:
        config["responseJsonSchema"] = to_gemini(
            output.schema, "gemini-json", "output.schema", losses
        )
    return config


def tool_config(
    request: ModelRequest, spelled: Spelled, names: ToolNames, losses: Losses
) -> JsonObject | None:
    """Whether and what to call; None if nothing is to be said."""
    config: JsonObject = {}
    choice = request.tool_choice
    functions = any(not isinstance(tool, ServerTool) for tool in request.tools)
    if choice is not None and (functions or spelled.own):
        config["functionCallingConfig"] = _calling(choice, names, spelled)
    elif choice is not None and choice.mode != "auto":
        losses.add("tool_choice", choice.mode, "there are no functions to call")
    written = spelled.write("toolConfig.", config)
    return written if written or spelled.shape("toolConfig") else None


def _calling(choice: ToolChoice, names: ToolNames, request: Spelled) -> JsonObject:
    spelled = Spelled(choice.kept, exact=request.exact)
    config: JsonObject = {}
    word: Any = spelled.form.get("mode", MODE_FOR[choice.mode])
    if "mode" in spelled.form and (mode_of(word) or "auto") != choice.mode:
        word = MODE_FOR[choice.mode]
    if word == "AUTO" and choice.names and not request.exact:
        # Names may only be given beside ANY and VALIDATED.
        word = "VALIDATED"
    if word is not None:
        config["mode"] = word
    if choice.names:
        config["allowedFunctionNames"] = [names.chosen_name(name) for name in choice.names]
    return spelled.write("", config)
