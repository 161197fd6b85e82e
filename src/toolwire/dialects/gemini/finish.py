"""Why an answer ended: Gemini's words and numbers, and ours."""

from toolwire.events import StopReason

STOP, MAX_TOKENS = "STOP", "MAX_TOKENS"
UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"

REASONS = {
    STOP: StopReason.END,
    MAX_TOKENS: StopReason.LENGTH,
    "SAFETY": StopReason.CONTENT_FILTER,
    "RECITATION": StopReason.CONTENT_FILTER,
    "BLOCKLIST": StopReason.CONTENT_FILTER,
    "PROHIBITED_CONTENT": StopReason.CONTENT_FILTER,
    "SPII": StopReason.CONTENT_FILTER,
    "MODEL_ARMOR": StopReason.CONTENT_FILTER,
    "IMAGE_SAFETY": StopReason.CONTENT_FILTER,
    "IMAGE_PROHIBITED_CONTENT": StopReason.CONTENT_FILTER,
    "IMAGE_RECITATION": StopReason.CONTENT_FILTER,
    "IMAGE_OTHER": StopReason.CONTENT_FILTER,
    "MALFORMED_FUNCTION_CALL": StopReason.MALFORMED_CALL,
    "UNEXPECTED_TOOL_CALL": StopReason.MALFORMED_CALL,
    "TOO_MANY_TOOL_CALLS": StopReason.MALFORMED_CALL,
    "MALFORMED_RESPONSE": StopReason.MALFORMED_CALL,
    "LANGUAGE": StopReason.ERROR,
    "OTHER": StopReason.ERROR,
    "NO_IMAGE": StopReason.ERROR,
    "MISSING_THOUGHT_SIGNATURE": StopReason.ERROR,
    "CONTINUATION": StopReason.PAUSE,
}
WORDS = {
    StopReason.END: STOP,
    StopReason.TOOL_CALLS: STOP,
    StopReason.LENGTH: MAX_TOKENS,
    StopReason.REFUSAL: "SAFETY",
    StopReason.CONTENT_FILTER: "SAFETY",
    StopReason.PAUSE: "CONTINUATION",
    StopReason.MALFORMED_CALL: "MALFORMED_FUNCTION_CALL",
    StopReason.ERROR: "OTHER",
}

# With enum-encoding=int the two services number the same words differently.
_STUDIO = (
    UNSPECIFIED,
    STOP,
    MAX_TOKENS,
    "SAFETY",
    "RECITATION",
    "OTHER",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "IMAGE_SAFETY",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
)
_VERTEX = (
    UNSPECIFIED,
    STOP,
    MAX_TOKENS,
    "SAFETY",
    "RECITATION",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
    "UNEXPECTED_TOOL_CALL",
    "NO_IMAGE",
)
_BLOCKS = ("", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY")


def finish_word(value: object, *, vertex: bool) -> str:
    """The word of a `finishReason`, which may be its number; empty if it says nothing."""
    if isinstance(value, str):
        return "" if value == UNSPECIFIED else value
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    words = _VERTEX if vertex else _STUDIO
    word = words[value] if 0 <= value < len(words) else str(value)
    return "" if word == UNSPECIFIED else word


def block_word(value: object) -> str:
    """The word of a `blockReason`; empty if the prompt was not blocked."""
    if isinstance(value, str):
        return "" if value in ("BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED") else value
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    return _BLOCKS[value] if 0 <= value < len(_BLOCKS) else str(value)


def own_word(reason: StopReason, detail: str) -> tuple[str, str]:
    """The wire word and message for an end of ours; our detail holds them where it came from
    here.
    """
    head, _, message = detail.partition(": ")
    if REASONS.get(head) is reason:
        return head, message
    return WORDS[reason], ""
