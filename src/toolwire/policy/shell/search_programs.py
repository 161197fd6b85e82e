"""grep, ripgrep, fd and find: programs that walk folders."""

import msgspec

from toolwire.policy.shell.effects import (
    Effects,
    Line,
    of_line,
    opaque,
    read_line,
    syntax,
    unknown_word,
)
from toolwire.policy.shell.syntax import names

FOUND = "{}"
_GREP = syntax(
    """-# -EFGPiwxzsvbnHhoqaIrRLlcTZUuyVp --extended-regexp --fixed-strings --basic-regexp
    --perl-regexp --ignore-case --no-ignore-case --word-regexp --line-regexp --null-data
    --no-messages --invert-match --byte-offset --line-number --line-buffered --with-filename
    --no-filename --only-matching --quiet --silent --text --recursive --dereference-recursive
    --files-without-match --files-with-matches --count --initial-tab --null --no-group-separator
    --binary --color?T --colour?T -e=T --regexp=T -f=R --file=R -m=T --max-count=T --label=T
    --binary-files=T --include=T --exclude=T
    --exclude-from=R --exclude-dir=T -B=T --before-context=T -A=T --after-context=T -C=T
    --context=T --group-separator=T | T*"""
)
_RG = syntax(
    """-# -aFHIhiLlNnoPpqSsUuvwxz0c.b --text --fixed-strings --with-filename --no-filename
    --ignore-case --files-with-matches --files-without-match --no-line-number --line-number
    --only-matching --pcre2 --pretty --quiet --smart-case --case-sensitive --multiline
    --multiline-dotall --unrestricted --invert-match --word-regexp --line-regexp --count
    --count-matches --column --no-column --heading --no-heading --hidden --no-hidden --no-ignore
    --no-ignore-vcs --no-ignore-parent --no-ignore-global --no-ignore-dot --files --json --stats
    --trim --null --follow --no-follow --vimgrep --no-messages --byte-offset --passthru
    --one-file-system --no-config --no-require-git --glob-case-insensitive --type-list --crlf
    --include-zero --debug --line-buffered --block-buffered --null-data --no-unicode --no-mmap
    --max-columns-preview --sort-files --version -A=T -B=T -C=T --after-context=T
    --before-context=T --context=T -e=T --regexp=T -f=R --file=R -g=T --glob=T --iglob=T -t=T
    --type=T -T=T --type-not=T --type-add=T -m=T --max-count=T -d=T --max-depth=T --maxdepth=T
    -M=T --max-columns=T --max-filesize=T -j=T --threads=T -r=T --replace=T --sort=T --sortr=T
    --color=T --colors=T -E=T --encoding=T --context-separator=T --path-separator=T --engine=T
    --field-match-separator=T --field-context-separator=T --ignore-file=R --dfa-size-limit=T
    --regex-size-limit=T --hyperlink-format=T | T*"""
)
_FD = syntax(
    """-HIuaplsigF01qh --hidden --no-ignore --no-ignore-vcs --unrestricted --absolute-path
    --full-path --list-details --case-sensitive --ignore-case --glob --fixed-strings
    --print0 --regex --quiet --show-errors --prune --strip-cwd-prefix?T --one-file-system -d=T
    --max-depth=T --min-depth=T --exact-depth=T -t=T --type=T -e=T --extension=T -E=T --exclude=T
    -S=T --size=T --changed-within=T --changed-before=T -o=T --owner=T -c=T --color=T -j=T
    --threads=T --max-results=T --format=T | T*"""
)
_TESTS = names("""
    -empty -true -false -nouser -nogroup -readable -writable -executable -daystart -depth -mount
    -noleaf -xdev -nowarn -warn -ignore_readdir_race -noignore_readdir_race -print -print0 -ls
    -prune -quit -o -or -a -and -not ! ( ) , -d""")
