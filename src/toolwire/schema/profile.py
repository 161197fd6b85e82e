"""Targets and results of a schema conversion, and the references inside a schema."""

import re
from enum import StrEnum
from typing import Any, cast
from urllib.parse import unquote

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


_ODD = re.compile(r"[^A-Za-z0-9_.-]")


class References:
    """Finds the target of a reference and gives it a name in `$defs`."""

    def __init__(self, source: JsonObject) -> None:
        self._source = source
        self._base = str(source.get("$id") or source.get("id") or "").rstrip("#")
        self._anchors: dict[str, Any] | None = None
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()

    def find(self, reference: str) -> tuple[bool, Any, tuple[str, ...]]:
        """Whether the target exists, its schema, and its path."""
        base, _, fragment = reference.partition("#")
        if base and base != self._base:
            return False, None, ()
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._anchored(fragment)
        tokens = tuple(
            token.replace("~1", "/").replace("~0", "~") for token in fragment.split("/")[1:]
        )
        node: Any = self._source
        for token in tokens:
            if isinstance(node, dict) and token in node:
                node = cast(JsonObject, node)[token]
            elif isinstance(node, list) and token.isdecimal() and len(token) < 7:
                items = cast(list[Any], node)
                if int(token) >= len(items):
                    return False, None, ()
                node = items[int(token)]
            else:
                return False, None, ()
        return isinstance(node, dict | bool), node, tokens

    def name(self, node: Any, tokens: tuple[str, ...]) -> tuple[str, bool]:
        """The name of a target in `$defs`, and whether it is new."""
        key = hash(tokens) if isinstance(node, bool) else id(node)
        found = self._names.get(key)
        if found is not None:
            return found, False
        base = _ODD.sub("_", tokens[-1] if tokens else "root") or "schema"
        found, count = base, 2
        while found in self._taken:
            found, count = f"{base}_{count}", count + 1
        self._names[key] = found
        self._taken.add(found)
        return found, True

    def _anchored(self, anchor: str) -> tuple[bool, Any, tuple[str, ...]]:
        if self._anchors is None:
            self._anchors = _anchors(self._source)
        node = self._anchors.get(anchor)
        return node is not None, node, (anchor,)


def _anchors(source: JsonObject) -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting: list[Any] = [source]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            members = cast(JsonObject, node)
            anchor = members.get("$anchor")
            if isinstance(anchor, str):
                found.setdefault(anchor, members)
            waiting.extend(members.values())
        elif isinstance(node, list):
            waiting.extend(cast(list[Any], node))
    return found
