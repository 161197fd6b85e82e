"""The plan of a change: the files a request names, and the steps it needs, checked against both."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatch
from itertools import pairwise
from shlex import quote
from typing import Any

import msgspec

from toolwire.embedded.small import edits
from toolwire.embedded.small.past import RequestKind
from toolwire.embedded.small.tools import (
    KnownFiles,
    about_project,
    forbidden,
    is_named,
    is_order,
    is_question,
    removes,
    runs,
    starts_program,
)
from toolwire.prompted.json import closed_object
from toolwire.request import JsonObject

MOST_STEPS = 8
"""Steps of one plan."""
MOST_READ = 4
"""Files that are read before a plan is made."""
_MOST_SEARCHED = 120
"""Files in which the names of a request are looked up."""
_LONGEST_WHAT = 160
_LEAST_WORD = 4
_LEAST_MATERIAL = 200
"""Characters before the last paragraph, from which they are text to work on."""
_LONGEST_ORDER = 400
_MOST_ALIKE = 3
"""Files that are read because they share words with the request."""

_PUNCTUATION = ".,;:!?()[]{}\"'`“”‘’<>"
_path_like = re.compile(r"(?:[\w@.-]+/)*[\w@.-]*\.[A-Za-z]\w{0,7}").fullmatch
_defines = re.compile(
    r"^\s*(?:async |export |public |default )*(?:def|class|function|func|fn)\s+(\w+)|^(\w+)\s*=",
    re.MULTILINE,
)
_imports = re.compile(
    r"^\s*(?:from\s+(\.*[\w.]+)\s+import|import\s+([\w.]+)|.*?(?:from|require\()\s*['\"](\.[^'\"]+))",
    re.MULTILINE,
)
_moves_words = re.compile(r"\b(?:mv|move|rename|cp|copy|mkdir)\b", re.IGNORECASE).search
_needs = re.compile(r"\b(?:i|we)\s+(?:need|want)\s+(?!to know)", re.IGNORECASE).search
_searches = re.compile(
    r"\W*(?:please |can you |could you )*(?:find|search|grep|look|list|where|show"
    r"|(?:in )?(?:which|what) (?:files|pages|modules|scripts)|which page)\b",
    re.IGNORECASE,
).match
_goal = re.compile(
    r"(?:\b(?:into|to|as|named|called|name|file|create|make|write|save|new|add|it|need)\b)[\s`'\"]*\Z",
    re.IGNORECASE,
).search
_from = re.compile(r"\b(?:from|of|read|open|take|copy|convert|use|using)[\s`'\"]*\Z", re.I).search
_onwards = re.compile(r"[\s`'\",]*(?:and |then )*(?:into|to|write|save|put|store)\b", re.I).match
_TERM = r"(?:\"[^\"\n]+\"|'[^'\n]+'|`[^`\n]+`|[\w.#/+-]*[\w#])"
_OLD, _NEW = rf"(?P<old>{_TERM})", rf"(?P<new>{_TERM})"
_EXCHANGES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:rename|replace|change|exchange|swap)\b[^.;\n]*?{_OLD}\s+(?:to|into|with|by)\s+{_NEW}",
        rf"\bfrom\s+{_OLD}\s+to\s+{_NEW}",
        rf"{_OLD}\s*(?:->|=>|→)\s*{_NEW}",
        rf"{_OLD}\s+(?:should|must|shall|has to|needs to|will)\s+(?:now\s+)?be"
        rf"(?:\s+(?:called|named|renamed(?:\s+to)?|changed\s+to|replaced\s+(?:by|with)))?\s+{_NEW}",
        rf"\b{_NEW}\s+instead\s+of\s+{_OLD}",
    )
)
"""Phrases that name a text and what replaces it."""
_is_test = re.compile(r"test_\w+\.py|\w+_test\.(?:py|go)|[\w.-]+\.(?:test|spec)\.[jt]s").fullmatch
_joined = re.compile(
    r"[\s`'\",]*(?:,|&|\+|\band\b|\band in\b|\band to\b|\bas well as\b|\band also in\b)"
    r"[\s`'\"]*(?:in |to |the |file )*[\s`'\"]*"
).fullmatch


class StepKind(StrEnum):
    """What a step does."""

    SUBSTITUTE = "substitute"
    EDIT = "edit"
    CREATE = "create"
    DELETE = "delete"
    MOVE = "move"
    COPY = "copy"
    FOLDER = "folder"
    RUN = "run"
    LOOK = "look"
    READ = "read"
    OTHER = "other"
    """Something that only a tool from elsewhere can do."""


class PlanStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a plan."""

    do: StepKind
    path: str = ""
    to: str = ""
    old: str = ""
    new: str = ""
    what: str = ""
    command: str = ""


