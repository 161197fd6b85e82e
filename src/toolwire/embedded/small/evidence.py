"""Facts that follow a small model's reply: the lines of files and the output it was made from."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from toolwire.embedded.small.figures import marked_names, together
from toolwire.embedded.small.past import Ran, RequestKind, listed, visible
from toolwire.embedded.small.tools import KnownFiles, to_shown
from toolwire.wire.json_access import object_in

_MOST_OUTPUT = 400
"""Characters of a program's output that are quoted."""
_MOST_LINES = 4
_LONGEST_LINE = 200
_MOST_FOLLOWED = 2
_MOST_SEARCHED = 120
_COMMON = 4
"""A word in more lines than this does not tell one from another."""
_PLAIN = frozenset(
    re.findall(
        r"\w+",
        "the and for are was what which who whom whose where when why how does did has have had"
        " this that these those file files folder project line lines with from into our out its"
        " use used uses find show tell look read open see please name names value set get you"
        " can there many much say says all any some one two not but they them than then",
    )
)

_LOOKS = ("search_file_content", "glob", "list_directory")
_MOST_FOUND = 16
_numbered = re.compile(r"L\d+: ").match
_MOST_COMPARED = 8
_LONGEST_COMPARED = 240
_asks_difference = re.compile(
    r"\b(?:differ\w*|missing|both|common|not in|isn't in|compar\w*|versus|vs|duplicat\w*|overlap\w*"
    r"|same|lacks?|only in|but (?:\w+n't|not)|yet|(?:has|have|are|is)n't)\b",
    re.IGNORECASE,
).search
_asks_code = re.compile(r"\b(?:exit|return|status)\s*(?:code|status|value)\b", re.IGNORECASE).search
_asks_last = re.compile(r"\b(?:last|latest|newest|final|most recent)\b", re.IGNORECASE).search
_opens = re.compile(r"(?:[:{(\[,]|\\)\s*\Z|\A#+ ").search
_constants = re.compile(r"\b[A-Z][A-Z0-9_]{2,}\b").findall
_split_words = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])|\d[\d.]*").findall


class FileLines(NamedTuple):
    """Lines of a file."""

    path: str
    begin: int
    lines: tuple[str, ...]


def closing(
    reply: str, words: str, ran: Sequence[Ran], kind: RequestKind | None, project: KnownFiles
) -> str:
    """What follows the reply: what the last command printed, or the lines that it is about."""
    if kind is RequestKind.COMMAND:
        return _printed(reply, words, ran)
    if kind is RequestKind.QUESTION:
        if (looked := _looked(reply, words, ran, project)) is not None:
            return looked
        compared = _compared(words, ran, project)
        facts = f"\n\n{compared}" if compared and compared not in reply else ""
        return facts or "".join(_quoted(it) for it in _places(reply, words, ran, project))
    return ""


def absent(words: str, named: Sequence[str], project: KnownFiles) -> str:
    """A reply where a question names files and identifiers that none of them contains."""
    names = marked_names(words)
    texts = [project.text(path) for path in named]
    if not names or not texts or any(text is None for text in texts):
        return ""
    if any(contains(name, text or "") for name in names for text in texts):
        return ""
    missing = f"{listed(names)} {'does' if len(names) == 1 else 'do'} not occur in {listed(named)}."
    places = [
        _block(path, at, text)
        for path in project.files
        if (text := project.text(path))
        for at, line in enumerate(text.split("\n"))
        if any(contains(name, line) for name in names)
    ]
    return missing + "".join(map(_quoted, places[:_MOST_LINES]))


def referred(words: str, ran: Sequence[Ran], project: KnownFiles) -> list[str]:
    """Unread files that lines about the request refer to."""
    read = read_files(ran, project)
    wanted = _wanted(words)
    lines = [
        line
        for path in read
        for line in (project.text(path) or "").split("\n")
        if _words(line) & wanted
    ]
    text = "\n".join(lines)
    found = [
        path for path in project.files if path not in read and "." in path and _names(path, text)
    ]
    return found[:_MOST_FOLLOWED]


