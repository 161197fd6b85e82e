"""What a hook answered: exit code, output and JSON, as one value."""

import json
from typing import Any, Literal, TypeAlias, cast

import msgspec

from toolwire.request import JsonObject

Verdict: TypeAlias = Literal["", "allow", "ask", "deny"]
_STRICT: tuple[Verdict, ...] = ("", "allow", "ask", "deny")
_DECISIONS: dict[str, Verdict] = {
    "allow": "allow",
    "approve": "allow",
    "ask": "ask",
    "deny": "deny",
    "block": "deny",
}
_PLAIN_CONTEXT = ("SessionStart", "UserPromptSubmit")
_BLOCKS = 2
"""The exit code that refuses."""
_MOST_WORDS = 2_000


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How the process or the request of a hook ended."""

    code: int | None = 0
    out: str = ""
    err: str = ""
    problem: str = ""
    """Why it gave no answer."""
    seconds: float = 0.0


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one hook."""

    verdict: Verdict = ""
    reason: str = ""
    by_code: bool = False
    """Refused by the exit code."""
    context: str = ""
    plain: bool = False
    """The context is the plain output."""
    changed_input: JsonObject | None = None
    merged: bool = False
    """What the change does not name stays."""
    output: str | None = None
    """In place of the tool's output."""
    halt: str | None = None
    message: str = ""
    """For the user."""
    shown: str = ""
    """Plain output, for the user only."""
    failure: str = ""
    """Why there is no answer."""

    @property
    def word(self) -> str:
        """The decision as events record it."""
        if self.failure:
            return "failed"
        return "halt" if self.halt is not None else self.verdict


def strictest(answers: list[HookAnswer]) -> HookAnswer | None:
    """The first of the strictest answers; None if none has an opinion."""
    decided = [one for one in answers if one.verdict]
    return max(decided, key=lambda one: _STRICT.index(one.verdict), default=None)


def read_answer_of_hook(ran: Ran, event: str) -> HookAnswer:
    """The answer: JSON if the output begins with a brace, else text."""
    if ran.problem:
        return HookAnswer(failure=ran.problem)
    if ran.code == _BLOCKS:
        return HookAnswer(verdict="deny", reason=ran.err.strip() or "no reason given", by_code=True)
    if ran.code != 0:
        words = ran.err.strip() or ran.out.strip()
        ended = "was ended by a signal" if ran.code is None else f"failed with code {ran.code}"
        return HookAnswer(failure=f"{ended}: {words[:_MOST_WORDS]}" if words else ended)
    text = ran.out.strip()
    if not text.startswith("{"):
        if event in _PLAIN_CONTEXT:
            return HookAnswer(context=text, plain=True)
        return HookAnswer(shown=text)
    try:
        found: object = json.loads(text)
    except ValueError as error:
        return HookAnswer(failure=f"printed JSON that cannot be read: {error}")
    return _of_json(cast(JsonObject, found), event)


def _of_json(found: JsonObject, event: str) -> HookAnswer:
    inner = _object(found.get("hookSpecificOutput"))
    verdict = _DECISIONS.get(_text(found.get("decision")), "")
    reason = _text(found.get("reason"))
    given = inner.get("permissionDecision")
    if isinstance(given, str) and given in _DECISIONS:
        verdict, reason = _DECISIONS[given], _text(inner.get("permissionDecisionReason")) or reason
    answer = _object(inner.get("decision"))
    if event == "PermissionRequest" and answer:
        verdict = _DECISIONS.get(_text(answer.get("behavior")), "")
        reason = _text(answer.get("message")) or reason
    merged = isinstance(inner.get("tool_input"), dict)
    changed = inner.get("tool_input") if merged else inner.get("updatedInput")
    if changed is None:
        changed = answer.get("updatedInput")
    output = inner.get("updatedToolOutput", inner.get("updatedMCPToolOutput"))
    stops = found.get("continue") is False or answer.get("interrupt") is True
    return HookAnswer(
        verdict=verdict,
        reason=reason or ("no reason given" if verdict == "deny" else ""),
        context=_text(inner.get("additionalContext")),
        changed_input=cast(JsonObject, changed) if isinstance(changed, dict) else None,
        merged=merged,
        output=output if isinstance(output, str) or output is None else json.dumps(output),
        halt=(_text(found.get("stopReason")) or reason) if stops else None,
        message="; ".join(filter(None, (_text(found.get("systemMessage")), _unused(inner)))),
    )


_UNUSED = ("tailToolCallRequest", "llm_request", "llm_response", "toolConfig")


def _unused(inner: JsonObject) -> str:
    """What a hook of gemini-cli asks for and does not get, for the user."""
    names = [name for name in _UNUSED if name in inner]
    return f"a hook printed {', '.join(names)}, which is not supported" if names else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}
