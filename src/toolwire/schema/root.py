"""The root of a tool's schema: always an object, for every vendor."""

from typing import Any, cast

from toolwire.request import JsonObject
from toolwire.schema.merge import all_types, both, folded, is_never, takes_null
from toolwire.schema.normal import PLAIN_NAME, normalise
from toolwire.schema.profile import Normal, Profile, Report, below, describe, keyword_text

WRAPPED = "value"
"""The one property of a root that was not an object."""

_OBJECT_WORDS = frozenset({"properties", "required", "additionalProperties", "patternProperties"})
_UNIONS = ("anyOf", "oneOf")


def shape_root(normal: Normal, profile: Profile, path: str, report: Report) -> Normal:
    """The schema with a root that this profile accepts: arguments are always one object."""
    root, _, _ = folded(normal.root, normal)
    if not _can_be_object(root, normal):
        root = _wrap(root, path, report)
    elif root.get("type") != "object":
        root = _only_object(root, path, report)
    if "properties" not in root:
        members: JsonObject = {}
        root = {**root, "properties": members}
    if profile is not Profile.GEMINI_JSON:
        root = _without_alternatives(root, normal, path, report)
    if profile is Profile.ANTHROPIC:
        root = _plain_names(root, path, report)
    return Normal(root, normal.defs)


def _can_be_object(root: JsonObject, normal: Normal) -> bool:
    if "object" not in all_types(root):
        return False
    if "type" in root or not _OBJECT_WORDS.isdisjoint(root):
        return True
    if any(_no_objects(value) for value in (root.get("enum"), root.get("const", {}))):
        return False
    branches = [branch for key in _UNIONS for branch in root.get(key, ())]
    return not branches or any(
        _can_be_object(folded(branch, normal)[0], normal) for branch in branches
    )


def _no_objects(values: Any) -> bool:
    if isinstance(values, list):
        return not any(isinstance(value, dict) for value in cast(list[Any], values))
    return values is not None and not isinstance(values, dict)


def _wrap(root: JsonObject, path: str, report: Report) -> JsonObject:
    report.add(path, "root that is not an object", f'only an object is taken; put in "{WRAPPED}"')
    return {"type": "object", "properties": {WRAPPED: root}, "required": [WRAPPED]}


def _only_object(root: JsonObject, path: str, report: Report) -> JsonObject:
    if "type" in root:
        report.add(path, keyword_text("type", root["type"]), "only an object is taken")
    return {"type": "object", **{key: value for key, value in root.items() if key != "type"}}


def _without_alternatives(
    root: JsonObject, normal: Normal, path: str, report: Report
) -> JsonObject:
    words: list[str] = []
    for key in ("not", "enum", "const", "allOf"):
        if key in root:
            root = dict(root)
            value = root.pop(key)
            words.append(keyword_text(key, value))
            report.add(
                path, keyword_text(key, value), "not taken at the root; moved to the description"
            )
    for key in _UNIONS:
        if key in root:
            root = dict(root)
            root = _join_alternatives(root, root.pop(key), key, normal, words)
            report.add(path, key, "not taken at the root; the alternatives are joined into one")
    if words:
        root = dict(root)
        describe(root, words)
    return root


def _join_alternatives(
    root: JsonObject, branches: list[JsonObject], key: str, normal: Normal, words: list[str]
) -> JsonObject:
    """One object with the members of all; required are those that all require."""
    objects: list[JsonObject] = []
    for branch in branches:
        whole = both({"type": "object"}, folded(branch, normal)[0])
        if not is_never(whole):
            objects.append(whole)
    if not objects:
        return root
    if any("required" in whole for whole in objects):
        words.append(_requirements(objects, key))
    members: dict[str, list[JsonObject]] = {}
    for whole in objects:
        for name, node in whole.get("properties", {}).items():
            variants = members.setdefault(name, [])
            if node not in variants:
                variants.append(node)
    joined: JsonObject = {"type": "object"}
    if members:
        joined["properties"] = {
            name: variants[0] if len(variants) == 1 else {"anyOf": variants}
            for name, variants in members.items()
        }
    required = [
        name
        for name in objects[0].get("required", ())
        if all(name in whole.get("required", ()) for whole in objects)
    ]
    if required:
        joined["required"] = required
    if all(whole.get("additionalProperties") is False for whole in objects):
        joined["additionalProperties"] = False
    return _outer_with(root, joined)


