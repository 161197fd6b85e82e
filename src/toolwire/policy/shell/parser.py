"""Shell text → Script, in a small grammar of our own; everything else is unproven.

Simple commands joined by `&&`, `||`, `;`, `|` and newlines, subshells, words of literals and plain
quotes, `*` and `?`, a leading `~`, literal redirections and here-documents without expansions.
What runs is the rewritten script, so a difference between this reading and the shell's can
change what a command means but never what was ruled on.
"""

import re
import unicodedata

from toolwire.policy.shell.reader import ENDS_WORD, Chars, Outside, Reader, outside
from toolwire.policy.shell.syntax import (
    Assignment,
    Command,
    Operator,
    Pipeline,
    PipelineStep,
    Redirect,
    Script,
    Stage,
    Subshell,
    Unproven,
    Word,
    names,
)

LONGEST = 32_768
"""Characters of a text that is read at all."""
_DEEPEST = 20
_MOST_BRACES = 64

_KEYWORDS = names("""
    if then elif else fi do done case esac while until for select function coproc time { } [[ ]]
    in !""")
_ASSIGNS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_ASSIGNS_OTHERWISE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\+=|\[)")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def prove(text: str) -> Script | Unproven:
    """The script of a text in the grammar; the reason for any other text. Never raises."""
    complaint = _unreadable(text)
    if complaint:
        return Unproven(complaint)
    try:
        return _Parser(text).whole()
    except Outside as outside:
        return Unproven(str(outside))


def _unreadable(text: str) -> str:
    if len(text) > LONGEST:
        return f"the command is longer than {LONGEST} characters"
    if text.isascii() and text.isprintable():
        return ""
    for character in text:
        if character not in "\n\t" and unicodedata.category(character) in _INVISIBLE:
            return f"it contains the invisible character U+{ord(character):04X}"
        if character != " " and unicodedata.category(character) == "Zs":
            return f"it contains the look-alike space U+{ord(character):04X}"
    return ""


