"""sed, awk and jq: languages of their own, of which only what transforms text is known."""

import re

from toolwire.policy.shell.effects import Effects, opaque
from toolwire.policy.shell.options import Line, read_line, syntax, unknown_word

_ADDRESS = r"(?:[0-9]+(?:~[0-9]+)?|\$|/(?:\\.|\[\^?\]?[^\]\n]*\]|[^/\\\n\[])*/I?)"
_ADDRESSES = rf"(?:{_ADDRESS}(?:\s*,\s*(?:[+~]?[0-9]+|{_ADDRESS}))?\s*!?)?"
_SUBSTITUTE = (
    r"s(?P<mark>[/|,#@:!%_])(?:\\.|(?!(?P=mark))[^\\\n])*(?P=mark)"
    r"(?:\\.|(?!(?P=mark))[^\\\n])*(?P=mark)[gpiI0-9]*"
)
_SED_COMMAND = re.compile(
    rf"\s*{_ADDRESSES}\s*(?:[pdDPnNgGhHxl=]|[qQ][0-9]*|{_SUBSTITUTE})\s*", re.DOTALL
)
_SED = syntax(
    """-nErsuz --quiet --silent --regexp-extended --separate --unbuffered --null-data --debug
    --posix -e=T --expression=T -i?T --in-place?T -l=T --line-length=T | T*"""
)
_AWK = syntax("-F=T --field-separator=T -v=T --assign=T | T*")
_AWK_CODE = re.compile(
    r"system|getline|close|fflush|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|ARG[VC]|@|\||print[\s\S]*>|extension"
)
_AWK_STRINGS = re.compile(r'"(?:\\.|[^"\\\n])*"')
_JQ = syntax(
    """-rcsneSMCajRN -h --raw-output --compact-output --slurp --null-input --exit-status --sort-keys
    --monochrome-output --color-output --ascii-output --join-output --raw-input --tab --seq
    --raw-output0 --stream --unbuffered --indent=T | T*"""
)
_JQ_READS = re.compile(r"\$ENV|\b(?:import|include|env|modulemeta|get_search_list)\b")


def sed(words: tuple[str, ...]) -> Effects:
    """What a sed command does."""
    line = read_line(words, _SED)
    if line.unknown:
        return unknown_word("sed", line)
    scripts = [
        (each.value, each.at) for each in line.options if each.name in ("-e", "--expression")
    ]
    files = list(line.operands)
    if not scripts and files:
        scripts.append(files.pop(0))
    for script, at in scripts:
        if not transforms(script):
            return opaque("the sed script may run or write something", at)
    changed = [each for each in line.options if each.name in ("-i", "--in-place")]
    if any("/" in each.value or "*" in each.value for each in changed):
        return opaque("sed stores a copy elsewhere", changed[0].at)
    names = tuple(name for name, _ in files)
    if not changed:
        return Effects(reads=names)
    copies = tuple(f"{name}{each.value}" for each in changed if each.value for name in names)
    return Effects(reads=names, writes=(*names, *copies))


def transforms(script: str) -> bool:
    """Whether a sed script is a sequence of commands that print, delete or substitute."""
    at = 0
    while at < len(script):
        found = _SED_COMMAND.match(script, at)
        if found is None or found.end() == at:
            return not script[at:].strip(" \t\n;")
        at = found.end()
        if at < len(script) and script[at] not in ";\n":
            return False
        at += 1
    return True


def awk(words: tuple[str, ...]) -> Effects:
    """What an awk command does."""
    line = _awk_line(words)
    if line.unknown:
        return unknown_word(words[0], line)
    if not line.operands:
        return opaque("awk has no program", len(words))
    (program, at), *files = line.operands
    if not _only_computes(program):
        return opaque("the awk program may run, read or write something", at)
    names = tuple(name for name, _ in files if not re.match(r"[A-Za-z_]\w*=", name, re.ASCII))
    return Effects(reads=names)


def _only_computes(program: str) -> bool:
    """Whether an awk program has nothing in it that opens files or starts programs."""
    if not _AWK_CODE.search(program.replace("||", " ")):
        return True
    # A word inside a string is harmless, but a quote inside a pattern starts no string.
    code = _AWK_STRINGS.sub('""', program)
    plain = program.isprintable() and "/" not in code and "#" not in code
    return plain and not _AWK_CODE.search(code.replace("||", " "))


def _awk_line(words: tuple[str, ...]) -> Line:
    """awk takes its options before the program only."""
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        at += 2 if words[at] in ("-F", "-v") else 1
    head = read_line(words[:at], _AWK)
    if head.unknown or head.operands:
        return head
    if words[at : at + 1] == ("--",):
        at += 1
    rest = tuple((word, at + index) for index, word in enumerate(words[at:]))
    return Line(head.options, rest)


def jq(words: tuple[str, ...]) -> Effects:
    """What a jq command does."""
    plain: list[str] = [words[0]]
    reads: list[str] = []
    at = 1
    while at < len(words):
        if words[at] in ("--arg", "--argjson", "--slurpfile", "--rawfile") and at + 2 < len(words):
            reads += [words[at + 2]] if words[at].endswith("file") else []
            at += 3
        elif words[at] in ("--args", "--jsonargs"):
            return opaque("jq takes its further words as arguments", at)
        else:
            plain.append(words[at])
            at += 1
    line = read_line(tuple(plain), _JQ)
    if line.unknown:
        return unknown_word("jq", line)
    if not line.operands:
        return opaque("jq has no filter", len(words))
    program = line.operands[0][0]
    if _JQ_READS.search(program):
        return opaque("the jq filter may read other files or variables", line.operands[0][1])
    return Effects(reads=(*reads, *(name for name, _ in line.operands[1:])))