def _outer_with(root: JsonObject, joined: JsonObject) -> JsonObject:
    # A closed root would forbid the members that only an alternative names: original and joined
    # properties are put side by side, not intersected.
    out = dict(root)
    out["properties"] = {**joined.get("properties", {}), **root.get("properties", {})}
    required = dict.fromkeys([*root.get("required", ()), *joined.get("required", ())])
    if required:
        out["required"] = list(required)
    if "additionalProperties" in joined and "additionalProperties" not in root:
        out["additionalProperties"] = False
    return out


def _requirements(objects: list[JsonObject], key: str) -> str:
    lists = [", ".join(whole.get("required", ())) or "nothing more" for whole in objects]
    amount = "exactly one" if key == "oneOf" else "at least one"
    return f"give {amount} of these sets: {' | '.join(dict.fromkeys(lists))}"


def _plain_names(root: JsonObject, path: str, report: Report) -> JsonObject:
    members: JsonObject = root["properties"]
    odd = [name for name in members if not PLAIN_NAME(name)]
    if not odd:
        return root
    out = dict(root)
    out["properties"] = {name: members[name] for name in members if name not in odd}
    if "required" in out:
        out["required"] = [name for name in out["required"] if name not in odd]
        if not out["required"]:
            del out["required"]
    if out.get("additionalProperties", True) is not True:
        rest = out.pop("additionalProperties")
        report.add(
            path, keyword_text("additionalProperties", rest), "opened for names in the description"
        )
    words: list[str] = []
    for name in odd:
        inside = below(f"{path}.properties", name)
        if name in root.get("required", ()):
            report.add(path, keyword_text("required", name), "moved to the description")
        report.add(
            inside, "property", "the name is not one Anthropic takes; moved to the description"
        )
        words.append(keyword_text(f'also takes "{name}"', members[name]))
    describe(out, words)
    return out


def drop_absent(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """The arguments of a call under a strict schema, as the tool's own schema means them.

    Null is left out where the schema has an optional property that cannot be null.
    """
    normal = normalise(schema, "", Report())
    return _value(arguments, [normal.root], normal)


def _value(value: Any, nodes: list[JsonObject], normal: Normal) -> Any:
    nodes = _spread(nodes, normal)
    if isinstance(value, dict):
        members = cast(JsonObject, value)
        out: JsonObject = {}
        for name, member in members.items():
            inner = [
                node["properties"][name] for node in nodes if name in node.get("properties", {})
            ]
            if member is None and _means_absent(name, nodes, inner, normal):
                continue
            out[name] = _value(member, inner, normal) if inner else member
        return out
    if isinstance(value, list):
        items = [node["items"] for node in nodes if isinstance(node.get("items"), dict)]
        return [_value(item, items, normal) for item in cast(list[Any], value)]
    return value


def _means_absent(
    name: str, nodes: list[JsonObject], inner: list[JsonObject], normal: Normal
) -> bool:
    return (
        bool(inner)
        and not any(takes_null(node, normal) for node in inner)
        and not any(name in node.get("required", ()) for node in nodes)
    )


def _spread(nodes: list[JsonObject], normal: Normal) -> list[JsonObject]:
    """The nodes and all their alternatives."""
    out: list[JsonObject] = []
    waiting = list(nodes)
    while waiting and len(out) < 1000:
        node, _, _ = folded(waiting.pop(), normal)
        out.append(node)
        waiting.extend(node.get("anyOf", ()))
    return out