class _Plan(msgspec.Struct):
    steps: list[PlanStep]


read_plan = msgspec.json.Decoder(_Plan).decode


def plan_schema(project: KnownFiles, *, look: bool, other: bool) -> JsonObject:
    """The form of a plan: files that exist are choices."""
    file: JsonObject = {"type": "string", "maxLength": 120}
    if project.files and not project.more:
        file = {"type": "string", "enum": list(project.files)}
    path: JsonObject = {"type": "string", "maxLength": 120}
    words: JsonObject = {"type": "string", "maxLength": _LONGEST_WHAT}
    forms: list[JsonObject] = [
        _form(StepKind.CREATE, path=path, what=words),
        _form(StepKind.FOLDER, path=path),
        _form(StepKind.RUN, command=words),
    ]
    if project.files:
        forms += [
            _form(StepKind.READ, path=file),
            _form(StepKind.SUBSTITUTE, old=words, new=words, path=file),
            _form(StepKind.EDIT, path=file, what=words),
            _form(StepKind.DELETE, path=path),
            _form(StepKind.MOVE, path=path, to=path),
            _form(StepKind.COPY, path=path, to=path),
        ]
        if look:
            forms.append(_form(StepKind.LOOK, what=words))
    if other:
        forms.append(_form(StepKind.OTHER, what=words))
    steps: JsonObject = {"type": "array", "items": {"anyOf": forms}, "minItems": 1, "maxItems": 6}
    return closed_object({"steps": steps})


def _form(kind: StepKind, **members: Any) -> JsonObject:
    return closed_object({"do": {"const": kind.value}, **members})


def kind_of(words: str, answered: RequestKind | None, project: KnownFiles) -> RequestKind:
    """The kind of a request: a question never changes anything, deleting and moving is a change.

    A question that names a program to run is a command, one that has nothing to do with the project
    is talk.
    """
    if answered in (RequestKind.QUESTION, RequestKind.TALK) and not is_order(words):
        if starts_program(words):
            return RequestKind.COMMAND
        if answered is RequestKind.QUESTION and _is_general(words, project):
            return RequestKind.TALK
    if answered is None or (answered is RequestKind.CHANGE and is_question(words)):
        return RequestKind.QUESTION
    needs = _needs(words) is not None and bool(mentions(words, project)[1])
    if answered is RequestKind.QUESTION and (is_order(words) or needs):
        return RequestKind.CHANGE
    if answered is RequestKind.COMMAND and not is_question(words) and not runs(words):
        return RequestKind.CHANGE if removes(words) or _moves_words(words) else answered
    return answered


def _is_general(words: str, project: KnownFiles) -> bool:
    """Whether a question has names, and none of them is anywhere in the project."""
    names = {name.lower() for name in _names(words)}
    if about_project(words) or not names or project.more:
        return False
    texts = _Texts(project)
    return not any(
        names & {*re.findall(r"\w+", f"{path} {texts(path)}".lower())} for path in project.files
    )


def instruction(words: str) -> str:
    """What is asked: the last paragraph of a request that follows other text, as in a pipe."""
    material, gap, last = words.strip().rpartition("\n\n")
    return (
        last if gap and len(material) >= _LEAST_MATERIAL and len(last) <= _LONGEST_ORDER else words
    )


class Mention(msgspec.Struct, frozen=True):
    """A path in a request, and where it is."""

    path: str
    begin: int
    end: int


def mentions(words: str, project: KnownFiles) -> tuple[list[Mention], list[Mention]]:
    """The paths that the request names: those that exist, and those that do not."""
    known: dict[str, list[str]] = {}
    for file in (*project.files, *project.folders):
        for name in {file, file.rpartition("/")[2]}:
            known.setdefault(name, []).append(file)
    for file in project.files:
        stem = file.rpartition("/")[2].partition(".")[0]
        if stem.isupper() and len(stem) >= _LEAST_WORD:
            known.setdefault(stem, [file])
    found: list[Mention] = []
    absent: list[Mention] = []
    for token in re.finditer(r"\S+", words):
        bare = token[0].strip(_PUNCTUATION.replace(".", "")).rstrip(".").removeprefix("./")
        bare = re.sub(r"['’]s\Z", "", bare)
        name = bare.rstrip("/")
        begin = token.start() + max(token[0].find(bare), 0)
        here = Mention(name, begin, begin + len(bare))
        paths = known.get(name, [])
        if (
            paths and (name in project.files or "." in name or bare.endswith("/") or name.isupper())
        ) or (paths and re.search(r"\b(?:folder|directory|dir)\b", words, re.IGNORECASE)):
            found += [msgspec.structs.replace(here, path=path) for path in paths]
        elif not paths and _path_like(name):
            (absent if project.text(name) is None else found).append(here)
    return found, absent


