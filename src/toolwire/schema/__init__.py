"""JSON Schema as each vendor accepts it, with a report of everything weakened."""

from typing import Any, cast

from toolwire.request import JsonObject, Loss
from toolwire.schema.normal import normalise
from toolwire.schema.openapi import to_openapi
from toolwire.schema.profile import Converted, Normal, Profile, Report, profile_for
from toolwire.schema.root import drop_absent, shape_root
from toolwire.schema.strict import to_closed, to_strict

__all__ = ["Converted", "Loss", "Profile", "convert", "drop_absent", "is_strict", "profile_for"]


def convert(
    schema: Any, profile: Profile | str, path: str = "$", *, output: bool = False
) -> Converted:
    """A tool's schema as its reader accepts it; with `output` that of an answer, which for Gemini
    need not be an object.

    Every call the schema allows is allowed by the result, or a loss names the place; nothing is
    fetched, and the input is left as it is. Paths of losses begin with `path`.
    """
    profile = Profile(profile)
    report = Report()
    shaped = normalise(schema, path, report)
    if profile is Profile.ANTHROPIC_OUTPUT:
        return Converted(_whole(to_closed(shaped, path, report)), tuple(report.losses))
    if not output or profile in (Profile.OPENAI, Profile.OPENAI_STRICT):
        shaped = shape_root(shaped, profile, path, report)
    if profile is Profile.GEMINI_OPENAPI:
        return Converted(to_openapi(shaped, path, report), tuple(report.losses))
    if profile is not Profile.OPENAI_STRICT:
        return Converted(_whole(shaped), tuple(report.losses))
    strict = None
    if report.losses:
        report.add(path, "strict", "strict was not used: the schema could not be kept whole")
    else:
        strict = to_strict(_reachable(shaped), path, report)
    return Converted(_whole(strict or shaped), tuple(report.losses), strict is not None)


def is_strict(schema: JsonObject) -> bool:
    """Whether OpenAI accepts the schema as strict unchanged."""
    converted = convert(schema, Profile.OPENAI_STRICT)
    return converted.strict and _demanding(converted.schema) == _demanding(schema)


def _demanding(node: Any) -> Any:
    # An empty `required` may be present or absent.
    if isinstance(node, dict):
        members = cast(JsonObject, node)
        kept = {key: value for key, value in members.items() if (key, value) != ("required", [])}
        return {key: _demanding(value) for key, value in kept.items()}
    return [_demanding(one) for one in cast(list[Any], node)] if isinstance(node, list) else node


def _whole(shaped: Normal) -> JsonObject:
    shaped = _reachable(shaped)
    return {**shaped.root, "$defs": shaped.defs} if shaped.defs else shaped.root


def _reachable(shaped: Normal) -> Normal:
    # Shaping may have dropped the last use of a definition.
    if not shaped.defs:
        return shaped
    return normalise({**shaped.root, "$defs": shaped.defs}, "", Report())
