"""Targets and results of a schema conversion."""

import re
from enum import StrEnum
from typing import Any

import msgspec

from toolwire.errors import UnknownName
from toolwire.request import JsonObject, Loss


class Profile(StrEnum):
    """Which keywords and shapes the reader of a schema accepts."""

    OPENAI = "openai"
    """Nearly everything; the root is an object with properties and no alternatives."""
    OPENAI_STRICT = "openai-strict"
    """Structured outputs: closed objects, all properties required; else the form of `openai`."""
    ANTHROPIC = "anthropic"
    """Draft 2020-12; the root is an object without alternatives, its property names are plain."""
    ANTHROPIC_OUTPUT = "anthropic-output"
    """`output_config.format` and strict tools: closed objects, no bounds; any root."""
    GEMINI_JSON = "gemini-json"
    """`parametersJsonSchema`: draft 2020-12, the root is an object."""
    GEMINI_OPENAPI = "gemini-openapi"
    """`parameters`: the OpenAPI 3 subset of Gemini's `Schema`."""


class Converted(msgspec.Struct, frozen=True):
    """A converted schema, and every way in which its meaning changed."""

    schema: JsonObject
    losses: tuple[Loss, ...] = ()
    strict: bool = False
    """Whether the schema may be sent with `strict: true`."""


class Normal(msgspec.Struct):
    """A schema in normal form: draft 2020-12, references only to `$defs` or the root."""

    root: JsonObject
    defs: dict[str, JsonObject]

    def target(self, reference: str) -> JsonObject:
        """The target of a reference of this schema."""
        return self.root if reference == "#" else self.defs[reference[len("#/$defs/") :]]


class Report:
    """Collects losses while a schema is converted."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []

    def add(self, path: str, what: str, why: str) -> None:
        """Adds a loss."""
        self.losses.append(Loss(path, what, why))


_PLAIN = re.compile(r"[\w$@-]+").fullmatch
_LONGEST_WORD = 200
_dump = msgspec.json.Encoder().encode

_PROFILES = {
    "openai-chat": Profile.OPENAI,
    "openai-responses": Profile.OPENAI,
    "anthropic-messages": Profile.ANTHROPIC,
    "gemini": Profile.GEMINI_OPENAPI,
    "code-assist": Profile.GEMINI_OPENAPI,
}


def profile_for(dialect: str, *, strict: bool = False, json_schema: bool = False) -> Profile:
    """The profile a dialect's tools are written in.

    Gemini's is the OpenAPI subset of `parameters`, or with `json_schema` that of
    `parametersJsonSchema`. Only OpenAI's dialects have a strict form of their own.
    """
    profile = _PROFILES.get(dialect)
    if profile is None:
        raise UnknownName("dialect", dialect, _PROFILES)
    if profile is Profile.OPENAI and strict:
        return Profile.OPENAI_STRICT
    if profile is Profile.GEMINI_OPENAPI and json_schema:
        return Profile.GEMINI_JSON
    return profile


def below(path: str, key: str) -> str:
    """The path of a member."""
    return f"{path}.{key}" if _PLAIN(key) else f"{path}[{_dump(key).decode()}]"


def keyword_text(keyword: str, value: Any) -> str:
    """A keyword and its value as short text, for people and models."""
    text = _dump(value).decode()
    if len(text) > _LONGEST_WORD:
        text = f"{text[: _LONGEST_WORD - 1]}…"
    return f"{keyword}: {text}"


def describe(node: JsonObject, words: list[str]) -> None:
    """Adds what a schema cannot express to its description."""
    if words:
        text = "; ".join(words)
        about = node.get("description")
        node["description"] = f"{about}\n{text}" if about else text
