"""`generationConfig` and `toolConfig` of a request, read into ours."""

from typing import Any

from toolwire.dialects.gemini.schemas import from_openapi
from toolwire.dialects.gemini.spelling import Members, Notes
from toolwire.request import Effort, JsonObject, OutputFormat, Reasoning, ToolChoice

GENERATION = "generationConfig"
PLAIN = (
    ("temperature", "temperature", (int, float)),
    ("topP", "top_p", (int, float)),
    ("topK", "top_k", (int, float)),
    ("maxOutputTokens", "max_output_tokens", (int,)),
    ("frequencyPenalty", "frequency_penalty", (int, float)),
    ("presencePenalty", "presence_penalty", (int, float)),
    ("seed", "seed", (int,)),
)
"""Wire name, our name and the kinds of number it may be."""

MODES = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none"}
MODE_NUMBERS = (None, "AUTO", "ANY", "NONE", "VALIDATED")
LEVELS = {
    "MINIMAL": Effort.MINIMAL,
    "LOW": Effort.LOW,
    "MEDIUM": Effort.MEDIUM,
    "HIGH": Effort.HIGH,
}
JSON_TYPE = "application/json"
ANY_BUDGET = -1
"""The model decides how much it thinks."""


def mode_of(word: Any) -> str | None:
    """Our mode for a wire mode in words or as a number; None for one we do not know."""
    if isinstance(word, int) and 0 <= word < len(MODE_NUMBERS):
        word = MODE_NUMBERS[word]
    return MODES.get(word.upper()) if isinstance(word, str) else None


def read_tool_choice(value: JsonObject | None, notes: Notes) -> ToolChoice | None:
    """The choice of `functionCallingConfig`; the rest of `toolConfig` goes into the notes."""
    if value is None:
        return None
    notes.form["toolConfig"] = True
    outer = Members(value, notes, "toolConfig.")
    config = outer.take("functionCallingConfig", dict)
    outer.close()
    if config is None:
        return None
    inner = Notes()
    members = Members(config, inner)
    word = members.take("mode", str, int)
    mode: Any = mode_of(word)
    if word is None or mode is None or word != MODE_FOR[mode]:
        inner.form["mode"] = word
    names = members.take_words("allowedFunctionNames")
    members.close()
    return ToolChoice(mode=mode or "auto", names=names, kept=inner.kept())


MODE_FOR = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


def read_generation(
    value: JsonObject | None, notes: Notes
) -> tuple[JsonObject, Reasoning | None, OutputFormat | None]:
    """Plain members by our names, then thinking and output; the rest goes into the notes."""
    if value is None:
        return {}, None, None
    notes.form[GENERATION] = True
    members = Members(value, notes, f"{GENERATION}.")
    plain: JsonObject = {}
    for wire_name, name, kinds in PLAIN:
        number = members.take(wire_name, *kinds)
        if number is not None:
            plain[name] = number
    plain["stop"] = members.take_words("stopSequences")
    thinking = members.take("thinkingConfig", dict)
    reasoning = None if thinking is None else _read_thinking(thinking)
    output = _read_output(members)
    members.close()
    return plain, reasoning, output


def _read_thinking(value: JsonObject) -> Reasoning:
    notes = Notes()
    members = Members(value, notes)
    budget = members.take("thinkingBudget", int)
    level = members.take("thinkingLevel", str)
    visible = members.take("includeThoughts", bool)
    members.close()
    effort = None if level is None else LEVELS.get(level.upper())
    if level is not None and (effort is None or level != effort.upper()):
        notes.form["level"] = level
    enabled = None if budget is None and effort is None else budget != 0
    if level is None and budget == 0:
        # Off: no amount is named.
        budget = None
    return Reasoning(
        enabled=enabled,
        effort=effort,
        budget=budget,
        visible=visible,
        kept=notes.kept(),
    )


def _read_output(members: Members) -> OutputFormat | None:
    notes = Notes()
    mime = members.take("responseMimeType", str)
    if mime not in (None, JSON_TYPE, "text/plain"):
        notes.form["mime"] = mime
    schema: JsonObject | None = members.take("responseJsonSchema", dict)
    if schema is None:
        written: JsonObject | None = members.take("responseSchema", dict)
        if written is not None:
            notes.form["member"] = "responseSchema"
            schema = from_openapi(written)
            if schema != written:
                notes.form["schema"] = written
    if schema is not None:
        if mime is None:
            notes.form["mime"] = None
        return OutputFormat(kind="json_schema", schema=schema, kept=notes.kept())
    if mime == JSON_TYPE:
        return OutputFormat(kind="json", kept=notes.kept())
    if mime is None:
        return None
    notes.form["mime"] = mime
    return OutputFormat(kind="text", kept=notes.kept())
