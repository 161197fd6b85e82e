"""What is known of clients: their family, their conversations, and notes meant for one vendor."""

import hashlib

import msgspec

from toolwire.dialects.losses import kept_member
from toolwire.http_server.exchange import Asked
from toolwire.messages import Message
from toolwire.request import Loss, ModelRequest

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
_BILLING = "x-anthropic-billing-header:"


def family_of(asked: Asked) -> str:
    """The family of the client by its `user-agent`; empty if it is not known."""
    agent = f"{asked.field('user-agent')} {asked.field('x-goog-api-client')}".lower()
    return next((name for mark, name in _FAMILIES if mark in agent), "")


def conversation_of(asked: Asked, request: ModelRequest) -> str:
    """What groups the requests of one conversation: the client's name for it, else a digest of
    its beginning.
    """
    for header in _GROUPING:
        named = asked.field(header)
        if named:
            return named[:_LONGEST_NAME]
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
    seen = hashlib.sha256()
    for part in request.system:
        if not part.text.startswith(_BILLING):
            seen.update(part.text.encode("utf-8", "surrogatepass"))
    first: Message | None = next((one for one in request.messages if one.role == "user"), None)
    if first is not None:
        seen.update(b"\0" + first.text.encode("utf-8", "surrogatepass"))
    return seen.hexdigest()[:32]


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
