"""Draws the names, values and wordings of one generated task."""

import re
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from evals import words

T = TypeVar("T")
_TYPO_SHARE = 0.15
_CASUAL_SHARE = 0.3


class Draw:
    """A seeded source of choices; a word is drawn at most once for a task."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self._used: set[str] = set()

    def pick(self, *options: T) -> T:
        """One of the options."""
        return self.random.choice(options)

    def number(self, low: int, high: int, step: int = 1) -> int:
        """A number that no earlier draw returned."""
        while True:
            value = self.random.randrange(low, high + 1, step)
            if self._unused(str(value)):
                return value

    def word(self, pool: Sequence[str]) -> str:
        """A word of the pool that no earlier draw returned."""
        return self.random.choice([word for word in pool if self._unused(word, keep=False)] or pool)

    def _unused(self, word: str, *, keep: bool = True) -> bool:
        fresh = word not in self._used
        if keep:
            self._used.add(word)
        return fresh

    def some(self, pool: Sequence[str], count: int) -> list[str]:
        """Several different words of the pool."""
        return [self._taken(pool) for _ in range(count)]

    def _taken(self, pool: Sequence[str]) -> str:
        word = self.word(pool)
        self._used.add(word)
        return word

    def person(self) -> str:
        return self._taken(words.PEOPLE)

    def full_name(self) -> str:
        return f"{self.person()} {self._taken(words.SURNAMES)}"

    def city(self) -> str:
        return self._taken(words.CITIES)

    def thing(self) -> str:
        return self._taken(words.THINGS)

    def topic(self) -> str:
        return self._taken(words.TOPICS)

    def product(self) -> str:
        return self._taken(words.PRODUCTS)

    def animal(self) -> str:
        return self._taken(words.ANIMALS)

    def service(self) -> str:
        return self._taken(words.SERVICES)

    def key(self) -> str:
        return self._taken(words.KEYS)

    def flag(self) -> str:
        return self._taken(words.FLAGS)

    def verb(self) -> str:
        return self._taken(words.VERBS)

    def colour(self) -> str:
        return self._taken(words.COLOURS)

    def chore(self) -> str:
        return self._taken(words.CHORES)

    def error(self) -> str:
        return self._taken(words.ERRORS)

    def sentence(self) -> str:
        return self._taken(words.SENTENCES)

    def host(self) -> str:
        return f"{self._taken(words.HOSTS)}{self.random.randint(1, 9)}"

    def port(self) -> int:
        return self.number(2001, 9899)

    def version(self) -> str:
        return ".".join(str(self.random.randint(1, 9)) for _ in range(3))

    def date(self) -> str:
        year, month = self.random.randint(2019, 2025), self.random.randint(1, 12)
        return f"{year}-{month:02}-{self.random.randint(10, 28)}"

    def request(self, *templates: str, **values: object) -> str:
        """One of the wordings, filled in; at times casual or with a typing error."""
        template = self.random.choice(templates)
        parts = re.split(r"(\{\w+\})", template)
        if self.random.random() < _CASUAL_SHARE:
            parts = casual(parts)
        if self.random.random() < _TYPO_SHARE:
            parts = self._with_typo(parts)
        return "".join(
            str(values[part[1:-1]]) if part.startswith("{") and part.endswith("}") else part
            for part in parts
        )

    def _with_typo(self, parts: list[str]) -> list[str]:
        long = [
            (index, found)
            for index, part in enumerate(parts)
            if not part.startswith("{")
            for found in re.finditer(r"(?<![\w.,`'\"/*-])[a-z]{6,}(?![\w.`'\"/(-])", part)
        ]
        if not long:
            return parts
        index, found = self.random.choice(long)
        at = found.start() + self.random.randint(1, len(found[0]) - 3)
        part = parts[index]
        parts[index] = part[:at] + part[at + 1] + part[at] + part[at + 2 :]
        return parts


def casual(parts: list[str]) -> list[str]:
    """Without the capital at the start and the stop at the end."""
    first, *rest = parts
    if re.match(r"[A-Z][a-z]", first):
        first = first[0].lower() + first[1:]
    all_parts = [first, *rest]
    all_parts[-1] = re.sub(r"[.?]$", "", all_parts[-1])
    return all_parts