def covered(words: str, named: Sequence[str], ran: Sequence[Ran], project: KnownFiles) -> bool:
    """Whether what was read contains every word of the request that is in the project at all."""
    wanted = _wanted(words)
    read = read_files(ran, project)
    seen = _words("\n".join([*read, *(project.text(path) or "" for path in read)]))
    if not wanted & seen and not (named and {*named} <= {*read}):
        return False
    files = project.files[:_MOST_SEARCHED]
    known = _words("\n".join(project.text(path) or "" for path in files))
    return wanted & known <= seen


def _wanted(words: str) -> set[str]:
    return _words(re.sub(r"\S*[./]\S*\w", " ", words)) - _PLAIN


def _names(path: str, text: str) -> bool:
    name = re.escape(path.rpartition("/")[2])
    return re.search(rf"(?<![\w.-]){name}(?![\w-])", text) is not None


def contains(name: str, text: str) -> bool:
    """Whether a text contains an identifier, in any case and with any mark between its words."""
    parts = "[-_ ]?".join(map(re.escape, name.split("_")))
    return re.search(rf"(?<!\w){parts}(?!\w)", text, re.IGNORECASE) is not None


def _printed(reply: str, words: str, ran: Sequence[Ran]) -> str:
    made = [it for it in ran if it.call.name == "run_shell_command" and not it.refused]
    if not made:
        return ""
    last = made[-1]
    command = str((object_in(last.call.arguments) or {}).get("command", ""))
    output, code = last.output, last.exit_code
    found = ""
    lacking = [it for it in output.splitlines() if it.strip() and it.strip() not in reply]
    if lacking and len(output) <= _MOST_OUTPUT:
        found = f"\n\n`{command}` printed:\n```\n{output}\n```"
    asked = code or _asks_code(words)
    if asked and re.search(rf"(?<!\w){code}(?!\w)", reply) is None:
        found += f"\n\n`{command}` ended with exit code {code}."
    return found


def _looked(reply: str, words: str, ran: Sequence[Ran], project: KnownFiles) -> str | None:
    """What the last look found, where the reply leaves out some of it; None after other calls."""
    last = ran[-1] if ran else None
    if last is None or last.call.name not in _LOOKS or not last.succeeded:
        return None
    text = last.result.text.replace(f"{project.root}/", "").replace(project.root, ".")
    if last.call.name == "list_directory":
        text = visible(text, project, words)
    _, *found = text.partition("\n\n(")[0].splitlines()
    found = [it for it in found if it.strip() and it.strip("-")]
    names = [it.removeprefix("File: ").strip() for it in found if not _numbered(it)]
    bare = [it.partition(" (")[0].rstrip("/").rpartition("/")[2] for it in names]
    if len(found) > _MOST_FOUND or all(it in reply for it in bare):
        return ""
    return "\n\nFound:\n```\n{}\n```".format("\n".join(it[:_LONGEST_LINE] for it in found))


def pointers(words: str, ran: Sequence[Ran], project: KnownFiles) -> str:
    """The lines of what was read that a question is about, for the model; empty without any."""
    found = [
        f"{it.path}: {line.strip()}"
        for it in _about(words, ran, project)
        for line in it.lines
        if line.strip()
    ]
    texts = {path: project.text(path) or "" for path in read_files(ran, project)}
    facts = f"{_compared(words, ran, project)}\n{together(texts)}".strip()
    shown = "Lines about it:\n{}".format("\n".join(found)) if found else ""
    return "\n".join(filter(None, (shown, facts)))


def _compared(words: str, ran: Sequence[Ran], project: KnownFiles) -> str:
    """The lines that two files have in common and those of one only, where a question asks that."""
    read = read_files(ran, project)
    if len(read) != 2 or _asks_difference(words) is None:
        return ""
    one, other = (
        [line.strip().rstrip(",") for line in (project.text(path) or "").splitlines()]
        for path in read
    )
    groups = {
        f"Only in {read[0]}": [it for it in one if it not in other],
        f"Only in {read[1]}": [it for it in other if it not in one],
        "In both": [it for it in one if it in other],
    }
    found = {name: [it for it in dict.fromkeys(lines) if it] for name, lines in groups.items()}
    return "\n".join(
        f"{name}: {'; '.join(lines[:_MOST_COMPARED])[:_LONGEST_COMPARED]}"
        for name, lines in found.items()
        if lines and len(lines) <= _MOST_COMPARED
    )


