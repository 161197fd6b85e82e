"""Google Vertex AI. Gemini's format for Google's models, Anthropic's for Claude."""

import json
from typing import Any

import msgspec

from toolwire.providers import anthropic, google
from toolwire.providers._spec import GoogleLogin, ModelRule, Placeholder, Provider
from toolwire.request import HttpRequest

_PLACE = "/v1beta1/projects/{project}/locations/{location}"
_CLAUDE_VERSION = "vertex-2023-10-16"
_BETAS = (
    "interleaved-thinking-*",
    "context-1m-*",
    "context-management-*",
    "computer-use-*",
    "web-search-*",
    "tool-search-tool-*",
)


def prepare(request: HttpRequest) -> HttpRequest:
    """The publisher goes into the path; Claude's model and version change places."""
    if request.path.startswith("/models/"):
        return msgspec.structs.replace(request, path=f"/publishers/google{request.path}")
    if request.path != "/v1/messages":
        return request
    body: dict[str, Any] = json.loads(request.body)
    model = body.pop("model")
    body["anthropic_version"] = _CLAUDE_VERSION
    verb = "streamRawPredict" if body.get("stream") else "rawPredict"
    headers = tuple(pair for pair in request.headers if pair[0].lower() != "anthropic-version")
    return msgspec.structs.replace(
        request,
        path=f"/publishers/anthropic/models/{model}:{verb}",
        body=json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(),
        headers=headers,
    )


def _claude_rules() -> tuple[ModelRule, ...]:
    newest = ModelRule(
        pattern="claude*",
        reason="Claude answers in its own format, and the newest take no sampling",
        quirks=anthropic.PROVIDER.quirks,
    )
    return tuple(
        msgspec.structs.replace(rule, dialect="anthropic-messages")
        for rule in map(_with_betas, (*anthropic.RULES, newest))
    )


def _with_betas(rule: ModelRule) -> ModelRule:
    """The rule of a Claude model, with the features that Vertex has of Anthropic's own."""
    quirks = msgspec.structs.replace(rule.quirks or anthropic.PROVIDER.quirks, betas=_BETAS)
    return msgspec.structs.replace(rule, quirks=quirks)


_URL = "https://{location}-aiplatform.googleapis.com" + _PLACE

PROVIDER = Provider(
    faithful=True,
    name="vertex",
    title="Google Vertex AI",
    dialect="gemini",
    base_url=_URL,
    base_url_env=("GOOGLE_VERTEX_BASE_URL",),
    takes_origin=True,
    placeholders=(
        Placeholder(name="project", env=("GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_PROJECT")),
        Placeholder(
            name="location",
            env=("GOOGLE_CLOUD_LOCATION", "GOOGLE_VERTEX_LOCATION"),
            default="global",
        ),
    ),
    special_urls=(
        ("location=global", "https://aiplatform.googleapis.com" + _PLACE),
        ("location=us", "https://aiplatform.us.rep.googleapis.com" + _PLACE),
        ("location=eu", "https://aiplatform.eu.rep.googleapis.com" + _PLACE),
    ),
    other_dialects=(("anthropic-messages", _URL),),
    auth=GoogleLogin(),
    quirks=google.QUIRKS,
    reasons=google.REASONS,
    rules=(*_claude_rules(), *google.older_rules(google.QUIRKS)),
    json_schema_output=True,
    default_model="gemini-3.5-flash",
    docs="https://cloud.google.com/vertex-ai/generative-ai/docs",
    prepare=prepare,
)
