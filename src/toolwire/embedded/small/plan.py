"""The plan of a change: the files a request names, and the steps it needs, checked against both."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatch
from itertools import pairwise
from shlex import quote
from typing import Any

import msgspec

from toolwire.embedded.small import edits
from toolwire.embedded.small.past import RequestKind
from toolwire.embedded.small.programs import fails, is_check
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
from toolwire.policy.shell import Unproven, prove
from toolwire.policy.shell.commands import effects_of, inner_commands
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
_MOST_RELATED = 2
"""Files that are read because they share words with a question."""
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
_new_name = re.compile(r"\b(?:renam\w+|call|called|named)\b", re.IGNORECASE).search
_renames_words = re.compile(r"\b(?:mv|move|name)\b", re.IGNORECASE).search
_copies_words = re.compile(r"\b(?:cp|copy|duplicate|backup|back up)\b", re.IGNORECASE).search
_becomes = re.compile(
    r"[\s`'\"]*(?:(?:file|should|must|shall|has|needs|to|be|is|now|renamed|called|named|moved|copied"
    r"|into|as|it|->|=>|→)[\s`'\"]+)*",
    re.IGNORECASE,
).fullmatch
_everywhere = re.compile(
    r"\b(?:imports?|references?|everywhere|wherever|all|uses?|used|project)\b", re.IGNORECASE
).search
_changes_test = re.compile(
    r"\b(?:change|update|edit|correct|adjust|rewrite|add|write|fix) (?:the |a |its )?"
    r"(?:(?!failing|broken)\w+ )?tests?\b(?! (?:fail|pass|run))"
    r"|\b(?:fix|correct|change|update) (?:test_|[\w/]+_test\.)",
    re.IGNORECASE,
).search
_ORDERS = (
    r"(?:set|change|update|add|fix|correct|mention|replace|remove|delete|adjust|document|note|put|write"
    r"|append|insert|import|use|print|call|pass|make|list|link|show|say|bump|raise|lower|increase"
    r"|decrease|double|halve|do the same|edit|extend)"
)
_clause_end = re.compile(
    rf"(?:[.;](?=\s)|,?\s+(?:and|then)(?:\s+(?:also|then|please))*(?=\s+{_ORDERS}\b)|,(?=\s+{_ORDERS}\b))",
    re.IGNORECASE,
)
_order = re.compile(rf"(?:also |then |please |pls )*{_ORDERS}\b", re.IGNORECASE).match
_needs = re.compile(r"\b(?:i|we)\s+(?:need|want)\s+(?!to know)", re.IGNORECASE).search
searches = re.compile(
    r"\W*(?:please |can you |could you )*(?:find|search|grep|look|list|where|show"
    r"|(?:in )?(?:which|what) (?:files|pages|modules|scripts)|which page)\b",
    re.IGNORECASE,
).match
asks_files = re.compile(
    r"\b(?:files|scripts|modules|pages|documents|folders|directories|tests)\b"
    r"|\b(?:which|what|any|a)\s+(?:\w+\s+)?(?:file|script|module|page|document)\b",
    re.IGNORECASE,
).search
_goal = re.compile(
    r"(?:\b(?:into|to|as|named|called|name|file|create|make|write|save|new|add|it|need)\b)[\s`'\"]*\Z",
    re.IGNORECASE,
).search
_from = re.compile(r"\b(?:from|of|read|open|take|copy|convert|use|using)[\s`'\"]*\Z", re.I).search
_alters = re.compile(
    r"\b(?:chang\w+|replac\w+|renam\w+|fix\w*|updat\w+|edit|remov\w+|delet\w+|drop|set|insert"
    r"|append|mention|link|import\w*|correct|mov\w+|call|use"
    r"|add(?! (?:up|together|the (?:number|amount))))\b",
    re.IGNORECASE,
).search
_aside = re.compile(
    r"\b(?:from|of|read|open|run|start|execute|with|by|like|see|using|than|per)[\s`'\"]*\Z", re.I
).search
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
        rf"{_OLD}\s+(?:should|must|shall|has to|have to|needs? to)\s+(?:now\s+)?"
        rf"(?:go|point|link|lead|refer|become|say|read)\s+(?:to\s+)?{_NEW}",
    )
)
"""Phrases that name a text and what replaces it."""
_KEY = r"(?P<key>[\"'`]?[A-Za-z_][\w.-]*[\"'`]?)"
_ASSIGNMENTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_KEY}(?:\s+(?:setting|value|key|option|field|constant|variable|entry))?"
        rf"(?:\s+(?:in|of)\s+[\w./-]+)?(?:\s+from\s+{_TERM})?\s+to\s+(?:be\s+)?{_NEW}",
        rf"{_KEY}\s*(?:=|:)\s*{_NEW}",
        rf"{_KEY}(?:\s+(?:in|of)\s+[\w./-]+)?\s+(?:should|must|shall|has to|needs to)\s+"
        rf"(?:now\s+)?be\s+(?:set to\s+)?{_NEW}",
        rf"\bmake\s+(?:the\s+)?{_KEY}\s+{_NEW}",
    )
)
"""Phrases that name a setting and its new value."""
_ends_term = re.compile(
    r"\s*(?:\Z|[.,;:!?)(\n]|(?:in|and|or|everywhere|across|throughout|instead|for|then|on|at|wherever"
    r"|please|pls|thanks|thx|within|inside|but|from|so|there|too|of|if|as|now|to|with|where)\b)",
    re.IGNORECASE,
).match
_NUMBER = r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)"
_FACTORS = tuple(
    (re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE).search, factor)
    for pattern, factor in ((r"doubl\w+", 2.0), (r"tripl\w+", 3.0), (r"halv\w+|half", 0.5))
)
_by_amount = re.compile(
    r"\b(?:(?P<up>increas\w*|rais\w*|bump|add|extend)|(?P<down>decreas\w*|reduc\w*|lower|cut))\b"
    r"(?:[^.;\n]|\.(?=\w))*?\bby (?P<amount>\d+(?:\.\d+)?)(?P<percent>\s?%| percent)?",
    re.IGNORECASE,
).search
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
    if not found and (change or not searches(words)):
        for path in project.files[:_MOST_SEARCHED]:
            defined = {name for pair in _defines.findall(texts(path)) for name in pair}
            if names & defined:
                found.append(path)
    if not found and change and re.search(r"\btests?\b", words, re.IGNORECASE):
        found += [path for path in project.files if _is_test(path.rpartition("/")[2])][:_MOST_ALIKE]
    if not found and not change and not searches(words) and not asks_files(words):
        found += _sharing(names, texts, project)[:_MOST_RELATED]
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
    only_new = any(_goal(words[: it.begin]) for it in absent) and not _alters(words)
    sources = {it.path for it in present if new and (only_new or _is_source(it, words))}
    for step in _code_not_checks(steps, words, project):
        if step.path in sources and step.do in (StepKind.EDIT, StepKind.SUBSTITUTE):
            continue
        if step.to in made and step.do in (StepKind.MOVE, StepKind.COPY) and not moving:
            continue
        if moving and step.do is StepKind.CREATE and step.path in targets:
            continue
        for it in _allowed(step, words, project, [mention.path for mention in present]):
            if it not in found:
                found.append(it)
    found = [it for it in found if not _elsewhere(it, found, project)]
    found = _renamed(found, words, present, absent)
    found += _missing(found, words, project, present, absent)
    return tuple(_same_number(found, project))[:MOST_STEPS]


def _elsewhere(step: PlanStep, steps: Sequence[PlanStep], project: KnownFiles) -> bool:
    """Whether an edit only repeats a substitution whose text is not in its file."""
    if step.do is not StepKind.EDIT:
        return False
    text = project.text(step.path) or ""
    olds = {it.old for it in steps if it.do is StepKind.SUBSTITUTE}
    return any(old in step.what and old not in text for old in olds)


def _code_not_checks(
    steps: Sequence[PlanStep], words: str, project: KnownFiles
) -> Iterable[PlanStep]:
    """The steps; where a check fails, the code that it checks is changed, not the check."""
    if not fails(words) or _changes_test(words):
        yield from steps
        return
    for step in steps:
        text = project.text(step.path) or ""
        changes = step.do in (StepKind.EDIT, StepKind.SUBSTITUTE)
        if not changes or not is_check(step.path, text):
            yield step
            continue
        code = [it for it in _imported(step.path, text, project) if not is_check(it, "")]
        if code and not any(it.path in code for it in steps):
            yield PlanStep(do=StepKind.EDIT, path=code[0], what=words[:_LONGEST_WHAT])


def _renamed(
    steps: list[PlanStep], words: str, present: list[Mention], absent: list[Mention]
) -> list[PlanStep]:
    """The steps; a new name that follows a file's name is a move or a copy, not an edit."""
    for one in present:
        for other in absent:
            between = words[one.end : other.begin]
            if other.begin < one.end or _becomes(between) is None:
                continue
            copies = _copies_words(words) is not None
            if not copies and not _new_name(words) and not _renames_words(words):
                continue
            kind = StepKind.COPY if copies else StepKind.MOVE
            moved = [it for it in steps if it.path == one.path and it.do is kind]
            if moved or (copies and len(steps) > 1):
                continue
            gone = (one.path, other.path)
            steps = [
                PlanStep(do=kind, path=one.path, to=other.path),
                *(it for it in steps if it.path not in gone and it.to not in gone),
            ]
    return steps


