"""The tree of a proven shell text, and the tree written as shell text again."""

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

Operator: TypeAlias = Literal["&&", "||", ";"]


def names(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


class Unproven(msgspec.Struct, frozen=True):
    """Text outside the grammar, and why."""

    reason: str


class Word(msgspec.Struct, frozen=True):
    """One word of a command, its quotes removed."""

    text: str
    pattern: str = ""
    """The same with quoted `*`, `?` and `\\` escaped, if an unquoted `*` or `?` is in it."""
    tilde: bool = False
    """Starts with the home folder, written `~` or `$HOME`."""
    quoted: bool = False
    """A part was quoted, so it is not a keyword."""

    @property
    def literal(self) -> bool:
        """Whether the word is its text and nothing has to be looked up."""
        return not self.pattern and not self.tilde


class Assignment(msgspec.Struct, frozen=True):
    """`NAME=value` before a command."""

    name: str
    value: str


class Redirect(msgspec.Struct, frozen=True, kw_only=True):
    """A redirection; `text` is the input of a here-document or here-string."""

    descriptor: str = ""
    operator: Literal["<", ">", ">>", ">|", "&>", "&>>", ">&", "<&", "<<<"]
    target: Word = Word("")
    text: str = ""

    @property
    def opens(self) -> Literal["read", "write"] | None:
        """What it does to the file it names, if it names one."""
        match self.operator:
            case "<":
                return "read"
            case ">" | ">>" | ">|" | "&>" | "&>>":
                return "write"
            case _:
                return None


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A simple command."""

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    source: str = ""
    """As written, for display."""


class Subshell(msgspec.Struct, frozen=True, kw_only=True):
    """`( … )`."""

    script: "Script"
    redirects: tuple[Redirect, ...] = ()


Stage: TypeAlias = Command | Subshell


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """Commands joined by `|`."""

    stages: tuple[Stage, ...]
    negated: bool = False


class PipelineStep(msgspec.Struct, frozen=True):
    """A pipeline and the operator before it; the first has `;`."""

    operator: Operator
    pipeline: Pipeline


class Script(msgspec.Struct, frozen=True):
    """A whole text."""

    steps: tuple[PipelineStep, ...] = ()

    @property
    def text(self) -> str:
        """The script rewritten: every word quoted, nothing left to expand."""
        return render(self)

    def commands(self) -> Iterator[Command]:
        """Every simple command, in the order written."""
        for step in self.steps:
            for stage in step.pipeline.stages:
                if isinstance(stage, Subshell):
                    yield from stage.script.commands()
                else:
                    yield stage


def quote(text: str) -> str:
    """A word that the shell takes for just this text."""
    return "'" + text.replace("'", "'\\''") + "'"


def render(script: Script) -> str:
    """The shell text of a script."""
    pieces: list[str] = []
    for step in script.steps:
        if pieces:
            pieces.append("; " if step.operator == ";" else f" {step.operator} ")
        pieces.append(_pipeline(step.pipeline))
    return "".join(pieces)


def _pipeline(pipeline: Pipeline) -> str:
    stages = " | ".join(_stage(stage) for stage in pipeline.stages)
    return f"! {stages}" if pipeline.negated else stages


def _stage(stage: Stage) -> str:
    redirects = "".join(f" {_redirect(each)}" for each in stage.redirects)
    if isinstance(stage, Subshell):
        return f"({render(stage.script)}){redirects}"
    assignments = (f"{each.name}={quote(each.value)}" for each in stage.assignments)
    words = (_word(word) for word in stage.words)
    return " ".join((*assignments, *words)) + redirects if stage.words else redirects.strip()


def _word(word: Word) -> str:
    """A word; patterns and `~` stay for texts that are shown, a ruling replaces them first."""
    written = word.pattern or _escaped(word.text)
    if not word.tilde:
        return _pattern(written) or "''"
    return "~/" + _pattern(written[2:]) if len(written) > 1 else "~"


def _escaped(text: str) -> str:
    return re.sub(r"([*?\\])", r"\\\1", text)


def _pattern(pattern: str) -> str:
    """The pattern with everything but its `*` and `?` quoted."""
    pieces: list[str] = []
    literal = ""
    at = 0
    while at < len(pattern):
        one = pattern[at]
        if one == "\\":
            literal += pattern[at + 1 : at + 2]
            at += 2
            continue
        if one in "*?":
            pieces += [quote(literal)] if literal else []
            pieces.append(one)
            literal = ""
        else:
            literal += one
        at += 1
    return "".join((*pieces, quote(literal) if literal else ""))


def _redirect(redirect: Redirect) -> str:
    match redirect.operator:
        case "&>" | "&>>":
            return f"{redirect.operator[1:]}{_word(redirect.target)} 2>&1"
        case ">&" | "<&":
            return f"{redirect.descriptor}{redirect.operator}{redirect.target.text}"
        case "<<<":
            if not redirect.text:
                return f"{redirect.descriptor}</dev/null"
            return f"{redirect.descriptor}<<<{quote(redirect.text.removesuffix(chr(10)))}"
        case operator:
            return f"{redirect.descriptor}{operator}{_word(redirect.target)}"
