"""Resolves `$ref` inside one schema; nothing is ever fetched."""

import re
from typing import Any, cast
from urllib.parse import unquote

from toolwire.request import JsonObject

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
        wish = _ODD.sub("_", tokens[-1] if tokens else "root") or "schema"
        found, count = wish, 2
        while found in self._taken:
            found, count = f"{wish}_{count}", count + 1
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