def _same_number(steps: Sequence[PlanStep], project: KnownFiles) -> Iterable[PlanStep]:
    """The steps; where one changes a number, an edit of a text with that number changes it too."""
    pairs = [
        (old[0], new[0])
        for step in steps
        if step.do is StepKind.SUBSTITUTE
        and len(old := re.findall(_NUMBER, step.old)) == 1
        and len(new := re.findall(_NUMBER, step.new)) == 1
        and re.sub(_NUMBER, "", step.old) == re.sub(_NUMBER, "", step.new)
    ]
    for step in steps:
        text = project.text(step.path) or ""
        fits = [it for it in pairs if re.findall(_NUMBER, text).count(it[0]) == 1]
        if step.do is StepKind.EDIT and len(fits) == 1 and fits[0][1] not in text:
            old, new = fits[0]
            yield PlanStep(do=StepKind.SUBSTITUTE, path=step.path, old=old, new=new)
        else:
            yield step


def _is_source(mention: Mention, words: str) -> bool:
    """Whether the request only takes something from the file."""
    before, behind = words[: mention.begin], words[mention.end :]
    return _from(before) is not None or _onwards(behind) is not None


def _allowed(
    step: PlanStep, words: str, project: KnownFiles, named: list[str]
) -> Iterable[PlanStep]:
    match step.do:
        case StepKind.SUBSTITUTE:
            yield from _computed(step, words, project) or _substitution(step, project, named)
        case StepKind.EDIT:
            computed = _computed(step, words, project) or _assigned(step, step.what, project)
            literal = _literal(step, words, project) or _literal(step, step.what, project)
            yield from computed or (literal or step,)
        case StepKind.CREATE if (exact := _exact(step.path, words, project)) != step.path:
            yield from _allowed(msgspec.structs.replace(step, path=exact), words, project, named)
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
            found = step.command if runs(words) else _writing(step.command, words, project)
            if found and not forbidden(step.command, words, project):
                yield msgspec.structs.replace(step, command=found)
        case StepKind.LOOK | StepKind.READ | StepKind.OTHER:
            yield step