def _places(reply: str, words: str, ran: Sequence[Ran], project: KnownFiles) -> Iterable[FileLines]:
    """The lines that a question is about, without those that the reply repeats."""
    found = _about(words, ran, project)
    return [it for it in found if not all(_known(line, reply) for line in it.lines)]


def _about(words: str, ran: Sequence[Ran], project: KnownFiles) -> list[FileLines]:
    """The lines of files that were read which share the rarest words with the request."""
    texts = {path: project.text(path) or "" for path in read_files(ran, project)}
    wanted = _wanted(words)
    rows = [
        (path, at, line, _words(line) & wanted)
        for path, text in texts.items()
        for at, line in enumerate(text.split("\n"))
    ]
    counts = Counter(word for row in rows for word in row[3])
    weights = [sum(1 / counts[word] for word in row[3] if counts[word] <= _COMMON) for row in rows]
    if not weights or not max(weights):
        return []
    best = [row for row, weight in zip(rows, weights, strict=True) if weight == max(weights)]
    path, at, _, _ = best[-1] if _asks_last(words) else best[0]
    place = _block(path, at, texts[path])
    return [place, *_joined(place, wanted, texts), *_defined(place, project)]


def _joined(place: FileLines, wanted: set[str], texts: Mapping[str, str]) -> Iterable[FileLines]:
    """The only line of another file that shares a word with the lines beyond the request's."""
    linking = _words("\n".join(place.lines)) - wanted - _PLAIN
    for path, text in texts.items():
        lines = text.split("\n") if path != place.path else []
        found = [at for at, line in enumerate(lines) if _words(line) & linking]
        if len(found) == 1:
            yield FileLines(path, found[0], (lines[found[0]][:_LONGEST_LINE],))


def read_files(ran: Sequence[Ran], project: KnownFiles) -> list[str]:
    """The files that were read, in order."""
    given = [
        to_shown("read_file", object_in(it.call.arguments) or {}, project.root).get("path", "")
        for it in ran
        if it.call.name == "read_file" and it.succeeded
    ]
    return [*dict.fromkeys(map(str, given))]


def _block(path: str, at: int, text: str) -> FileLines:
    """The line, with those behind it where it opens a block or a section."""
    lines = text.split("\n")
    end = at + 1
    if _opens(lines[at]):
        rest = [it for it in range(at + 1, len(lines)) if lines[it].strip()]
        end = rest[: _MOST_LINES - 1][-1] + 1 if rest else end
    return FileLines(path, at, tuple(line[:_LONGEST_LINE] for line in lines[at:end]))


def _defined(place: FileLines, project: KnownFiles) -> Iterable[FileLines]:
    """Where the constants in those lines are set."""
    for name in dict.fromkeys(_constants("\n".join(place.lines))):
        for path in project.files:
            for at, line in enumerate((project.text(path) or "").split("\n")):
                set_here = re.match(rf"\s*(?:export |const |let |var )*{name}\s*[:=]", line)
                if set_here and line not in place.lines:
                    yield FileLines(path, at, (line[:_LONGEST_LINE],))
                    return


def _known(line: str, reply: str) -> bool:
    """Whether the reply contains everything that the line says."""
    return all(word in reply.lower() for word in re.findall(r"\w+", line.lower()))


def _words(text: str) -> set[str]:
    found = {word.lower() for word in re.findall(r"[A-Za-z_]\w{2,}", text)}
    found |= {word.lower() for word in _split_words(text) if len(word) > 2}
    return found | {word[:-1] for word in found if word.endswith("s") and len(word) > 3}


def _quoted(place: FileLines) -> str:
    text = "\n".join(place.lines).strip("\n")
    return f"\n\n{place.path}, line {place.begin + 1}:\n```\n{text}\n```"
