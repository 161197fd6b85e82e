"""What real servers reject, checked on the raw body: one file per wire format.

The checks read raw JSON, not the output of our decoders, so that a decoding mistake cannot hide
the same encoding mistake.
"""

from collections.abc import Callable

from toolwire.simulator.vendor_rules import anthropic, gemini, openai_chat, openai_responses
from toolwire.simulator.vendor_rules.asked import NO_DEMANDS, Asked, Demands

__all__ = ["NO_DEMANDS", "Asked", "Demands", "check"]

_CHECKS: dict[str, Callable[[Asked], None]] = {
    "openai-chat": openai_chat.check,
    "openai-responses": openai_responses.check,
    "anthropic-messages": anthropic.check,
    "gemini": gemini.check,
    "code-assist": gemini.check_envelope,
}


def check(dialect: str, asked: Asked) -> None:
    """Raises the vendor's error for a request it would reject."""
    _CHECKS[dialect](asked)
