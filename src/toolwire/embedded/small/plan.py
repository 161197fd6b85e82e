"""The plan of a change, checked against the request and the files of the project."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from shlex import quote

import msgspec

from toolwire.embedded.small import edits
from toolwire.embedded.small.about import (
    MOST_SEARCHED,
    Mention,
    goal,
    imported,
    mentions,
    moves_words,
    to_read,
)
from toolwire.embedded.small.programs import fails, is_check
from toolwire.embedded.small.steps import LONGEST_WHAT, PlanStep, StepKind
from toolwire.embedded.small.tools import KnownFiles
from toolwire.embedded.small.values import (
    assigned,
    computed,
    filled,
    literal,
    new_name,
    same_number,
    substitution,
)
from toolwire.embedded.small.wording import REMOVES, forbidden, is_named, runs
from toolwire.policy.shell import Unproven, prove
from toolwire.policy.shell.commands import effects_of, inner_commands

MOST_STEPS = 8
"""Steps of one plan."""
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
_wish = re.compile(r"[\w./`'\"-]+\s+(?:should|must|shall|needs? to|has to)\b", re.I).match
_order = re.compile(rf"(?:also |then |please |pls )*{_ORDERS}\b", re.IGNORECASE).match
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
_meant_before = re.compile(
    r"\s*(?:it|them|both|all of (?:it|them)|th(?:at|is|ese|ose)(?: (?:file|folder|one)s?)?"
    r"|the (?:files?|folders?|directory))"
    r"\s*(?:[.,;!?]|\Z|and\b|with\b|please|pls|again|then|afterwards)",
    re.IGNORECASE,
).match
_inside = re.compile(
    r"\b(?:from|in|of|inside|within|out of)\b(?! (?:the )?(?:file|folder)s? )", re.I
).search
_joined = re.compile(
    r"[\s`'\",]*(?:,|&|\+|\band\b|\band in\b|\band to\b|\bas well as\b|\band also in\b)"
    r"[\s`'\"]*(?:in |to |the |file )*[\s`'\"]*"
).fullmatch


def checked(steps: Sequence[PlanStep], words: str, project: KnownFiles) -> tuple[PlanStep, ...]:
    """The steps that the request allows, with those that it names and the plan lacks."""
    present, absent = mentions(words, project)
    found: list[PlanStep] = []
    moving = moves_words(words) is not None
    targets = {step.to for step in steps}
    made = {step.path for step in steps if step.do is StepKind.CREATE}
    new = made or any(goal(words[: it.begin]) for it in absent)
    only_new = any(goal(words[: it.begin]) for it in absent) and not _alters(words)
    sources = {it.path for it in present if new and (only_new or _is_source(it, words))}
    written = {it.path for it in steps if it.do in (StepKind.EDIT, StepKind.CREATE)}
    spoken = {it.path for it in (*present, *absent)}
    related = spoken | {*to_read(words, project)}
    aimed = any(it.path in spoken for it in steps)
    for step in _code_not_checks(steps, words, project):
        if step.do is StepKind.DELETE and step.path in written:
            continue
        if aimed and step.do is StepKind.EDIT and step.path not in related:
            # The request names what it is about, and this has nothing to do with it.
            continue
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
    found = _renamed(found, words, project, present, absent)
    found += _missing(found, words, project, present, absent)
    return tuple(same_number(found, project))[:MOST_STEPS]


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
        code = [it for it in imported(step.path, text, project) if not is_check(it, "")]
        if code and not any(it.path in code for it in steps):
            yield PlanStep(do=StepKind.EDIT, path=code[0], what=words[:LONGEST_WHAT])


def _renamed(
    steps: list[PlanStep],
    words: str,
    project: KnownFiles,
    present: list[Mention],
    absent: list[Mention],
) -> list[PlanStep]:
    """The steps; a new name that follows a file's name is a move or a copy, not an edit."""
    for one in present:
        for other in absent:
            between = words[one.end : other.begin]
            if other.begin < one.end or _becomes(between) is None:
                continue
            copies = _copies_words(words) is not None
            if not copies and not new_name(words) and not _renames_words(words):
                continue
            kind = StepKind.COPY if copies else StepKind.MOVE
            moved = [it for it in steps if it.path == one.path and it.do is kind]
            if moved or (copies and len(steps) > 1):
                continue
            gone = (one.path, other.path)
            first = PlanStep(do=kind, path=one.path, to=other.path)
            if copies and filled(project.text(one.path) or "", words):
                what = words[:LONGEST_WHAT]
                first = PlanStep(do=StepKind.CREATE, path=other.path, what=what)
            steps = [
                first,
                *(it for it in steps if it.path not in gone and it.to not in gone),
            ]
    return steps


