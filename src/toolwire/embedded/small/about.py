"""What a request is about: its kind, the files that it names, and those to read for it."""

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from toolwire.embedded.small.past import RequestKind
from toolwire.embedded.small.tools import KnownFiles
from toolwire.embedded.small.wording import (
    about_project,
    is_order,
    is_question,
    removes,
    runs,
    starts_program,
)
from toolwire.request import JsonObject

MOST_READ = 4
"""Files that are read before a plan is made."""
MOST_SEARCHED = 120
"""Files in which the names of a request are looked up."""
LEAST_WORD = 4
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
moves_words = re.compile(r"\b(?:mv|move|rename|cp|copy|mkdir)\b", re.IGNORECASE).search
_wishes = re.compile(
    r"\b(?:should|must|shall|needs? to|has to|have to|ought to)\s+(?:now |also |both |all |only )*"
    r"(?:be|have|say|use|go|point|contain|print|return|get|show|accept|take|start|end|come|live"
    r"|become|not|match|log|include|ignore|allow|list|link|call|import|keep|stay)\b",
    re.IGNORECASE,
).search
_NAME = r"[`'\"]?(?P<name>[A-Za-z_]\w{2,})[`'\"]?(?:\(\))?"
_USES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:who|what|which (?!file\b)\w+) (?:calls?|uses?|imports?) {_NAME}\W*\Z",
        rf"\b(?:where|which files?|what files?) (?:is|are|do we|do|does|did)?\s*"
        rf"(?:the \w+ |use |call )?{_NAME} "
        r"(?:used|called|defined|set|imported|declared|implemented)\b",
        rf"\b(?:where|which files?|what files?) (?:do we |does it )?"
        rf"(?:uses?|calls?|imports?|defines?) {_NAME}\W*\Z",
    )
)
"""Questions about the uses or the definition of a name."""
_needs = re.compile(r"\b(?:i|we)\s+(?:need|want)\s+(?!to know)", re.IGNORECASE).search
searches = re.compile(
    r"\W*(?:please |can you |could you )*(?:find|search|grep|look|list|where|show"
    r"|(?:in )?(?:which|what) (?:files|pages|modules|scripts)|which page)\b",
    re.IGNORECASE,
).match
_enumerates = re.compile(
    r"\b(?:files|scripts|modules|pages|documents|folders|directories|tests)\b"
    r"|\b(?:which|what|any|a)\s+(?:\w+\s+)?(?:file|script|module|page|document)\b",
    re.IGNORECASE,
).search
goal = re.compile(
    r"(?:\b(?:into|to|as|named|called|name|file|create|make|write|save|new|add|it|need)\b)[\s`'\"]*\Z",
    re.IGNORECASE,
).search
_is_test = re.compile(r"test_\w+\.py|\w+_test\.(?:py|go)|[\w.-]+\.(?:test|spec)\.[jt]s").fullmatch


_ENDINGS = {
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "markdown": "md",
    "shell": "sh",
    "bash": "sh",
    "text": "txt",
    "yaml": "y*ml",
    "json": "json",
    "toml": "toml",
    "csv": "csv",
    "html": "html",
    "css": "css",
    "log": "log",
    "sql": "sql",
    "xml": "xml",
    "ini": "ini",
    "png": "png",
    "txt": "txt",
    "md": "md",
    "py": "py",
    "js": "js",
    "sh": "sh",
}
_kind_of_files = re.compile(
    r"(?:how many|which|what|any|all|every|the|list|find|count|number of|show|see|there a?)"
    r"\s+(?:me\s+|of\s+|the\s+|our\s+|all\s+|a\s+|any\s+)*"
    rf"(?:(?P<kind>{'|'.join(_ENDINGS)})|\*?\.(?P<ending>\w{{1,5}}))"
    r"[\s-]+(?:\w+\s+)?(?:files?|scripts?|modules?|pages?|documents?|tables?|images?)\b",
    re.IGNORECASE,
).search
_INSIDE = (
    r"\b(?:in|under|inside|within|below|ls|of)\s+(?:the\s+|our\s+)?[`'\"]?{}/?[`'\"]?(?!\w|\.\w)"
)
_here = re.compile(
    r"\b(?:(?:in|of) (?:this|the) (?:directory|folder|project|repo(?:sitory)?|root)|top[ -]level"
    r"|what(?:'s| is| do we have) here|(?:files|folders) (?:are |do we have )?here)\b|^\W*ls\W*$",
    re.IGNORECASE,
).search
_listing = re.compile(
    r"^\W*(?:please )?ls\b|\b(?:contents? of|what(?:'s| is) (?:in|inside)|list|inside|sub-?folders?"
    r"|sub-?director(?:y|ies)|folders|directories)\b",
    re.IGNORECASE,
).search
further = re.compile(
    r"\b(?:and|then)\s+(?:what|how|why|which|who|tell|explain|say|read)\b", re.IGNORECASE
).search


