"""The words of one command → its effects, by the tables."""

import re
from collections.abc import Iterator

import msgspec

from toolwire.policy.shell import git, programs, runners
from toolwire.policy.shell.effects import (
    NOTHING,
    Effects,
    Line,
    of_line,
    opaque,
    read_line,
    syntax,
    unknown_word,
)
from toolwire.policy.shell.parser import prove
from toolwire.policy.shell.programs import CHANGES, READS, REMOVES, VERSIONS, WRITES
from toolwire.policy.shell.runners import STARTERS, inner
from toolwire.policy.shell.syntax import Script, names

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


_COUNTS = re.compile(r"%[^A-Za-z(]*[hlLjztq]*n")
_SET = re.compile(r"[-+][eux]+\Z|[-+][eux]*o\Z|pipefail\Z|errexit\Z|nounset\Z|xtrace\Z")
_SPECIAL = {
    "git": git.effects,
    "sed": sed,
    "gsed": sed,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), awk),
    "jq": jq,
    **dict.fromkeys(("grep", "egrep", "fgrep", "zgrep"), programs.grep),
    "rg": programs.rg,
    **dict.fromkeys(("fd", "fdfind"), programs.fd),
    "find": programs.find,
}
_ANYTHING = names("echo true false : expr")
BUILTINS = names("echo printf true false : test [ cd pwd exit set type command ulimit umask kill")
"""Commands of the shell itself, whatever a folder on the search path contains."""
_PS = """-AadefFljLmwxH --forest --no-headers --headers -p=T -o=T -C=T -u=T -U=T -t=T --sort=T
    --ppid=T --pid=T | T"""
_SYSTEM_FOLDERS = (
    "/bin/",
    "/usr/bin/",
    "/usr/local/bin/",
    "/sbin/",
    "/usr/sbin/",
    "/opt/homebrew/bin/",
)


def program_name(word: str) -> str:
    """The name in the tables of a program, also with a folder of the system."""
    for folder in _SYSTEM_FOLDERS:
        if word.startswith(folder) and "/" not in word[len(folder) :]:
            return word[len(folder) :]
    return word


def effects_of(words: tuple[str, ...]) -> Effects:
    """Effects of a command; one that is in no table is not `known`."""
    name = program_name(words[0])
    if not re.fullmatch(r"[\w+./:@%,\[-]+", name, re.ASCII):
        return opaque(f"the command name {ascii(words[0])[:60]} has unusual characters")
    named = (name, *words[1:])
    found = _version(named) or _effects_of(named)
    if found.words is not None and name != words[0]:
        return msgspec.structs.replace(found, words=(words[0], *found.words[1:]))
    return found


def _version(words: tuple[str, ...]) -> Effects | None:
    """A question for the version of a program."""
    if len(words) != 2:
        return None
    name, option = runners.family(words[0]), words[1]
    asks = (
        (option == "--version" and (words[0] in VERSIONS or name in VERSIONS))
        or (option == "-V" and name == "python")
        or (option == "-v" and words[0] in ("node", "npm", "npx", "ruby", "php"))
        or (option == "-version" and words[0] in ("java", "javac"))
    )
    return NOTHING if asks else None


def _effects_of(words: tuple[str, ...]) -> Effects:
    name = words[0]
    if name in _ANYTHING:
        return NOTHING
    if name in _SPECIAL:
        return _SPECIAL[name](words)
    if name in _SHELL_OWN:
        return _SHELL_OWN[name](words)
    if name in READS:
        return _reading(words)
    if name in WRITES:
        return _plain(words, WRITES[name])
    if name in REMOVES:
        return _plain(words, REMOVES[name])
    if name in CHANGES:
        return _changing(words)
    if name in ("bash", "sh") and words[1:2] == ("-c",) and len(words) == 3:
        return Effects(known=False, changes="it runs a shell", script=words[2])
    if runners.family(name) in runners.FAMILIES:
        return runners.interpreter_effects(words)
    if name in STARTERS:
        return _starting(words)
    if name in runners.CODE:
        return runners.code(words)
    if name in runners.RUNNERS:
        return runners.effects(words)
    return Effects(known=False)


def _reading(words: tuple[str, ...]) -> Effects:
    known = syntax(READS[words[0]])
    line = read_line(words, known)
    found = of_line(words[0], line, known)
    if words[0] in ("less", "more") and any(word.startswith("+") for word in words):
        return opaque(f"{words[0]} is given a command to run")
    if words[0] == "date" and any(not text.startswith("+") for text, _ in line.operands):
        return msgspec.structs.replace(found, changes="it sets the clock")
    if words[0] == "diff":
        # A folder means the files in it, and links among them are followed.
        return msgspec.structs.replace(found, follows=True)
    if words[0] == "strings" and any(text.startswith("@") for text, _ in line.operands):
        return opaque("strings reads its options from a file")
    if words[0] == "ls" and line.has("-L", "--dereference") and line.has("-R", "--recursive"):
        return opaque("ls follows links out of its folders")
    return found