def _exact(path: str, words: str, project: KnownFiles) -> str:
    """The path of a new file as the request names it: in no folder that is not in the request."""
    folder, _, name = path.rpartition("/")
    spoken = any(re.search(rf"\b{re.escape(it)}\b", words) for it in folder.split("/") if it)
    absent = [it.path for it in mentions(words, project)[1]]
    return name if folder and not spoken and name in absent else path


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
            if match["new"][0] not in "\"'`" and not _is_term(match, words):
                continue
            if _settings(old, text) and not _new_name(words):
                # Its value changes, not its name.
                continue
            vague = _is_vague(old, text)
            after = edits.substitute(text, old, new)
            if after == text or vague or edits.substitute(text, new, old) != text:
                continue
            if not edits.damage(step.path, text, after):
                return PlanStep(do=StepKind.SUBSTITUTE, path=step.path, old=old, new=new)
    return None


def _computed(step: PlanStep, words: str, project: KnownFiles) -> list[PlanStep]:
    """The step as substitutions, where the request says which values there shall be."""
    scaled = _scaled(step, words, project)
    return [scaled] if scaled is not None else _assigned(step, words, project)


def _assigned(step: PlanStep, words: str, project: KnownFiles) -> list[PlanStep]:
    """Substitutions of the lines that set values, where the request names keys and values."""
    text = project.text(step.path) or ""
    found: dict[str, PlanStep] = {}
    if _new_name(words) or re.search(r"\bmov(?:e|ing)\b", words, re.IGNORECASE):
        return []
    name = step.path.rpartition("/")[2]
    only = text.strip()
    if only and "\n" not in only and (match := _set_file(name, words)):
        value = _unquoted(match["new"])
        return [PlanStep(do=StepKind.SUBSTITUTE, path=step.path, old=only, new=value)]
    for pattern in _ASSIGNMENTS:
        for match in pattern.finditer(words):
            key, value = _unquoted(match["key"]), _unquoted(match["new"])
            if match["new"][0] not in "\"'`" and _ends_term(words[match.end("new") :]) is None:
                continue
            lines = _settings(key, text)
            if len(lines) != 1 or value in project.files:
                continue
            before, old, behind = lines[0]
            new = _like_value(old, value, step.path)
            line = f"{before}{old}{behind}"
            after = text.replace(line, f"{before}{new}{behind}")
            if new != old and text.count(line) == 1 and not edits.damage(step.path, text, after):
                fresh = f"{before}{new}{behind}".strip()
                one = PlanStep(do=StepKind.SUBSTITUTE, path=step.path, old=line.strip(), new=fresh)
                found.setdefault(line, one)
    return [*found.values()]


