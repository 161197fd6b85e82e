"""Finding tools among many: names, descriptions and parameters, ranked by BM25."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from toolwire.mcp.lists import members
from toolwire.tools.spec import Tool

_WORD = re.compile(r"[a-z]+|[0-9]+")
_CAMEL = re.compile(r"([a-z0-9])([A-Z])")
_NAME_WEIGHT = 3
_SATURATION, _LENGTH = 1.5, 0.75


def find(query: str, tools: Sequence[Tool], limit: int) -> tuple[Tool, ...]:
    """The tools that fit best; `select:a,b` names them."""
    if query.startswith("select:"):
        wanted = [name.strip() for name in query.removeprefix("select:").split(",")]
        return tuple(
            tool for name in wanted for tool in tools if name in (tool.name, *tool.aliases)
        )
    texts = [_words_of(tool) for tool in tools]
    average = sum(map(len, texts)) / len(texts) if texts else 0.0
    counts = [Counter(text) for text in texts]
    asked = set(_words(query))
    rarity = {word: _rarity(sum(word in count for count in counts), len(tools)) for word in asked}
    scored = [
        (sum(rarity[word] * _weight(count[word], len(text), average) for word in asked), -at)
        for at, (count, text) in enumerate(zip(counts, texts, strict=True))
    ]
    best = sorted((each for each in scored if each[0] > 0), reverse=True)[:limit]
    return tuple(tools[-at] for _, at in best)


def _rarity(having: int, total: int) -> float:
    return math.log(1 + (total - having + 0.5) / (having + 0.5))


def _weight(times: int, length: int, average: float) -> float:
    return (
        times
        * (_SATURATION + 1)
        / (times + _SATURATION * (1 - _LENGTH + _LENGTH * length / (average or 1)))
    )


def _words_of(tool: Tool) -> list[str]:
    parameters = members(tool.parameters.get("properties"))
    named = _words(f"{tool.server} {tool.name} {tool.title}") * _NAME_WEIGHT
    return [*named, *_words(tool.description), *_words(" ".join(parameters))]


def _words(text: str) -> list[str]:
    return _WORD.findall(_CAMEL.sub(r"\1 \2", text).lower())