def _plain(words: tuple[str, ...], table: str) -> Effects:
    """A program that writes or removes the files it is given."""
    known = syntax(table)
    line = read_line(words, known)
    folders = [each.value for each in line.options if each.name in ("-t", "--target-directory")]
    if folders:
        # Every operand is a source then.
        known = syntax(table.rpartition(" W")[0])
    found = of_line(words[0], line, known)
    if found.opaque or words[0] not in ("cp", "mv", "install"):
        return found
    sources = [text for text, _ in line.operands]
    if not folders and sources:
        folders = [sources.pop()]
    # Into a folder, a file keeps its name.
    inside = tuple(
        f"{folder.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}"
        for folder in folders
        for source in sources
    )
    found = msgspec.structs.replace(found, writes=(*found.writes, *inside))
    if words[0] != "cp":
        return found
    if line.has("-r", "-R", "-a", "--recursive", "--archive"):
        return msgspec.structs.replace(found, changes="it copies whole folders")
    found = msgspec.structs.replace(found, reads=(*found.reads, *found.trees), trees=())
    if line.has("-d", "-P", "--no-dereference", "-l", "-s", "--link", "--symbolic-link"):
        return msgspec.structs.replace(found, changes="it makes links")
    return found


def _changing(words: tuple[str, ...]) -> Effects:
    reason, table = CHANGES[words[0]]
    words = _with_dash(words) if words[0] == "tar" else words
    known = syntax(table)
    line = read_line(words, known)
    found = of_line(words[0], line, known)
    if found.opaque:
        return found
    if words[0] in ("tar", "unzip", "zip") and _lists(words[0], line):
        return Effects(reads=(*found.reads, *found.writes))
    if words[0] in ("tar", "unzip") and not line.has("-c", "--create", "-r"):
        return opaque("what an archive contains may replace protected files", 1)
    if words[0] in ("curl", "wget") and any("file:" in word.lower() for word in words):
        return opaque(f"{words[0]} reads a file as an address")
    for each in line.options:
        if each.value.startswith("@") or "%output" in each.value:
            return opaque(f"{words[0]} sends or writes a file", each.at)
    if words[0] == "curl" and any(mark in word for word in words for mark in "{[#"):
        return opaque("curl is given a pattern of addresses")
    return msgspec.structs.replace(found, changes=reason)


def _with_dash(words: tuple[str, ...]) -> tuple[str, ...]:
    """`tar xzf a` is `tar -xzf a`."""
    if len(words) < 2 or not re.fullmatch(r"[A-Za-z]+", words[1]):
        return words
    return (words[0], f"-{words[1]}", *words[2:])


def _lists(name: str, line: Line) -> bool:
    """Whether an archive is only listed or printed."""
    if name == "tar":
        return line.has("-t", "--list") and not line.has("-x", "-c", "--extract", "--create", "-r")
    return name == "unzip" and line.has("-l", "-v", "-t", "-p")


def _starting(words: tuple[str, ...]) -> Effects:
    if words[0] == "command" and words[1:2] in (("-v",), ("-V",)):
        return NOTHING
    found = inner(words)
    if isinstance(found, Effects):
        return found
    if not found.words:
        return NOTHING if words[0] == "env" and not found.assignments else opaque("nothing to run")
    return Effects(
        runs=(found.words,),
        runs_at=found.at,
        assigns=found.assignments,
        fed=words[0] == "xargs",
        changes="it runs with other rights" if words[0] == "sudo" else "",
    )


def _cd(words: tuple[str, ...]) -> Effects:
    rest = [word for word in words[1:] if word not in ("-L", "-P", "--")]
    if not rest:
        return Effects(folder="~")
    if len(rest) > 1 or rest[0].startswith("-"):
        return opaque("where cd leads is not known")
    return Effects(folder=rest[0])


def _set(words: tuple[str, ...]) -> Effects:
    if len(words) > 1 and all(_SET.match(word) for word in words[1:]):
        return NOTHING
    return opaque("it changes how the shell works")


def _test(words: tuple[str, ...]) -> Effects:
    if any(word in ("-v", "-R") for word in words):
        return opaque("it tests a variable by name, which may run a command")
    return NOTHING


def _printf(words: tuple[str, ...]) -> Effects:
    """printf of the shell sets variables by `-v` and by `%n`."""
    if any(word.startswith("-v") or _COUNTS.search(word.replace("%%", "")) for word in words[1:]):
        return opaque("printf sets a variable")
    return NOTHING


def _ps(words: tuple[str, ...]) -> Effects:
    line = read_line(words, syntax(_PS))
    shows = names("aux axu ax auxw auxww axf auxf a x u")
    formats = [each.value for each in line.options if each.name == "-o"]
    if any(text not in shows for text, _ in line.operands) or any(
        "env" in each for each in formats
    ):
        return opaque("it may show the variables of other processes")
    return of_line("ps", line, syntax(_PS))


def _dd(words: tuple[str, ...]) -> Effects:
    """`dd if=… of=…`: what it overwrites is lost."""
    read = tuple(word[3:] for word in words[1:] if word.startswith("if="))
    written = tuple(word[3:] for word in words[1:] if word.startswith("of="))
    return Effects(reads=read, removes=written, changes="it copies bytes")


_SHELL_OWN = {
    "dd": _dd,
    "cd": _cd,
    "set": _set,
    "test": _test,
    "[": _test,
    "printf": _printf,
    "ps": _ps,
}


def inner_commands(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A command and every command that its words start."""
    yield words
    found = effects_of(words)
    for inner_words in found.runs:
        yield from inner_commands(inner_words)
    script = prove(found.script) if found.script is not None else None
    if isinstance(script, Script):
        for command in script.commands():
            if command.words:
                yield from inner_commands(tuple(word.text for word in command.words))