def to_read(words: str, project: KnownFiles, *, change: bool = True) -> list[str]:
    """Files that belong to the request: named, defining a name it uses, or imported by those.

    For a change without any of these, the files that share the most of its rarer words.
    """
    present, absent = mentions(words, project)
    found = [it.path for it in present if it.path not in project.folders]
    texts = _Texts(project)
    names = _names(words)
    if not found and (change or not _searches(words)):
        for path in project.files[:_MOST_SEARCHED]:
            defined = {name for pair in _defines.findall(texts(path)) for name in pair}
            if names & defined:
                found.append(path)
    if not found and change and re.search(r"\btests?\b", words, re.IGNORECASE):
        found += [path for path in project.files if _is_test(path.rpartition("/")[2])][:_MOST_ALIKE]
    if not found and change:
        marked = {name for name in names if "_" in name or not name[1:].islower()}
        makes = any(_goal(words[: it.begin]) for it in absent)
        found += _sharing(marked or (set() if makes else names), texts, project)
    for path in found[:MOST_READ]:
        found += _imported(path, texts(path), project)
    return [*dict.fromkeys(found)][:MOST_READ]


def first_looks(words: str, project: KnownFiles) -> list[tuple[str, str]]:
    """The files and folders that a question names, each with the tool that shows it."""
    folders = [it.path for it in mentions(words, project)[0] if it.path in project.folders]
    listed = [("list_directory", path) for path in dict.fromkeys(folders)]
    return [*(("read_file", it) for it in to_read(words, project, change=False)), *listed][
        :MOST_READ
    ]


def search_word(words: str, project: KnownFiles, without: Iterable[str]) -> str:
    """The rarest word of the request that occurs in the project; empty without one."""
    texts = _Texts(project)
    counts: Counter[str] = Counter()
    names = {name for name in _names(words) if name not in without}
    for path in project.files[:_MOST_SEARCHED]:
        counts.update(names & {*re.findall(r"\w+", texts(path))})
    return min(counts, key=lambda name: (counts[name], -len(name)), default="")


def _sharing(names: set[str], texts: "_Texts", project: KnownFiles) -> list[str]:
    """Files that contain the names, those with the rarer names first."""
    wanted = {name.lower() for name in names}
    files = project.files[:_MOST_SEARCHED]
    inside = {
        path: wanted & {*re.findall(r"\w+", f"{path} {texts(path)}".lower())} for path in files
    }
    counts = Counter(name for some in inside.values() for name in some)
    weights = {path: sum(1 / counts[name] for name in some) for path, some in inside.items()}
    best = sorted((path for path in files if weights[path]), key=lambda path: -weights[path])
    return best[:_MOST_ALIKE]


class _Texts:
    """Texts of files, each read once."""

    def __init__(self, project: KnownFiles) -> None:
        self._project = project
        self._found: dict[str, str] = {}

    def __call__(self, path: str) -> str:
        if path not in self._found:
            self._found[path] = self._project.text(path) or ""
        return self._found[path]


def _names(words: str) -> set[str]:
    plain = {"this", "that", "file", "name", "names", "line", "lines", "value", "main", "test"}
    plain |= {
        "what",
        "which",
        "where",
        "when",
        "does",
        "from",
        "with",
        "have",
        "into",
        "about",
        "stand",
    }
    plain |= {
        "many",
        "much",
        "mean",
        "means",
        "there",
        "would",
        "could",
        "should",
        "please",
        "tell",
    }
    plain |= {"show", "give", "find", "letters", "letter", "just", "good", "your", "most", "than"}
    return {
        word
        for word in re.findall(r"(?<![\w./])[A-Za-z_]\w+(?![\w/]|\.\w)", words)
        if len(word) >= _LEAST_WORD and word.lower() not in plain
    }


