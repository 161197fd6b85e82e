"""Shell text → Script, in a small grammar of our own; everything else is unproven.

Simple commands joined by `&&`, `||`, `;`, `|` and newlines, subshells, words of literals and plain
quotes, `*` and `?`, a leading `~`, literal redirections and here-documents without expansions.
What runs is the script written anew, so a difference between this reading and the shell's can
change what a command means but never what was ruled on.
"""

import re
import unicodedata
from typing import NoReturn

from toolwire.policy.shell.quoting import ansi_c
from toolwire.policy.shell.syntax import (
    Assignment,
    Command,
    Operator,
    Pipeline,
    Redirect,
    Script,
    Stage,
    Step,
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
_BLANK = " \t"
_ENDS_WORD = frozenset(" \t\n;&|<>()")
_EXPANDS = re.compile(r"[A-Za-z0-9_{(\[@*#?$!-]")
_HOME = re.compile(r"\$(?:HOME(?![A-Za-z0-9_])|\{HOME\})")
_ASSIGNS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_ASSIGNS_OTHERWISE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\+=|\[)")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class _Outside(Exception):
    """The text left the grammar."""


def prove(text: str) -> Script | Unproven:
    """The script of a text in the grammar; the reason for any other text. Never raises."""
    complaint = _unreadable(text)
    if complaint:
        return Unproven(complaint)
    try:
        return _Parser(text).whole()
    except _Outside as outside:
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


def _outside(reason: str) -> NoReturn:
    raise _Outside(reason)


class _Chars:
    """A word while it is read: its characters, each with whether it was quoted."""

    def __init__(self) -> None:
        self.items: list[tuple[str, bool]] = []
        self.quoted = False
        self.tilde = False

    def add(self, text: str, *, quoted: bool) -> None:
        self.items += [(one, quoted) for one in text]

    def bare(self) -> str:
        """The text with quoted characters replaced, to look for characters with a meaning."""
        return "".join("\0" if quoted else one for one, quoted in self.items)

    def word(self) -> Word:
        text = "".join(one for one, _ in self.items)
        bare = self.bare()
        pattern = ""
        if "*" in bare or "?" in bare:
            pattern = "".join(
                f"\\{one}" if quoted and one and one in "*?\\" else one
                for one, quoted in self.items
            )
        return Word(text, pattern=pattern, tilde=self.tilde, quoted=self.quoted)


class _Parser:
    """Reads a text from left to right, once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._pending: list[tuple[str, bool, int]] = []
        """Here-documents whose body starts at the next line: delimiter, quoted, index."""
        self._bodies: list[str] = []
        self._depth = 0

    def whole(self) -> Script:
        script = self._script(inside=False)
        if self._pending:
            _outside("a here-document is not closed")
        return self._filled(script)

    def _script(self, *, inside: bool) -> Script:
        steps: list[Step] = []
        operator: Operator = ";"
        while True:
            self._skip(newlines=True)
            if self._done() or (inside and self._peek() == ")"):
                if operator != ";":
                    _outside(f"nothing follows {operator}")
                return Script(tuple(steps))
            steps.append(Step(operator, self._pipeline()))
            self._skip(newlines=False)
            operator = self._operator(inside)

    def _operator(self, inside: bool) -> Operator:
        if self._done() or (inside and self._peek() == ")"):
            return ";"
        for operator in ("&&", "||"):
            if self._take(operator):
                return operator
        if self._text.startswith((";;", ";&"), self._at):
            _outside("it contains a case clause")
        if self._take(";") or self._peek() == "\n":
            return ";"
        if self._peek() == "&":
            _outside("it runs in the background")
        _outside(f"{self._peek()!r} is not expected there")

    def _pipeline(self) -> Pipeline:
        negated = False
        if (
            self._text.startswith("!", self._at)
            and self._text[self._at + 1 : self._at + 2] in _BLANK
        ):
            self._at += 1
            negated = True
            self._skip(newlines=False)
            if self._text.startswith("!", self._at):
                _outside("it is negated twice")
        stages = [self._stage()]
        while True:
            self._skip(newlines=False)
            if self._peek() != "|" or self._text.startswith("||", self._at):
                return Pipeline(stages=tuple(stages), negated=negated)
            self._at += 1
            if self._peek() == "&":
                _outside("it uses |&")
            self._skip(newlines=True)
            stages.append(self._stage())

    def _stage(self) -> Stage:
        if self._text.startswith("((", self._at):
            _outside("it contains arithmetic")
        if self._take("("):
            self._depth += 1
            if self._depth > _DEEPEST:
                _outside("it nests too deep")
            script = self._script(inside=True)
            if not self._take(")"):
                _outside("a bracket is not closed")
            self._depth -= 1
            if not script.steps:
                _outside("a subshell is empty")
            redirects: list[Redirect] = []
            while self._redirect(redirects, ""):
                pass
            return Subshell(script=script, redirects=tuple(redirects))
        return self._command()

    def _command(self) -> Command:
        start = self._at
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        end = start
        while True:
            self._skip(newlines=False)
            if self._redirect(redirects, ""):
                end = self._at
                continue
            if self._done() or self._peek() in "\n;&|()":
                break
            chars = self._chars()
            if self._peek() in ("<", ">") and self._is_descriptor(chars, redirects):
                end = self._at
                continue
            if not words and (assignment := _assignment(chars)):
                assignments.append(assignment)
            else:
                words += _braces(chars, first=not words)
            end = self._at
        if self._peek() == "(":
            defines = self._text.startswith("()", self._at)
            _outside("it defines a function" if defines else "a bracket is not expected")
        if not words and (assignments or not redirects):
            _outside("it sets a variable" if assignments else "a command is missing")
        if words and words[0].text in _KEYWORDS and not words[0].quoted:
            _outside(f"it uses the shell keyword {words[0].text}")
        return Command(
            words=tuple(words),
            assignments=tuple(assignments),
            redirects=tuple(redirects),
            source=self._text[start:end],
        )

    def _is_descriptor(self, chars: _Chars, redirects: list[Redirect]) -> bool:
        """Whether the word before `<` or `>` was the number of a descriptor."""
        bare = chars.bare()
        if bare.startswith("{") and bare.endswith("}"):
            _outside("a redirection names a variable")
        if not bare.isdigit():
            return False
        if bare not in ("0", "1", "2"):
            _outside(f"it redirects descriptor {bare}")
        return self._redirect(redirects, bare)

    def _redirect(self, redirects: list[Redirect], descriptor: str) -> bool:
        if not descriptor:
            self._skip(newlines=False)
        if self._text.startswith("&>", self._at):
            operator = "&>>" if self._text.startswith("&>>", self._at) else "&>"
            self._at += len(operator)
            redirects.append(Redirect(operator=operator, target=self._target()))
            return True
        if self._peek() not in ("<", ">"):
            return False
        for operator in ("<<<", "<<-", "<<", "<>", "<&", "<(", "<", ">>", ">|", ">&", ">(", ">"):
            if self._take(operator):
                redirects.append(self._redirected(operator, descriptor))
                return True
        return False

    def _redirected(self, operator: str, descriptor: str) -> Redirect:
        match operator:
            case "<(" | ">(":
                _outside("it uses process substitution")
            case "<>" | "<<-":
                _outside(f"it uses {operator}")
            case "<<<":
                word = self._target()
                if word.tilde:
                    _outside("a here-string names the home folder")
                return Redirect(operator="<<<", descriptor=descriptor, text=f"{word.text}\n")
            case "<<":
                return self._heredoc(descriptor)
            case "<&" | ">&":
                word = self._target()
                if word.quoted or word.text not in ("0", "1", "2", "-"):
                    _outside(f"{operator} is not followed by a descriptor")
                return Redirect(operator=operator, descriptor=descriptor, target=word)
            case "<" | ">" | ">>" | ">|":
                return Redirect(operator=operator, descriptor=descriptor, target=self._target())
            case _:
                _outside(f"it uses {operator}")

    def _target(self) -> Word:
        self._skip(newlines=False)
        if self._done() or self._peek() in _ENDS_WORD:
            _outside("a redirection has no target")
        chars = self._chars()
        words = _braces(chars, first=False)
        if len(words) != 1 or words[0].pattern:
            _outside("the target of a redirection is a pattern")
        if self._peek() == "(" or (chars.bare().isdigit() and self._peek() in ("<", ">")):
            _outside(f"{self._peek()!r} is not expected there")
        return words[0]

    def _heredoc(self, descriptor: str) -> Redirect:
        self._skip(newlines=False)
        if self._done() or self._peek() in _ENDS_WORD:
            _outside("a here-document has no delimiter")
        start = self._at
        chars = self._chars(expands=False)
        source = self._text[start : self._at]
        if "\n" in source or "$" in source or "`" in source:
            _outside("the delimiter of a here-document is not plain")
        word = chars.word()
        self._pending.append((word.text, word.quoted, len(self._bodies)))
        self._bodies.append("")
        return Redirect(
            operator="<<<", descriptor=descriptor, target=Word(f"#{len(self._bodies) - 1}")
        )

    def _read_bodies(self) -> None:
        """Reads the here-documents that start after this newline."""
        for delimiter, quoted, index in self._pending:
            lines: list[str] = []
            while True:
                if self._done():
                    _outside("a here-document is not closed")
                end = self._text.find("\n", self._at)
                line = self._text[self._at : end if end >= 0 else len(self._text)]
                self._at = end + 1 if end >= 0 else len(self._text)
                if line == delimiter:
                    break
                if not quoted and any(one in line for one in "$`\\"):
                    _outside("a here-document contains expansions")
                lines.append(f"{line}\n")
            self._bodies[index] = "".join(lines)
        self._pending.clear()

    def _filled(self, script: Script) -> Script:
        """The script with the bodies of its here-documents."""
        if not self._bodies:
            return script
        steps = tuple(
            Step(
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
                text=self._bodies[int(each.target.text[1:])],
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

    def _chars(self, *, expands: bool = True) -> _Chars:
        """One word, up to a blank or an operator."""
        chars = _Chars()
        if self._peek() == "~":
            self._tilde(chars)
        elif found := _HOME.match(self._text, self._at):
            self._home(chars, found)
        elif found := _HOME.match(self._text, self._at + 1) if self._peek() == '"' else None:
            self._at += 1
            self._home(chars, found, quoted=True)
            self._double(chars)
        while not self._done() and self._peek() not in _ENDS_WORD:
            one = self._text[self._at]
            self._at += 1
            match one:
                case "'":
                    self._single(chars)
                case '"':
                    self._double(chars)
                case "\\":
                    self._escape(chars)
                case "`" if expands:
                    _outside("it contains a command substitution")
                case "$" if expands:
                    self._dollar(chars)
                case _:
                    chars.add(one, quoted=False)
        rest = "".join(one for one, _ in chars.items)[1:]
        if chars.tilde and rest and not rest.startswith("/"):
            _outside("it expands a variable")
        return chars

    def _tilde(self, chars: _Chars) -> None:
        after = self._text[self._at + 1 : self._at + 2]
        if after and after not in "/ \t\n;&|<>()":
            _outside("it names another user's home folder, or the tilde is not plain")
        self._at += 1
        chars.tilde = True
        chars.add("~", quoted=True)

    def _home(self, chars: _Chars, found: re.Match[str], *, quoted: bool = False) -> None:
        after = self._text[found.end() : found.end() + 1]
        ends = '/"' if quoted else "/ \t\n;&|<>()"
        if after and after not in ends:
            _outside("it expands a variable")
        self._at = found.end()
        chars.tilde = True
        chars.quoted = quoted
        chars.add("~", quoted=True)

    def _single(self, chars: _Chars) -> None:
        end = self._text.find("'", self._at)
        if end < 0:
            _outside("a quote is not closed")
        self._quoted(chars, self._text[self._at : end])
        self._at = end + 1

    def _quoted(self, chars: _Chars, text: str) -> None:
        if "\n" in text and self._pending:
            _outside("a quoted word goes on over lines beside a here-document")
        chars.quoted = True
        chars.items.append(("", True))
        chars.add(text, quoted=True)

    def _double(self, chars: _Chars) -> None:
        self._quoted(chars, "")
        while True:
            if self._done():
                _outside("a quote is not closed")
            one = self._text[self._at]
            self._at += 1
            if one == '"':
                return
            if one == "`":
                _outside("it contains a command substitution")
            if one == "$" and _EXPANDS.match(self._text, self._at):
                _outside(_expansion(self._text, self._at))
            if one == "\\" and self._peek() and self._peek() in '$`"\\\n':
                one = self._peek().replace("\n", "")
                self._at += 1
                if not one and self._pending:
                    _outside("a line goes on beside a here-document")
            self._quoted(chars, one)

    def _escape(self, chars: _Chars) -> None:
        if self._done():
            _outside("it ends with a backslash")
        one = self._text[self._at]
        self._at += 1
        if one == "\n":
            if self._pending:
                _outside("a line goes on beside a here-document")
            return
        self._quoted(chars, one)

    def _dollar(self, chars: _Chars) -> None:
        if self._peek() == "'":
            found = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self._text, self._at)
            value = ansi_c(found[1]) if found else None
            if found is None or value is None:
                _outside("it contains an escape that is not read")
            self._at = found.end()
            self._quoted(chars, value)
            return
        if self._peek() == '"':
            _outside("it contains a translated string")
        if _EXPANDS.match(self._text, self._at):
            _outside(_expansion(self._text, self._at))
        chars.add("$", quoted=True)

    def _skip(self, *, newlines: bool) -> None:
        """Skips blanks, continued lines and comments, and newlines if they mean nothing here."""
        while not self._done():
            one = self._text[self._at]
            if one in _BLANK:
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                if self._pending:
                    _outside("a line goes on beside a here-document")
                self._at += 2
            elif one == "#" and (self._at == 0 or self._text[self._at - 1] in " \t\n;&|()<>"):
                end = self._text.find("\n", self._at)
                self._at = end if end >= 0 else len(self._text)
            elif one == "\n" and newlines:
                self._at += 1
                self._read_bodies()
            else:
                return

    def _done(self) -> bool:
        return self._at >= len(self._text)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True


def _expansion(text: str, at: int) -> str:
    match text[at]:
        case "(":
            return "it contains a command substitution"
        case "[":
            return "it contains arithmetic"
        case _:
            return "it expands a variable"


def _assignment(chars: _Chars) -> Assignment | None:
    bare = chars.bare()
    if _ASSIGNS_OTHERWISE.match(bare):
        _outside("it sets a variable")
    found = _ASSIGNS.match(bare)
    if found is None or chars.tilde:
        return None
    if re.search(r"[=:]~", bare):
        _outside("a variable is set to a home folder")
    text = "".join(one for one, _ in chars.items)
    return Assignment(found[1], text[found.end() :])


def _braces(chars: _Chars, *, first: bool) -> list[Word]:
    """The words that one becomes: `a{b,c}` is two."""
    bare = chars.bare()
    if not first and _ASSIGNS.match(bare) and re.search(r"[=:]~", bare):
        _outside("it expands a home folder inside a word")
    if "[" in bare and "]" in bare[bare.index("[") :]:
        _outside("it contains a pattern in brackets")
    if "{" not in bare or bare == "{}" or not re.search(r"\{.*(?:,|\.\.).*\}", bare, re.DOTALL):
        return [chars.word()]
    found = re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", bare, re.DOTALL)
    if found is None or ".." in found[2] or "$" in found[1] or first:
        _outside("it contains braces that are not read")
    start, end = found.start(2), found.end(2)
    commas = [at for at in range(start, end) if bare[at] == ","]
    words: list[Word] = []
    for begin, stop in zip((start, *(at + 1 for at in commas)), (*commas, end), strict=True):
        one = _Chars()
        one.quoted, one.tilde = chars.quoted, chars.tilde
        one.items = [*chars.items[: start - 1], *chars.items[begin:stop], *chars.items[end + 1 :]]
        if not any(each for each, _ in one.items) and not one.quoted:
            _outside("it contains braces that are not read")
        words.append(one.word())
    if len(words) > _MOST_BRACES:
        _outside("it contains too many braces")
    return words
