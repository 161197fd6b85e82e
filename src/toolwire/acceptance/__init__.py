"""What vendors reject, written once: limits as data, checks on the raw body per wire format.

The simulator answers as the vendor does; `convert` reports what a converted request still
violates. The checks read raw JSON, not the output of our decoders, so that a decoding mistake
cannot hide the same encoding mistake.
"""

from collections.abc import Iterator
from importlib import import_module

from toolwire.acceptance.limits import NO_DEMANDS, Demands, facts
from toolwire.acceptance.violation import Subject, Violation
from toolwire.request import JsonObject

__all__ = ["NO_DEMANDS", "Demands", "Violation", "violations"]

_CHECKS = {
    "openai-chat": ("openai_chat", "check"),
    "openai-responses": ("openai_responses", "check"),
    "anthropic-messages": ("anthropic", "check"),
    "gemini": ("gemini", "check"),
    "code-assist": ("gemini", "check_envelope"),
}
"""Module and function of each format; imported when first used."""


def violations(
    dialect: str,
    body: JsonObject,
    model: str,
    *,
    demands: Demands = NO_DEMANDS,
    in_address: bool = False,
) -> Iterator[Violation]:
    """Yields why the vendor would reject a request to this model, the gravest first.

    `in_address`: the address names the model, as on Vertex, so the body need not.
    """
    known = facts(dialect, model)
    subject = Subject(body=body, model=model, facts=known, demands=demands, in_address=in_address)
    module, check = _CHECKS[dialect]
    return getattr(import_module(f"toolwire.acceptance.{module}"), check)(subject)