class _Parser(Reader):
    """Reads a text from left to right, once."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def whole(self) -> Script:
        script = self._script(inside=False)
        if self.pending:
            outside("a here-document is not closed")
        return self._filled(script)

    def _script(self, *, inside: bool) -> Script:
        steps: list[PipelineStep] = []
        operator: Operator = ";"
        while True:
            self.skip(newlines=True)
            if self.done() or (inside and self.peek() == ")"):
                if operator != ";":
                    outside(f"nothing follows {operator}")
                return Script(tuple(steps))
            steps.append(PipelineStep(operator, self._pipeline()))
            self.skip(newlines=False)
            operator = self._operator(inside)

    def _operator(self, inside: bool) -> Operator:
        if self.done() or (inside and self.peek() == ")"):
            return ";"
        for operator in ("&&", "||"):
            if self.take(operator):
                return operator
        if self.text.startswith((";;", ";&"), self.at):
            outside("it contains a case clause")
        if self.take(";") or self.peek() == "\n":
            return ";"
        if self.peek() == "&":
            outside("it runs in the background")
        outside(f"{self.peek()!r} is not expected there")

    def _pipeline(self) -> Pipeline:
        negated = False
        if self.text.startswith(("! ", "!\t"), self.at):
            self.at += 1
            negated = True
            self.skip(newlines=False)
            if self.text.startswith("!", self.at):
                outside("it is negated twice")
        stages = [self._stage()]
        while True:
            self.skip(newlines=False)
            if self.peek() != "|" or self.text.startswith("||", self.at):
                return Pipeline(stages=tuple(stages), negated=negated)
            self.at += 1
            if self.peek() == "&":
                outside("it uses |&")
            self.skip(newlines=True)
            stages.append(self._stage())

    def _stage(self) -> Stage:
        if self.text.startswith("((", self.at):
            outside("it contains arithmetic")
        if self.take("("):
            self._depth += 1
            if self._depth > _DEEPEST:
                outside("it nests too deep")
            script = self._script(inside=True)
            if not self.take(")"):
                outside("a bracket is not closed")
            self._depth -= 1
            if not script.steps:
                outside("a subshell is empty")
            redirects: list[Redirect] = []
            while self._redirect(redirects, ""):
                pass
            return Subshell(script=script, redirects=tuple(redirects))
        return self._command()

    def _command(self) -> Command:
        start = self.at
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        end = start
        while True:
            self.skip(newlines=False)
            if self._redirect(redirects, ""):
                end = self.at
                continue
            if self.done() or self.peek() in "\n;&|()":
                break
            chars = self.chars()
            if self.peek() in ("<", ">") and self._is_descriptor(chars, redirects):
                end = self.at
                continue
            if not words and (assignment := _assignment(chars)):
                assignments.append(assignment)
            else:
                words += _braces(chars, first=not words)
            end = self.at
        if self.peek() == "(":
            defines = self.text.startswith("()", self.at)
            outside("it defines a function" if defines else "a bracket is not expected")
        if not words and (assignments or not redirects):
            outside("it sets a variable" if assignments else "a command is missing")
        if words and words[0].pattern:
            outside("the name of the program is a pattern")
        if words and words[0].text in _KEYWORDS and not words[0].quoted:
            outside(f"it uses the shell keyword {words[0].text}")
        return Command(
            words=tuple(words),
            assignments=tuple(assignments),
            redirects=tuple(redirects),
            source=self.text[start:end],
        )

    def _is_descriptor(self, chars: Chars, redirects: list[Redirect]) -> bool:
        """Whether the word before `<` or `>` was the number of a descriptor."""
        bare = chars.bare()
        if bare.startswith("{") and bare.endswith("}"):
            outside("a redirection names a variable")
        if not bare.isdigit():
            return False
        if bare not in ("0", "1", "2"):
            outside(f"it redirects descriptor {bare}")
        return self._redirect(redirects, bare)

    def _redirect(self, redirects: list[Redirect], descriptor: str) -> bool:
        if not descriptor:
            self.skip(newlines=False)
        if self.text.startswith("&>", self.at):
            operator = "&>>" if self.text.startswith("&>>", self.at) else "&>"
            self.at += len(operator)
            redirects.append(Redirect(operator=operator, target=self._target()))
            return True
        if self.peek() not in ("<", ">"):
            return False
        for operator in ("<<<", "<<-", "<<", "<>", "<&", "<(", "<", ">>", ">|", ">&", ">(", ">"):
            if self.take(operator):
                redirects.append(self._redirected(operator, descriptor))
                return True
        return False

    def _redirected(self, operator: str, descriptor: str) -> Redirect:
        match operator:
            case "<(" | ">(":
                outside("it uses process substitution")
            case "<>" | "<<-":
                outside(f"it uses {operator}")
            case "<<<":
                word = self._target()
                if word.tilde:
                    outside("a here-string names the home folder")
                return Redirect(operator="<<<", descriptor=descriptor, text=f"{word.text}\n")
            case "<<":
                return self._heredoc(descriptor)
            case "<&" | ">&":
                word = self._target()
                glued = self.text.startswith("&>", self.at)
                if word.quoted or word.text not in ("0", "1", "2", "-") or glued:
                    outside(f"{operator} is not followed by a descriptor")
                return Redirect(operator=operator, descriptor=descriptor, target=word)
            case "<" | ">" | ">>" | ">|":
                return Redirect(operator=operator, descriptor=descriptor, target=self._target())
            case _:
                outside(f"it uses {operator}")

    def _target(self) -> Word:
        self.skip(newlines=False)
        if self.done() or self.peek() in ENDS_WORD:
            outside("a redirection has no target")
        chars = self.chars()
        words = _braces(chars, first=False)
        if len(words) != 1 or words[0].pattern:
            outside("the target of a redirection is a pattern")
        bare = chars.bare()
        named = bare.isdigit() or (bare.startswith("{") and bare.endswith("}"))
        if self.peek() == "(" or (named and self.peek() in ("<", ">")):
            outside(f"{self.peek()!r} is not expected there")
        return words[0]

    def _heredoc(self, descriptor: str) -> Redirect:
        self.skip(newlines=False)
        if self.done() or self.peek() in ENDS_WORD:
            outside("a here-document has no delimiter")
        start = self.at
        chars = self.chars(expands=False)
        source = self.text[start : self.at]
        if "\n" in source or "$" in source or "`" in source:
            outside("the delimiter of a here-document is not plain")
        word = chars.word()
        self.pending.append((word.text, word.quoted, len(self.bodies)))
        self.bodies.append("")
        return Redirect(
            operator="<<<", descriptor=descriptor, target=Word(f"#{len(self.bodies) - 1}")
        )

    def _filled(self, script: Script) -> Script:
        """The script with the bodies of its here-documents."""
        if not self.bodies:
            return script
        steps = tuple(
            PipelineStep(
                step.operator,
                Pipeline(
                    stages=tuple(self._filled_stage(each) for each in step.pipeline.stages),
                    negated=step.pipeline.negated,
                ),
            )
            for step in script.steps
        )
        return Script(steps)

    def _filled_stage(self, stage: Stage) -> Stage:
        redirects = tuple(
            Redirect(
                operator="<<<",
                descriptor=each.descriptor,
                text=self.bodies[int(each.target.text[1:])],
            )
            if each.operator == "<<<" and each.target.text
            else each
            for each in stage.redirects
        )
        if isinstance(stage, Subshell):
            return Subshell(script=self._filled(stage.script), redirects=redirects)
        return Command(
            words=stage.words,
            assignments=stage.assignments,
            redirects=redirects,
            source=stage.source,
        )


def _assignment(chars: Chars) -> Assignment | None:
    bare = chars.bare()
    if _ASSIGNS_OTHERWISE.match(bare):
        outside("it sets a variable")
    found = _ASSIGNS.match(bare)
    if found is None or chars.tilde:
        return None
    if re.search(r"[=:]~", bare):
        outside("a variable is set to a home folder")
    text = "".join(one for one, _ in chars.items)
    return Assignment(found[1], text[found.end() :])


def _braces(chars: Chars, *, first: bool) -> list[Word]:
    """The words that one becomes: `a{b,c}` is two."""
    bare = chars.bare()
    if not first and _ASSIGNS.match(bare) and re.search(r"[=:]~", bare):
        outside("it expands a home folder inside a word")
    if "[" in bare and "]" in bare[bare.index("[") :]:
        outside("it contains a pattern in brackets")
    if "{" not in bare or bare == "{}" or not re.search(r"\{.*(?:,|\.\.).*\}", bare, re.DOTALL):
        return [chars.word()]
    found = re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", bare, re.DOTALL)
    # A tilde may begin a word once braces are expanded: `{,}~root` is two home folders.
    if found is None or ".." in found[2] or "$" in found[1] or "~" in bare or first:
        outside("it contains braces that are not read")
    start, end = found.start(2), found.end(2)
    commas = [at for at in range(start, end) if bare[at] == ","]
    words: list[Word] = []
    for begin, stop in zip((start, *(at + 1 for at in commas)), (*commas, end), strict=True):
        one = Chars()
        one.quoted, one.tilde = chars.quoted, chars.tilde
        one.items = [*chars.items[: start - 1], *chars.items[begin:stop], *chars.items[end + 1 :]]
        if not any(each for each, _ in one.items) and not one.quoted:
            outside("it contains braces that are not read")
        words.append(one.word())
    if len(words) > _MOST_BRACES:
        outside("it contains too many braces")
    return words