_TESTS_WITH_VALUE = names("""
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -regextype
    -type -xtype -maxdepth -mindepth -amin -atime -cmin -ctime -mmin -mtime -size -perm -user
    -group -uid -gid -links -inum -used -fstype -printf -newermt
    -newerct -newerat -newermm -newerBt""")
_TESTS_WITH_FILE = names("-newer -anewer -cnewer -samefile")
_WRITES = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}


def grep(words: tuple[str, ...]) -> Effects:
    """What a grep command does."""
    line = read_line(words, _GREP)
    if line.unknown:
        return unknown_word("grep", line)
    found = of_line("grep", line, _GREP)
    files = _without_pattern(line, "-e", "--regexp", "-f", "--file")
    follows = line.has("-R", "--dereference-recursive")
    walks = follows or line.has("-r", "--recursive")
    if not walks:
        return msgspec.structs.replace(found, reads=(*found.reads, *files))
    return msgspec.structs.replace(found, trees=files or (".",), follows=follows)


def rg(words: tuple[str, ...]) -> Effects:
    """What a ripgrep command does."""
    line = read_line(words, _RG)
    if line.unknown:
        return unknown_word("rg", line)
    found = of_line("rg", line, _RG)
    names_only = line.has("--files", "--type-list")
    files = tuple(text for text, _ in line.operands)
    if not names_only:
        files = _without_pattern(line, "-e", "--regexp", "-f", "--file")
    found = msgspec.structs.replace(found, words=(words[0], "--no-config", *words[1:]))
    if names_only and not line.has("-L", "--follow"):
        return msgspec.structs.replace(found, reads=(*found.reads, *files))
    return msgspec.structs.replace(found, trees=files or (".",), follows=line.has("-L", "--follow"))


def fd(words: tuple[str, ...]) -> Effects:
    """What an fd command does."""
    line = read_line(words, _FD)
    if line.unknown:
        return unknown_word("fd", line)
    return Effects(reads=tuple(text for text, _ in line.operands[1:]))


def _without_pattern(line: Line, *instead: str) -> tuple[str, ...]:
    files = tuple(text for text, _ in line.operands)
    return files if line.has(*instead) else files[1:]


def find(words: tuple[str, ...]) -> Effects:
    """What a find command does; what it starts is in `runs`, with `{}` for each file found."""
    at = 1
    follows = False
    while at < len(words) and words[at] in ("-L", "-H", "-P", "-O1", "-O2", "-O3"):
        follows = follows or words[at] == "-L"
        at += 1
    starts: list[str] = []
    while at < len(words) and not words[at].startswith("-") and words[at] not in "()!,":
        starts.append(words[at])
        at += 1
    runs: list[tuple[str, ...]] = []
    writes: list[str] = []
    compared: list[str] = []
    while at < len(words):
        word = words[at]
        if word in _TESTS:
            at += 1
        elif word in _TESTS_WITH_VALUE and at + 1 < len(words):
            at += 2
        elif word in _TESTS_WITH_FILE and at + 1 < len(words):
            compared.append(words[at + 1])
            at += 2
        elif word == "-follow":
            follows = True
            at += 1
        elif word in _WRITES and at + _WRITES[word] < len(words):
            writes.append(words[at + 1])
            at += 1 + _WRITES[word]
        elif word == "-exec" and (end := _end_of_command(words, at)):
            runs.append(words[at + 1 : end])
            at = end + 1
        else:
            return opaque(f"{word[:40]} of find is not known, or runs something", at)
    starts_at = tuple(starts) or (".",)
    return Effects(
        reads=(*starts_at, *compared),
        follows=follows,
        writes=tuple(writes),
        runs=tuple(runs),
        trees=starts_at if follows else (),
    )


def _end_of_command(words: tuple[str, ...], at: int) -> int:
    """The index of the `;` or `+` that ends an `-exec`; 0 without one."""
    for end in range(at + 2, len(words)):
        if words[end] == ";" or (words[end] == "+" and words[end - 1] == FOUND):
            return end
    return 0