def _set_file(name: str, words: str) -> re.Match[str] | None:
    """The value that a file of one line shall have."""
    return re.search(
        rf"(?<![\w/]){re.escape(name)}\s+(?:file\s+)?(?:from\s+{_TERM}\s+)?to\s+{_NEW}"
        r"(?=\s*(?:\Z|[.,;!?]|and\b|pls|please|thanks))",
        words,
        re.IGNORECASE,
    )


def _settings(key: str, text: str) -> list[tuple[str, str, str]]:
    """The lines that set a key: what is before the value, the value, and what is behind it."""
    if not re.fullmatch(r"[\w.-]+", key):
        return []
    found = re.findall(
        rf"^([ \t]*(?:export |const |let |var |- )*[\"']?{re.escape(key)}[\"']?[ \t]*[:=][ \t]*)"
        r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s,;#{}\[\](]+)([,;}\]]*[ \t]*(?:[#/].*)?)$",
        text,
        re.MULTILINE | re.IGNORECASE,
    )
    return [(str(it[0]), str(it[1]), str(it[2])) for it in found]


def _like_value(old: str, value: str, path: str) -> str:
    """The value in the quotes of the one it replaces."""
    if old[0] in "\"'":
        return f"{old[0]}{value}{old[0]}"
    plain = re.fullmatch(r"-?\d+(?:\.\d+)?|true|false|null|True|False|None", value) is not None
    quoted = path.endswith((".json", ".toml", ".py", ".js", ".ts")) and not plain
    return f'"{value}"' if quoted else value


def _is_term(match: re.Match[str], words: str) -> bool:
    """Whether the new text is a word of its own, not the beginning of a description."""
    behind = words[match.end("new") :]
    return match.start("new") < match.start("old") or _ends_term(behind) is not None


def _scaled(step: PlanStep, words: str, project: KnownFiles) -> PlanStep | None:
    """The step with the number computed, where the request says by how much to change one."""
    by = _factor(words)
    if by is None:
        return None
    names = {word.lower() for word in re.findall(r"[A-Za-z]{3,}", words.replace("_", " "))}
    best: dict[str, int] = {}
    for line in (project.text(step.path) or "").split("\n"):
        if len(re.findall(_NUMBER, line)) == 1:
            shared = names & {*re.findall(r"[a-z]{3,}", line.replace("_", " ").lower())}
            best[line] = len(shared)
    top = [line for line, count in best.items() if count and count == max(best.values())]
    if len(top) != 1:
        return None
    new = re.sub(_NUMBER, lambda it: f"{by(float(it[0])):.10g}", top[0])
    return PlanStep(do=StepKind.SUBSTITUTE, path=step.path, old=top[0].strip(), new=new.strip())


