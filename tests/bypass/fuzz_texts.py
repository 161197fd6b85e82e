"""Random shell texts: from a grammar, as soups of tokens, and as mutations of real commands."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from tests.bypass.hostile_commands import hostile_commands
from tests.bypass.ordinary import ordinary_commands

_TOKENS: dict[str, list[str]] = json.loads(Path(__file__).with_name("fuzz_tokens.json").read_text())
_NAMES, _LITERALS = _TOKENS["names"], _TOKENS["literals"]
_OPERATORS, _REDIRECTS = _TOKENS["operators"], _TOKENS["redirects"]
_BODIES, _SPECIAL, _JUNK = _TOKENS["bodies"], _TOKENS["special"], _TOKENS["junk"]
_FRAMES = ("({})", "( {} )", "! {}", "{{ {}; }}", "{} &", "{};", "{} # c", "({}) | p")
_SETTINGS = ("x=1", "FOO=a", "x=", "x='a b'", "x=~", "x=*", "x+=1", "A=a:~", "x={a,b}", "x[0]=1")


def random_text(chance: random.Random, seeds: Sequence[str]) -> str:
    """One text; `seeds` are real commands to mutate."""
    kind = chance.random()
    if kind < 0.55:
        return _script(chance)
    if kind < 0.7:
        return _soup(chance)
    return _mutated(chance, chance.choice(seeds))


def seeds() -> tuple[str, ...]:
    """Real commands and hostile ones, short enough to run by the thousand."""
    real = [one.command for one in ordinary_commands("/srv/project")]
    hostile = [text for text in hostile_commands() if len(text) < 100]
    return (*real, *real, *hostile[:3000])


def _script(chance: random.Random) -> str:
    parts = [_command(chance)]
    while chance.random() < 0.4:
        joint = chance.choice(_OPERATORS[:5] if chance.random() < 0.8 else _OPERATORS)
        parts.append(joint + chance.choice(("", " ")) + _command(chance))
    text = "".join(parts)
    if chance.random() < 0.1:
        text = chance.choice(_FRAMES).format(text)
    return _with_bodies(chance, text)


def _with_bodies(chance: random.Random, text: str) -> str:
    for mark in ("<<E\\F", "<<''", "<<-E", "<<'E'", '<<"E"', "<<\\E", "<<E"):
        if mark in text and "<<<" not in text:
            end = {"<<E\\F": "EF", "<<''": ""}.get(mark, "E")
            tail = chance.choice(("\n", "", "\np x", "\n\n", " \n", "\n#c\n"))
            return f"{text}\n{chance.choice(_BODIES)}{end}{tail}"
    return text


def _command(chance: random.Random) -> str:
    words: list[str] = []
    if chance.random() < 0.08:
        words.append(chance.choice(_SETTINGS))
    words.append(_name(chance))
    while chance.random() < 0.65:
        words.append(_word(chance))
    while chance.random() < 0.2:
        words.insert(chance.randrange(len(words) + 1), chance.choice(_REDIRECTS))
    return chance.choice((" ", " ", " ", " ", "  ", "\t", " \\\n", "\\\n ")).join(words)


def _name(chance: random.Random) -> str:
    name = chance.choice(_NAMES)
    odd = chance.random()
    if odd < 0.85:
        return name
    return chance.choice(
        (
            f"'{name}'",
            f'"{name}"',
            f"\\{name}",
            f"{name}''",
            f"$'{name}'",
            f"./{name}",
            f"{name}*",
            f"{{{name},a}}",
        )
    )


def _word(chance: random.Random) -> str:
    word = chance.choice(_LITERALS)
    while chance.random() < 0.3:
        word += chance.choice(_LITERALS)
    return word


def _soup(chance: random.Random) -> str:
    tokens = (*_LITERALS, *_OPERATORS, *_REDIRECTS, *_NAMES, *_SPECIAL)
    count = chance.randrange(1, 9)
    return chance.choice(("", " ")).join(chance.choice(tokens) for _ in range(count))


def _mutated(chance: random.Random, text: str) -> str:
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3))):
        at = chance.randrange(len(text) + 1)
        step = chance.random()
        if step < 0.55:
            text = text[:at] + chance.choice(_SPECIAL) + text[at:]
        elif step < 0.75:
            text = text[:at] + text[at + chance.randrange(1, 3) :]
        elif step < 0.85:
            text = text[:at] + chance.choice(_LITERALS) + text[at:]
        elif step < 0.95:
            other = chance.randrange(len(text) + 1)
            text = text[:at] + text[min(at, other) : max(at, other)] + text[at:]
        else:
            text = text[:at] + chance.choice(_JUNK) + text[at:]
    return text
