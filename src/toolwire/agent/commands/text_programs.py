"""sed and awk: languages of their own that can run commands and write files."""

import re

import msgspec

from toolwire.agent.commands.inside import Inside, hiding
from toolwire.agent.commands.values import Access, Command, Redirect, Word

NAMES = frozenset({"sed", "gsed", "awk", "gawk", "mawk", "nawk"})
_ADDRESS = r"(?:[0-9]+|\$|/(?:\\.|[^/\\\n])*/I?)"
_SED_SCRIPT = re.compile(
    rf"(?:{_ADDRESS}(?:,(?:\+?[0-9]+|{_ADDRESS}))?!?)?\s*"
    r"(?:[pdqD=]|s(?P<mark>[/|,#@:!])(?:\\.|(?!(?P=mark))[^\\])*(?P=mark)(?:\\.|(?!(?P=mark))[^\\])*(?P=mark)[gpiI0-9]*)\Z",
    re.DOTALL,
)
_AWK_DOES_MORE = re.compile(r"system|\||>|getline|@|close\s*\(|ENVIRON|print\s*-")


def look(command: Command) -> Inside:
    """Whether the script only transforms text."""
    return _sed(command) if command.root.endswith("sed") else _awk(command)


def _sed(command: Command) -> Inside:
    scripts: list[tuple[int, Word]] = []
    files: list[Word] = []
    access = Access.READ
    words = command.words
    at = 1
    while at < len(words):
        word = words[at]
        if word.pipe:
            at += 1
            continue
        if not word.static:
            return hiding(command, "what sed does is known only when it runs", at)
        if word.text in ("-e", "--expression") and at + 1 < len(words):
            scripts.append((at + 1, words[at + 1]))
            at += 1
        elif re.match(r"-i|--in-place", word.text) or re.match(r"-[nErsuz]+i", word.text):
            access = Access.WRITE
            if "/" in word.text or "*" in word.text:
                return hiding(command, "sed keeps a copy elsewhere", at)
        elif word.text.startswith("-") and not re.match(
            r"-[nErsuz]+\Z|--quiet\Z|--silent\Z", word.text
        ):
            return hiding(command, "sed is used with options that are not read", at)
        elif not word.text.startswith("-"):
            files.append(word)
        at += 1
    if not scripts and files:
        script = files.pop(0)
        scripts.append((words.index(script), script))
    for position, script in scripts:
        if not _SED_SCRIPT.match(script.text):
            return hiding(command, "the sed script may run or write something", position)
    return Inside(
        command=command,
        named=tuple(Redirect(access, file, command.source) for file in files),
    )


def _awk(command: Command) -> Inside:
    words = command.words
    at = 1
    while at < len(words) and words[at].static and words[at].text.startswith("-"):
        text = words[at].text
        if not re.match(r"-[Fv]", text):
            return hiding(command, "awk is used with options that are not read", at)
        at += 2 if len(text) == 2 else 1
    if at >= len(words):
        return hiding(command, "what awk does is known only when it runs")
    if not words[at].static or _AWK_DOES_MORE.search(words[at].text):
        return hiding(command, "the awk program may run or write something", at)
    files = tuple(Redirect(Access.READ, word, command.source) for word in words[at + 1 :])
    return Inside(command=msgspec.structs.replace(command), named=files)
