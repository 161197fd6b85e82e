"""Values that a request names: texts to exchange, settings to assign, numbers to compute."""

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from toolwire.embedded.small import edits, parsing
from toolwire.embedded.small.about import LEAST_WORD, MOST_SEARCHED, imported
from toolwire.embedded.small.steps import PlanStep, StepKind
from toolwire.embedded.small.tools import KnownFiles

new_name = re.compile(r"\b(?:renam\w+|call|called|named)\b", re.IGNORECASE).search
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
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}|(?<!\w)([A-Z][A-Z_]{2,})(?!\w)")
_throughout = re.compile(
    r"\b(?:across|everywhere|wherever|throughout|where (?:it|they) (?:is|are) (?:used|called)"
    r"|(?:whole|entire) project|all (?:files|places|uses|usages|occurrences|callers))\b",
    re.IGNORECASE,
).search
_NOT_LISTS = (
    ".py",
    ".js",
    ".ts",
    ".sh",
    ".json",
    ".toml",
    ".yaml",
    ".yml",
    ".ini",
    ".html",
    ".css",
)
_repeated_lines = re.compile(
    r"\b(?:duplicat\w+|repeated|double) (?:lines?|entr\w+|rows?|names?|words?|items?)\b"
    r"|\bduplicates\b|\bdedup\w*",
    re.IGNORECASE,
).search
_sorted_lines = re.compile(
    r"\b(?:sort|order)\b(?:[^.;\n]|\.(?=\w))*?"
    r"\b(?:alphabetic\w*|a(?: |-)?(?:to |-)?z|lines|names|entries)\b"
    r"(?:[^.;\n]|\.(?=\w))*?(?P<down>\b(?:descending|reverse\w*|z(?: |-)?(?:to |-)?a)\b)?[\s.!]*\Z",
    re.IGNORECASE,
).search
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


def same_number(steps: Sequence[PlanStep], project: KnownFiles) -> Iterable[PlanStep]:
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


def substitution(
    step: PlanStep, words: str, project: KnownFiles, named: list[str]
) -> Iterable[PlanStep]:
    """The substitution, or an edit where its text does not occur or may mean too much.

    A name is exchanged in all files if the request names none or says so, and in those that import
    it.
    """
    paths = [step.path]
    if re.fullmatch(r"\w{3,}", step.old):
        others = [path for path in project.files[:MOST_SEARCHED] if path != step.path]
        if any(path in project.files for path in named) and not _throughout(words):
            others = [it for it in others if _imports_name(it, step, project)]
        paths += others
    for path in paths:
        text = project.text(path) or ""
        after = edits.substitute(text, step.old, step.new)
        vague = _is_vague(step.old, text)
        if text != after and not vague and not parsing.damage(path, text, after):
            yield msgspec.structs.replace(step, path=path)
        elif path == step.path:
            what = f"put {step.new} in the place of {step.old}"
            if step.old == step.new:
                what = f"set {step.new}"
            yield PlanStep(do=StepKind.EDIT, path=path, what=what)


def _imports_name(path: str, step: PlanStep, project: KnownFiles) -> bool:
    text = project.text(path) or ""
    return step.old in text and step.path in imported(path, text, project)


def literal(step: PlanStep, words: str, project: KnownFiles) -> PlanStep | None:
    """A substitution, where the request names the old and the new text word for word."""
    text = project.text(step.path) or ""
    for pattern in _EXCHANGES:
        for match in pattern.finditer(words):
            old, new = (_unquoted(match[name]) for name in ("old", "new"))
            if match["new"][0] not in "\"'`" and not _is_term(match, words):
                continue
            if _settings(old, text) and not new_name(words):
                # Its value changes, not its name.
                continue
            vague = _is_vague(old, text)
            after = edits.substitute(text, old, new)
            if after == text or vague or edits.substitute(text, new, old) != text:
                continue
            if not parsing.damage(step.path, text, after):
                return PlanStep(do=StepKind.SUBSTITUTE, path=step.path, old=old, new=new)
    return None


def computed(step: PlanStep, words: str, project: KnownFiles) -> list[PlanStep]:
    """The step as substitutions, where the request says which values there shall be."""
    found = _scaled(step, words, project) or _rearranged(step, words, project)
    return [found] if found is not None else assigned(step, words, project)


def _rearranged(step: PlanStep, words: str, project: KnownFiles) -> PlanStep | None:
    """The step with the lines sorted or without repeated ones, where the request says just that."""
    text = project.text(step.path) or ""
    lines = text.splitlines()
    if step.path.endswith(_NOT_LISTS) or not lines:
        return None
    after = lines
    if _repeated_lines(words):
        after = [*dict.fromkeys(after)]
    if sorting := _sorted_lines(words):
        head = after[:1] if step.path.endswith(".csv") or after[0].startswith("#") else []
        after = [*head, *sorted(after[len(head) :], key=str.lower, reverse=bool(sorting["down"]))]
    if after == lines:
        return None
    kind = StepKind.SUBSTITUTE
    return PlanStep(do=kind, path=step.path, old="\n".join(lines), new="\n".join(after))


def assigned(step: PlanStep, words: str, project: KnownFiles) -> list[PlanStep]:
    """Substitutions of the lines that set values, where the request names keys and values."""
    text = project.text(step.path) or ""
    found: dict[str, PlanStep] = {}
    if new_name(words) or re.search(r"\bmov(?:e|ing)\b", words, re.IGNORECASE):
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
            if new != old and text.count(line) == 1 and not parsing.damage(step.path, text, after):
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


def _is_vague(old: str, text: str) -> bool:
    """Whether a short word or a number occurs several times and may mean different things."""
    short = len(old) < LEAST_WORD or re.fullmatch(r"[\d.]+", old) is not None
    return short and len(re.findall(rf"(?<!\w){re.escape(old)}(?!\w)", text)) > 1


def _unquoted(text: str) -> str:
    return text.strip("\"'`").rstrip(".,;:!?")


def filled(text: str, words: str) -> str:
    """The text with its placeholders replaced by what the request gives for them; else empty."""
    names = [*dict.fromkeys(it[0] or it[1] for it in _PLACEHOLDER.findall(text))]
    given = {name: value for name in names if (value := _given(name, words))}
    if not given:
        return ""
    for name, value in given.items():
        text = re.sub(rf"\{{\{{\s*{name}\s*\}}\}}|(?<!\w){name}(?!\w)", lambda _, v=value: v, text)
    return text


def _given(name: str, words: str) -> str:
    found = re.search(
        rf"(?<!\w){re.escape(name)}(?!\w)[\s`'\"}}]*(?:is|=|:|with|by|to be|to|as|should be|->)\s+"
        r"(?:\"([^\"\n]+)\"|'([^'\n]+)'|(\S[^,.;\n]*?)(?=[,;\n]|\.(?:\s|\Z)|\Z|\s+and\b|\s+there\b))",
        words,
    )
    return next(filter(None, found.groups()), "").strip() if found is not None else ""