def _imported(path: str, text: str, project: KnownFiles) -> list[str]:
    """Files of the project that a code file imports."""
    folder = path.rpartition("/")[0]
    found: list[str] = []
    for match in _imports.finditer(text):
        dotted = str(match[1] or match[2] or "").lstrip(".").replace(".", "/")
        base = dotted or str(match[3]).removeprefix("./").removesuffix(".js")
        for start in {f"{folder}/" if folder else "", ""}:
            options = (f"{start}{base}{end}" for end in (".py", ".js", ".ts", "/__init__.py"))
            found += [it for it in options if it in project.files and it != path]
    return found


def checked(steps: Sequence[PlanStep], words: str, project: KnownFiles) -> tuple[PlanStep, ...]:
    """The steps that the request allows, with those that it names and the plan lacks."""
    present, absent = mentions(words, project)
    found: list[PlanStep] = []
    moving = _moves_words(words) is not None
    targets = {step.to for step in steps}
    made = {step.path for step in steps if step.do is StepKind.CREATE}
    new = made or any(_goal(words[: it.begin]) for it in absent)
    sources = {it.path for it in present if new and _is_source(it, words)}
    for step in steps:
        if step.path in sources and step.do in (StepKind.EDIT, StepKind.SUBSTITUTE):
            continue
        if step.to in made and step.do in (StepKind.MOVE, StepKind.COPY) and not moving:
            continue
        if moving and step.do is StepKind.CREATE and step.path in targets:
            continue
        for it in _allowed(step, words, project, [mention.path for mention in present]):
            if it not in found:
                found.append(it)
    found += _missing(found, words, project, present, absent)
    return tuple(found[:MOST_STEPS])


def _is_source(mention: Mention, words: str) -> bool:
    """Whether the request only takes something from the file."""
    before, behind = words[: mention.begin], words[mention.end :]
    return _from(before) is not None or _onwards(behind) is not None


def _allowed(
    step: PlanStep, words: str, project: KnownFiles, named: list[str]
) -> Iterable[PlanStep]:
    match step.do:
        case StepKind.SUBSTITUTE:
            yield from _substitution(step, project, named)
        case StepKind.EDIT:
            yield _literal(step, words, project) or _literal(step, step.what, project) or step
        case StepKind.CREATE if project.text(step.path) is not None:
            if (project.text(step.path) or "").strip():
                yield msgspec.structs.replace(step, do=StepKind.EDIT)
            else:
                yield step
        case StepKind.CREATE:
            if step.path.strip("./") and not step.path.startswith(("/", "~", "../")):
                yield step
        case StepKind.DELETE:
            yield from _deletions(step, words, project)
        case StepKind.MOVE | StepKind.COPY:
            yield from _moves(step, words, project)
        case StepKind.FOLDER:
            if step.path.rstrip("/") not in project.folders:
                yield step
        case StepKind.RUN:
            if runs(words) and not forbidden(step.command, words, project):
                yield step
        case StepKind.LOOK | StepKind.READ | StepKind.OTHER:
            yield step


def _substitution(step: PlanStep, project: KnownFiles, named: list[str]) -> Iterable[PlanStep]:
    """The substitution, or an edit where its text does not occur or may mean too much."""
    paths = [step.path]
    if not any(path in project.files for path in named) and re.fullmatch(r"\w+", step.old):
        paths += [path for path in project.files[:_MOST_SEARCHED] if path != step.path]
    for path in paths:
        text = project.text(path) or ""
        after = edits.substitute(text, step.old, step.new)
        vague = _is_vague(step.old, text)
        if text != after and not vague and not edits.damage(path, text, after):
            yield msgspec.structs.replace(step, path=path)
        elif path == step.path:
            what = f"put {step.new} in the place of {step.old}"
            if step.old == step.new:
                what = f"set {step.new}"
            yield PlanStep(do=StepKind.EDIT, path=path, what=what)


def _literal(step: PlanStep, words: str, project: KnownFiles) -> PlanStep | None:
    """A substitution, where the request names the old and the new text word for word."""
    text = project.text(step.path) or ""
    for pattern in _EXCHANGES:
        for match in pattern.finditer(words):
            old, new = (_unquoted(match[name]) for name in ("old", "new"))
            vague = _is_vague(old, text)
            after = edits.substitute(text, old, new)
            if after == text or vague or edits.substitute(text, new, old) != text:
                continue
            if not edits.damage(step.path, text, after):
                return PlanStep(do=StepKind.SUBSTITUTE, path=step.path, old=old, new=new)
    return None


