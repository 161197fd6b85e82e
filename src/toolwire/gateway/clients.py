"""What is known of clients: their family, their conversations, and notes meant for one vendor."""

import hashlib
from functools import lru_cache

import msgspec

from toolwire.dialects.losses import kept_member
from toolwire.errors import ErrorKind
from toolwire.gateway.parts import GatewayRefusal
from toolwire.http_server.exchange import Asked
from toolwire.request import Loss, ModelRequest, Reasoning

_FAMILIES = (
    ("claude-cli", "claude-code"),
    ("claude-code", "claude-code"),
    ("codex", "codex"),
    ("geminicli", "gemini-cli"),
    ("gemini-cli", "gemini-cli"),
    ("opencode", "opencode"),
    ("kilo", "kilo"),
    ("qwencode", "qwen"),
    ("qwen-code", "qwen"),
    ("mistral-vibe", "vibe"),
    ("vibe", "vibe"),
    ("kimi", "kimi"),
    ("aider", "aider"),
    ("litellm", "litellm"),
    ("openai/", "openai-sdk"),
    ("asyncopenai/", "openai-sdk"),
    ("anthropic/", "anthropic-sdk"),
    ("asyncanthropic/", "anthropic-sdk"),
    ("google-genai-sdk", "google-genai"),
    ("ai-sdk", "ai-sdk"),
    ("curl/", "curl"),
)
_GROUPING = (
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
)
"""Headers in which clients name the conversation."""
_LONGEST_NAME = 128
_LONGEST_AGENT = 500
_BEGINNING = 65536
"""Characters of a conversation's first message that tell it from others."""
_BILLING = "x-anthropic-billing-header:"
_LEAST_BUDGET = 1024
"""Thinking tokens that Anthropic requires at least."""
_RESPONSES = "openai-responses"


def family_of(asked: Asked) -> str:
    """The family of the client by its `user-agent`; empty if it is not known."""
    fields = asked.head.by_name
    agent, google = fields.get("user-agent", ""), fields.get("x-goog-api-client", "")
    return _family(f"{agent[:_LONGEST_AGENT]} {google[:_LONGEST_AGENT]}")


@lru_cache(maxsize=512)
def _family(agent: str) -> str:
    agent = agent.lower()
    return next((name for mark, name in _FAMILIES if mark in agent), "")


def conversation_of(asked: Asked, request: ModelRequest) -> str:
    """What groups the requests of one conversation: the client's name for it, else a digest of
    its beginning.
    """
    named = next(filter(None, map(asked.head.by_name.get, _GROUPING)), None)
    if named:
        return named[:_LONGEST_NAME]
    kept = request.kept
    if kept is not None and kept.fields != "{}":
        for member, inside in (("prompt_cache_key", ""), ("metadata", "user_id")):
            found = _member(request, member, inside)
            if found:
                return found[:_LONGEST_NAME]
    return _digest(request)


def _member(request: ModelRequest, member: str, inside: str) -> str:
    kept = request.kept
    found: object = kept_member(kept, kept.dialect, member) if kept is not None else None
    if inside and isinstance(found, dict):
        found = found.get(inside)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return found if isinstance(found, str) else ""


def _digest(request: ModelRequest) -> str:
    seen = [one.text for one in request.system if not one.text.startswith(_BILLING)]
    for message in request.messages:
        if message.role == "user":
            seen += ("\0", message.text[:_BEGINNING])
            break
    return hashlib.sha256("".join(seen).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def without_notes(
    request: ModelRequest, *, to_maker: bool
) -> tuple[ModelRequest, tuple[Loss, ...]]:
    """The request without what the client wrote only for its own vendor.

    Claude Code's first system block is a billing note that differs in each conversation, so that
    no other server's prompt cache ever hits.
    """
    system = request.system
    if to_maker or not system or not system[0].text.startswith(_BILLING):
        return request, ()
    loss = Loss("system[0]", "client_note", "a note of the client to its vendor; not sent")
    return msgspec.structs.replace(request, system=system[1:]), (loss,)


def with_smaller_budget(request: ModelRequest) -> tuple[ModelRequest, tuple[Loss, ...]]:
    """The request with less thinking than output: some clients send a budget above `max_tokens`,
    which the vendor rejects.
    """
    reasoning, most = request.reasoning, request.max_output_tokens
    if reasoning is None or reasoning.budget is None or most is None or reasoning.budget < most:
        return request, ()
    if most > _LEAST_BUDGET:
        smaller = msgspec.structs.replace(reasoning, budget=most - 1)
        why = f"lowered to {most - 1}, below max_tokens"
    else:
        smaller = Reasoning(enabled=False)
        why = f"switched off: max_tokens leaves less than {_LEAST_BUDGET}"
    loss = Loss("thinking.budget_tokens", f"budget of {reasoning.budget} tokens", why)
    return msgspec.structs.replace(request, reasoning=smaller), (loss,)


def check_unsupported(request: ModelRequest) -> None:
    """Refuses what only a server that keeps conversations can do."""
    if kept_member(request.kept, _RESPONSES, "background") is True:
        raise _not_here("background", "answers are sent while the connection is open")
    if kept_member(request.kept, _RESPONSES, "conversation") is not None:
        raise _not_here("conversation", "use previous_response_id, or send the whole input")


def _not_here(member: str, instead: str) -> GatewayRefusal:
    return GatewayRefusal(
        ErrorKind.BAD_REQUEST,
        f"{member} is not possible through the gateway; {instead}",
        code="unsupported_parameter",
        param=member,
    )
