"""Addresses of the gateway: which operation, in which format, on which route."""

import re
from functools import lru_cache
from typing import Literal, TypeAlias
from urllib.parse import unquote

import msgspec

from toolwire.dialects.paths import match_path

Operation: TypeAlias = Literal[
    "answer",
    "stream",
    "count",
    "compact",
    "models",
    "model",
    "retrieve",
    "delete",
    "input_items",
    "cancel",
    "load",
    "onboard",
    "acknowledge",
    "upgrade",
    "root",
    "metrics",
    "forward",
    "raw",
]
_VERSIONS = ("/v1beta1", "/v1beta", "/v1alpha", "/v1")
_INTERNAL = "/v1internal:"
_SHORT = 200
_RAW = "/raw/"
_FORWARDED = re.compile(
    r"(.*?)(/(?:embeddings|moderations|rerank|completions|(?:images|audio)/[a-z]+))"
).fullmatch
_READ = frozenset({"models", "model", "retrieve", "input_items", "metrics"})
"""Operations that clients use with GET."""
_ACKNOWLEDGED = frozenset(
    {
        "listExperiments",
        "retrieveUserQuota",
        "fetchAdminControls",
        "recordCodeAssistMetrics",
        "recordConversationOffered",
        "getCodeAssistGlobalUserSetting",
        "setCodeAssistGlobalUserSetting",
    }
)
"""Operations of Code Assist that gemini-cli calls beside its requests; they do nothing here."""
SERVED = (
    "POST /v1/chat/completions, /v1/responses, /v1/responses/compact, /v1/messages, "
    "/v1/messages/count_tokens, /v1beta/models/{model}:generateContent, :streamGenerateContent, "
    ":countTokens, /v1internal:generateContent, /v1/embeddings, /v1/images/…, /v1/audio/…, "
    "/v1/moderations, /v1/rerank, /v1/completions, /raw/{provider}/…; GET /v1/models, "
    "/v1beta/models, /v1/responses/{id}, /healthz"
)


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """What a request is for."""

    does: Operation
    dialect: str = "openai-chat"
    """The client's wire format."""
    model: str = ""
    """The model, where the path names it."""
    route: str = ""
    """The route, where the path begins with one."""
    item: str = ""
    """The id of a stored answer."""


class NoSuchAddress(Exception):
    """A path or method that the gateway does not serve."""

    def __init__(self, dialect: str, status: int, message: str, allow: str = "") -> None:
        super().__init__(message)
        self.dialect = dialect
        self.status = status
        self.allow = allow


def find_address(method: str, path: str) -> Destination:
    """The operation of a request; NoSuchAddress if there is none."""
    # Not for any length: what clients send must not fill the memory.
    return _known_address(method, path) if len(path) < _SHORT else _address(method, path)


@lru_cache(maxsize=512)
def _known_address(method: str, path: str) -> Destination:
    return _address(method, path)


def _address(method: str, path: str) -> Destination:
    found = _find(path)
    # A verb that is not known reads like the name of a model.
    unknown_verb = found is not None and found.does == "model" and method == "POST"
    if found is None or unknown_verb:
        shown = f"{method} {path[:200]}"
        raise NoSuchAddress(
            nearest_dialect(path), 404, f"no such address: {shown}; the gateway serves {SERVED}"
        )
    if found.does in ("root", "raw"):
        return found
    if found.does == "retrieve" and method == "DELETE":
        return msgspec.structs.replace(found, does="delete")
    allowed = "GET" if found.does in _READ else "POST"
    if method == allowed or (method == "HEAD" and allowed == "GET"):
        return found
    if found.does == "answer" and method == "GET" and found.dialect == "openai-responses":
        return msgspec.structs.replace(found, does="upgrade")
    message = f"{method} is not possible at {path[:200]}; use {allowed}"
    raise NoSuchAddress(found.dialect, 405, message, allowed)


def nearest_dialect(path: str) -> str:
    """The format that a client of an unknown path most likely speaks."""
    if "/v1internal" in path:
        return "code-assist"
    if "/messages" in path:
        return "anthropic-messages"
    if "/v1beta" in path or "/models/" in path:
        return "gemini"
    return "openai-responses" if "/responses" in path else "openai-chat"


def _find(path: str) -> Destination | None:
    if path == "/":
        return Destination(does="root")
    if path == "/metrics":
        return Destination(does="metrics")
    if path.endswith("/responses/compact"):
        before = path.removesuffix("/responses/compact")
        return Destination(does="compact", dialect="openai-responses", route=_route(before))
    endpoint = match_path(path)
    if endpoint is not None:
        return Destination(
            does=endpoint.does,  # pyright: ignore[reportArgumentType] - a subset of the operations
            dialect=endpoint.dialect,
            model=unquote(endpoint.model),
            route=_route(endpoint.before),
        )
    before, internal, verb = path.partition(_INTERNAL)
    if internal:
        known = verb in _ACKNOWLEDGED or verb.endswith("GlobalUserSetting")
        return Destination(does="acknowledge", dialect="code-assist") if known else None
    return _listed(path) or _stored(path) or _forwarded(path)


def _forwarded(path: str) -> Destination | None:
    """Operations that the OpenAI formats have beside answers."""
    if path.startswith(_RAW):
        provider, slash, rest = path.removeprefix(_RAW).partition("/")
        return Destination(does="raw", route=unquote(provider), item=f"/{rest}") if slash else None
    found = _FORWARDED(path)
    if found is None or "//" in path or ".." in unquote(path):
        return None
    return Destination(does="forward", route=_route(found[1]), item=found[2])


def _route(before: str) -> str:
    for version in _VERSIONS:
        if before.endswith(version):
            before = before.removesuffix(version)
            break
    return unquote(before.strip("/"))


def _listed(path: str) -> Destination | None:
    before, _, name = path.rstrip("/").partition("/models")
    if before not in ("", *_VERSIONS) or (name and not name.startswith("/")):
        return None
    dialect = "gemini" if before.startswith(("/v1beta", "/v1alpha")) else "openai-chat"
    does: Operation = "model" if name else "models"
    return Destination(does=does, dialect=dialect, model=unquote(name[1:]))


def _stored(path: str) -> Destination | None:
    before, found, rest = path.partition("/responses/")
    item, _, more = rest.partition("/")
    does: dict[str, Operation] = {"": "retrieve", "input_items": "input_items", "cancel": "cancel"}
    if not found or before not in ("", "/v1") or not item or more not in does:
        return None
    return Destination(does=does[more], dialect="openai-responses", item=item)
