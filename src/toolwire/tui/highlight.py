"""Colours of code, a line at a time: the lexer's state is kept from line to line."""

import re
from collections.abc import Iterator
from typing import Any, cast

from pygments.lexer import Lexer, RegexLexer
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Token
from pygments.util import ClassNotFound

LONGEST = 2000
"""Characters of a line beyond which it stays plain."""

_ROLES = (
    (Comment, "comment"),
    (String, "string"),
    (Number, "number"),
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (Name.Function, "names"),
    (Name.Class, "names"),
    (Name.Tag, "keyword"),
    (Name.Attribute, "names"),
    (Name.Decorator, "names"),
)


class Highlighter:
    """Roles of one block of code."""

    def __init__(self, language: str) -> None:
        self._lexer = _lexer(language)
        self._stack = ["root"]
        self._roles: dict[Any, str] = {}

    def line(self, text: str) -> list[tuple[str, str]]:
        """The line cut into pieces with their roles; the pieces joined are the line."""
        if self._lexer is None or len(text) > LONGEST:
            return [(text, "")]
        pieces: list[tuple[str, str]] = []
        for kind, words in self._tokens(f"{text}\n"):
            if words:
                pieces.append((words, self._role(kind)))
        return _without_newline(pieces)

    def _role(self, kind: Any) -> str:
        found = self._roles.get(kind)
        if found is None:
            found = next((role for parent, role in _ROLES if kind in parent), "")
            self._roles[kind] = found
        return found

    def _tokens(self, text: str) -> Iterator[tuple[Any, str]]:
        lexer = self._lexer
        if lexer is None:
            return
        if not _keeps_state(lexer):
            for _, kind, words in lexer.get_tokens_unprocessed(text):
                yield kind, words
            return
        yield from _regex_tokens(cast(RegexLexer, lexer), text, self._stack)


def _lexer(language: str) -> Lexer | None:
    if not re.fullmatch(r"[\w+#.-]{1,30}", language):
        return None
    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


def _keeps_state(lexer: Lexer) -> bool:
    own = type(lexer).get_tokens_unprocessed
    return isinstance(lexer, RegexLexer) and own is RegexLexer.get_tokens_unprocessed


def _regex_tokens(lexer: RegexLexer, text: str, stack: list[str]) -> Iterator[tuple[Any, str]]:
    """Pygments' own loop, with a stack that outlives the line."""
    states = cast(dict[str, list[Any]], cast(Any, lexer)._tokens)
    at = 0
    while at < len(text):
        for matches, action, new_state in states[stack[-1]]:
            found = matches(text, at)
            if not found:
                continue
            if action is not None:
                if type(action) is type(Token):
                    yield action, found.group()
                else:
                    for _, kind, words in action(lexer, found):
                        yield kind, words
            at = found.end()
            _move(stack, new_state)
            break
        else:
            if text[at] == "\n":
                stack[:] = ["root"]
            yield Token.Text, text[at]
            at += 1


def _move(stack: list[str], new_state: Any) -> None:
    if new_state is None:
        return
    for step in _steps(new_state):
        if isinstance(step, int):
            del stack[max(len(stack) + step, 1) :]
        elif step == "#pop":
            if len(stack) > 1:
                stack.pop()
        elif step == "#push":
            stack.append(stack[-1])
        else:
            stack.append(step)


def _steps(new_state: Any) -> tuple[int | str, ...]:
    return cast(tuple[int | str, ...], new_state if isinstance(new_state, tuple) else (new_state,))


def _without_newline(pieces: list[tuple[str, str]]) -> list[tuple[str, str]]:
    while pieces and (last := pieces[-1])[0].endswith("\n"):
        pieces[-1] = (last[0][:-1], last[1])
        if not pieces[-1][0]:
            pieces.pop()
        break
    return pieces