def asks_files(words: str) -> bool:
    """Whether a question is about files themselves, apart from those that it names."""
    return _enumerates(re.sub(r"\S*[./]\S*\w", " ", words)) is not None


def kind_of(words: str, answered: RequestKind | None, project: KnownFiles) -> RequestKind:
    """The kind of a request: a question never changes anything, deleting and moving is a change.

    A question that names a program to run is a command, one that has nothing to do with the project
    is talk.
    """
    names_files = any(mentions(words, project))
    if names_files and not is_question(words) and _wishes(words):
        return RequestKind.CHANGE
    if answered is RequestKind.TALK and mentions(words, project)[0]:
        answered = RequestKind.QUESTION
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
        changes = removes(words) or moves_words(words) or (names_files and is_order(words))
        return RequestKind.CHANGE if changes else answered
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
        if stem.isupper() and len(stem) >= LEAST_WORD:
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
        if (paths and (name in project.files or "." in name or "/" in bare or name.isupper())) or (
            paths and re.search(r"\b(?:folder|directory|dir)\b", words, re.IGNORECASE)
        ):
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
        for path in project.files[:MOST_SEARCHED]:
            defined = {name for pair in _defines.findall(texts(path)) for name in pair}
            if names & defined:
                found.append(path)
    if not found and change and re.search(r"\btests?\b", words, re.IGNORECASE):
        found += [path for path in project.files if _is_test(path.rpartition("/")[2])][:_MOST_ALIKE]
    if not found and not change and not searches(words) and not asks_files(words):
        found += _sharing(names, texts, project)[:_MOST_RELATED]
    if not found and change:
        marked = {name for name in names if "_" in name or not name[1:].islower()}
        makes = any(goal(words[: it.begin]) for it in absent)
        found += _sharing(marked or (set() if makes else names), texts, project)
    for path in found[:MOST_READ]:
        found += imported(path, texts(path), project)
    return [*dict.fromkeys(found)][:MOST_READ]


def first_looks(words: str, project: KnownFiles) -> list[tuple[str, JsonObject]]:
    """The calls that show the files, folders and kinds of files which a question names."""
    named = [it.path for it in mentions(words, project)[0]]
    folders = [path for path in named if path in project.folders]
    if not named and (used := _used_name(words, project)):
        return [("search_file_content", {"pattern": rf"\b{used}\b"})]
    if not named:
        folders = [it for it in project.folders if _within(it, words)]
    ending = _ending(words)
    if ending and not [it for it in named if it in project.files]:
        inside = f"{folders[0]}/" if len(folders) == 1 else ""
        return [("glob", {"pattern": f"{inside}**/*.{ending}"})]
    read = [path for path in named if path in project.files]
    if not lists(words) or read:
        read = to_read(words, project, change=False)
    if _here(words) and not read and not folders:
        folders = ["."]
    found = [("read_file", it) for it in read]
    found += [("list_directory", it) for it in dict.fromkeys(folders)]
    return [(name, {"path": path}) for name, path in found[:MOST_READ]]


def _used_name(words: str, project: KnownFiles) -> str:
    """The name whose uses or definition a question asks for, if it is in the project."""
    for pattern in _USES:
        found = pattern.search(words)
        if found is not None and _occurs(found["name"], project):
            return found["name"]
    return ""


def _occurs(name: str, project: KnownFiles) -> bool:
    texts = (project.text(path) or "" for path in project.files[:MOST_SEARCHED])
    return any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)


def lists(words: str) -> bool:
    """Whether a question is answered by the names of files alone."""
    return (asks_files(words) or _listing(words) is not None) and further(words) is None


def _within(folder: str, words: str) -> bool:
    """Whether the request speaks of a folder by its plain name."""
    return re.search(_INSIDE.format(re.escape(folder.rpartition("/")[2])), words, re.I) is not None


def _ending(words: str) -> str:
    """The ending of the files that a question enumerates; empty if it names no kind of files."""
    found = _kind_of_files(words)
    if found is None or further(words):
        return ""
    kind = (found["kind"] or found["ending"]).lower()
    return _ENDINGS.get(kind, kind if found["ending"] or kind in _ENDINGS.values() else "")


def search_word(words: str, project: KnownFiles, without: Iterable[str]) -> str:
    """The rarest word of the request that occurs in the project; empty without one."""
    texts = _Texts(project)
    counts: Counter[str] = Counter()
    names = {name for name in _names(words) if name not in without}
    for path in project.files[:MOST_SEARCHED]:
        counts.update(names & {*re.findall(r"\w+", texts(path))})
    return min(counts, key=lambda name: (counts[name], -len(name)), default="")


def _sharing(names: set[str], texts: "_Texts", project: KnownFiles) -> list[str]:
    """Files that contain the names, those with the rarer names first."""
    wanted = {name.lower() for name in names}
    files = project.files[:MOST_SEARCHED]
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
        if len(word) >= LEAST_WORD and word.lower() not in plain
    }


def imported(path: str, text: str, project: KnownFiles) -> list[str]:
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