def _factor(words: str) -> Callable[[float], float] | None:
    """What the request does to a number: doubles it, raises it by ten, cuts it by a tenth."""
    for pattern, factor in _FACTORS:
        if pattern(words):
            return factor.__mul__
    found = _by_amount(words)
    if found is None:
        return None
    amount = float(found["amount"]) * (-1 if found["down"] else 1)
    if found["percent"]:
        return (1 + amount / 100).__mul__
    return amount.__add__


def _writing(command: str, words: str, project: KnownFiles) -> str:
    """A command that only reads the project and writes what the request names; else empty.

    Where the request names no new file, the result takes the place of the only file it reads.
    """
    script = prove(command)
    if isinstance(script, Unproven):
        return ""
    read: set[str] = set()
    written: set[str] = set()
    for one in script.commands():
        written |= {it.target.text for it in one.redirects if ">" in it.operator}
        for inner in inner_commands(tuple(word.text for word in one.words)):
            effects = effects_of(inner)
            if not effects.known or effects.opaque or effects.changes or effects.removes:
                return ""
            read |= {*effects.reads}
            written |= {*effects.writes}
    present, absent = mentions(words, project)
    if len(written) != 1 or read & written or not read <= {*project.files}:
        return ""
    target = next(iter(written))
    if is_named(target, words):
        return command
    source = next(iter(read))
    alone = len(read) == 1 and not absent and source in {it.path for it in present}
    if not alone or target in project.files or project.text(target) is not None:
        return ""
    return f"{command} && mv -- {quote(target)} {quote(source)}"


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
    if re.fullmatch(r"\.\w+", bare):
        bare = f"*{bare}"
    if "*" not in bare:
        return []
    same = [it for it in project.files if fnmatch(it, bare) and it.count("/") == bare.count("/")]
    return same or [it for it in project.files if fnmatch(it.rpartition("/")[2], bare)]


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
        added += _imports_of(step, words, project, touched)
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
    known = touched | {it.path for it in added}
    for it in present:
        clause = _ordered(it, words)
        is_file = it.path in project.files and not is_check(it.path, project.text(it.path) or "")
        if clause and found and it.path not in known and is_file:
            known.add(it.path)
            step = PlanStep(do=StepKind.EDIT, path=it.path, what=clause[:_LONGEST_WHAT])
            added += _allowed(step, clause, project, [it.path])
    for it in absent:
        made = it.path in touched or it.path in commands
        made = made or any(path.endswith(f"/{it.path}") for path in touched)
        if (
            (found or any(_is_source(one, words) or not _alters(words) for one in present))
            and not made
            and _goal(words[: it.begin])
        ):
            added.append(PlanStep(do=StepKind.CREATE, path=it.path, what=words[:_LONGEST_WHAT]))
    return added


def _ordered(mention: Mention, words: str) -> str:
    """The part of the request that orders a change of the file; empty if none does."""
    begin = 0
    for found in _clause_end.finditer(words):
        if found.start() >= mention.end:
            part = words[begin : found.start()]
            break
        begin = found.end()
    else:
        part = words[begin:]
    part = part.strip()
    if begin == 0 or _aside(words[: mention.begin]) or not _order(part):
        return ""
    return part.rstrip(".")


def _imports_of(
    step: PlanStep, words: str, project: KnownFiles, touched: set[str]
) -> Iterable[PlanStep]:
    """Substitutions in files that import a module which gets another name."""
    old, new = (it.rpartition("/")[2].rpartition(".")[0] for it in (step.path, step.to))
    if not step.path.endswith((".py", ".js", ".ts")) or old == new or not new:
        return
    named = {it.path for it in mentions(words, project)[0]}
    for path in project.files[:_MOST_SEARCHED]:
        text = project.text(path) or ""
        uses = step.path in _imported(path, text, project)
        if uses and path not in touched and (path in named or _everywhere(words)):
            yield PlanStep(do=StepKind.SUBSTITUTE, path=path, old=old, new=new)


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
