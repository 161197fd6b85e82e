"""What real servers refuse, checked on the body as it came: one file per wire format.

The checks read raw JSON and nothing that our own dialects made of it, so that a mistake in reading
cannot hide the same mistake in writing.
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
    """Raises the vendor's own error for a request it would not take."""
    _CHECKS[dialect](asked)