def _is_vague(old: str, text: str) -> bool:
    """Whether a short word or a number occurs several times and may mean different things."""
    short = len(old) < _LEAST_WORD or re.fullmatch(r"[\d.]+", old) is not None
    return short and len(re.findall(rf"(?<!\w){re.escape(old)}(?!\w)", text)) > 1


def _unquoted(text: str) -> str:
    return text.strip("\"'`").rstrip(".,;:!?")


def _deletions(step: PlanStep, words: str, project: KnownFiles) -> Iterable[PlanStep]:
    """What is deleted must exist, and the request must say so and name it."""
    if not removes(words):
        return
    for path in _matching(step.path, project):
        if is_named(path, words) or is_named(step.path, words):
            yield msgspec.structs.replace(step, path=path)


def _moves(step: PlanStep, words: str, project: KnownFiles) -> Iterable[PlanStep]:
    """What is moved or copied must exist and be named; nothing is overwritten."""
    paths = _matching(step.path, project)
    for path in paths:
        name = path.rpartition("/")[2]
        into = step.to.endswith("/") or step.to in project.folders or len(paths) > 1
        to = f"{step.to.rstrip('/')}/{name}" if into else step.to
        if "/" in path and to.endswith(f"/{path}") and to not in words:
            # Into a folder, not with the folders it was in.
            to = to.removesuffix(path) + name
        if to in project.files or to == path or to.startswith(("/", "~", "..")):
            continue
        if is_named(path, words) or is_named(step.path, words):
            yield msgspec.structs.replace(step, path=path, to=to)


def _matching(path: str, project: KnownFiles) -> list[str]:
    bare = path.removeprefix("./").rstrip("/")
    if bare in project.files or bare in project.folders:
        return [bare]
    ends = [it for it in project.files if it.endswith(f"/{bare}")]
    if len(ends) == 1:
        return ends
    if "*" not in bare:
        return []
    return [it for it in project.files if fnmatch(it, bare) and it.count("/") == bare.count("/")]


def _missing(
    found: list[PlanStep],
    words: str,
    project: KnownFiles,
    present: list[Mention],
    absent: list[Mention],
) -> list[PlanStep]:
    """Steps for files that the request names and the plan does not touch."""
    touched = {path for step in found for path in (step.path, step.to)}
    added: list[PlanStep] = []
    for step in found:
        if step.do is not StepKind.MOVE or "/" in step.path.rstrip("/"):
            continue
        for it in present:
            text = project.text(it.path) or ""
            if it.path not in touched and edits.substitute(text, step.path, step.to) != text:
                kind = StepKind.SUBSTITUTE
                added.append(PlanStep(do=kind, path=it.path, old=step.path, new=step.to))
    changing = [it for it in found if it.do in (StepKind.SUBSTITUTE, StepKind.EDIT)]
    for one, other in pairwise(present):
        if _joined(words[one.end : other.begin]) is None:
            continue
        for step in changing:
            pair = {one.path, other.path}
            rest = pair - {step.path}
            if step.path in pair and not rest & {*touched, *(it.path for it in added)}:
                added += _like(step, rest, project)
    commands = " ".join(step.command for step in found)
    for it in absent:
        made = it.path in touched or it.path in commands
        made = made or any(path.endswith(f"/{it.path}") for path in touched)
        if (
            (found or any(_is_source(one, words) for one in present))
            and not made
            and _goal(words[: it.begin])
        ):
            added.append(PlanStep(do=StepKind.CREATE, path=it.path, what=words[:_LONGEST_WHAT]))
    return added


def _like(step: PlanStep, paths: Iterable[str], project: KnownFiles) -> Iterable[PlanStep]:
    for path in paths:
        if project.text(path) is not None:
            moved = msgspec.structs.replace(step, path=path)
            yield from _substitution(moved, project, [path]) if step.old else (moved,)


def command_for(step: PlanStep) -> str:
    """The shell command of a step; never one that overwrites."""
    path, to = quote(step.path), quote(step.to)
    folder = step.to.rpartition("/")[0]
    made = f"mkdir -p {quote(folder)} && " if folder else ""
    match step.do:
        case StepKind.DELETE:
            return f"rm -r -- {path}"
        case StepKind.MOVE:
            return f"{made}mv -n -- {path} {to}"
        case StepKind.COPY:
            return f"{made}cp -n -r -- {path} {to}"
        case StepKind.FOLDER:
            return f"mkdir -p -- {path}"
        case _:
            return step.command