def _is_source(mention: Mention, words: str) -> bool:
    """Whether the request only takes something from the file."""
    before, behind = words[: mention.begin], words[mention.end :]
    return _from(before) is not None or _onwards(behind) is not None


def _allowed(
    step: PlanStep, words: str, project: KnownFiles, named: list[str]
) -> Iterable[PlanStep]:
    match step.do:
        case StepKind.SUBSTITUTE:
            yield from computed(step, words, project) or substitution(step, words, project, named)
        case StepKind.EDIT:
            values = computed(step, words, project) or assigned(step, step.what, project)
            texts = literal(step, words, project) or literal(step, step.what, project)
            yield from values or (substitution(texts, words, project, named) if texts else (step,))
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


def _deletions(step: PlanStep, words: str, project: KnownFiles) -> Iterable[PlanStep]:
    """What is deleted must exist, and the request must say that it, not a part of it, shall go."""
    for path in _matching(step.path, project):
        if _shall_go(path, words) or _shall_go(step.path, words):
            yield msgspec.structs.replace(step, path=path)


def _shall_go(path: str, words: str) -> bool:
    """Whether a word for deleting has the path as its object."""
    for found in REMOVES.finditer(words):
        behind = re.split(r"[.;!?](?:\s|\Z)", words[found.end() :])[0]
        if is_named(path, found[0]):
            return True
        if _meant_before(behind) and is_named(path, words[: found.start()]):
            return True
        inner = _inside(behind)
        if is_named(path, behind[: inner.start()] if inner is not None else behind):
            return True
    return False


def _moves(step: PlanStep, words: str, project: KnownFiles) -> Iterable[PlanStep]:
    """What is moved or copied must exist and be named; nothing is overwritten."""
    paths = _matching(step.path, project)
    for path in paths:
        name = path.rpartition("/")[2]
        into = step.to.endswith("/") or step.to in project.folders or len(paths) > 1
        into = into or ("." in name and "." not in step.to.rpartition("/")[2])
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
    looks = (StepKind.READ, StepKind.LOOK)
    touched = {path for it in found if it.do not in looks for path in (it.path, it.to)}
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
            step = PlanStep(do=StepKind.EDIT, path=it.path, what=clause[:LONGEST_WHAT])
            added += _allowed(step, clause, project, [it.path])
    for it in absent:
        made = it.path in touched or it.path in commands
        made = made or any(path.endswith(f"/{it.path}") for path in touched)
        if (
            (found or any(_is_source(one, words) or not _alters(words) for one in present))
            and not made
            and goal(words[: it.begin])
        ):
            added.append(PlanStep(do=StepKind.CREATE, path=it.path, what=words[:LONGEST_WHAT]))
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
    wish = part.startswith(words[mention.begin : mention.end]) and _wish(part)
    if _aside(words[: mention.begin]) or not (wish or (begin and _order(part))):
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
    for path in project.files[:MOST_SEARCHED]:
        text = project.text(path) or ""
        uses = step.path in imported(path, text, project)
        if uses and path not in touched and (path in named or _everywhere(words)):
            yield PlanStep(do=StepKind.SUBSTITUTE, path=path, old=old, new=new)


def _like(step: PlanStep, paths: Iterable[str], project: KnownFiles) -> Iterable[PlanStep]:
    for path in paths:
        if project.text(path) is not None:
            moved = msgspec.structs.replace(step, path=path)
            yield from substitution(moved, "", project, [path]) if step.old else (moved,)
