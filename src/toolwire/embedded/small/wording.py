"""The words of a request: question or order, what it names, the commands that it allows."""

import re

from toolwire.embedded.small.tools import KnownFiles
from toolwire.policy.shell import Command, Unproven, prove
from toolwire.policy.shell.commands import effects_of, inner_commands

_asks = re.compile(
    r"(?:(?:at|by|for|from|in|of|on|to|under|with|and|so|but|hi|hello|hey|please|ok)[ ,]+)*"
    r"(?:who|whom|whose|which|what|whats|where|when|why|how|is|are|was|were|do|does|did|has|have|had"
    r"|am|should|shall|may|might|must"
    r"|(?:can|could|would|will)(?! (?:you|u)\b)(?:n't)?)\b",
    re.IGNORECASE,
).match
REMOVES = re.compile(
    r"\b(?:delet\w*|remov\w*|rm|rmdir|eras\w*|drop\w*|rid of|clean\w*|clear\w*|wip(?:e|ing)"
    r"|discard\w*|trash|throw\w*|purg\w*|prun\w*|uninstall\w*|unlink\w*|tak(?:e|ing)\b.*\bout)\b",
    re.IGNORECASE,
)
removes = REMOVES.search
_harsh = re.compile(
    r"(?:^git(?: -\S+)* |-|\b(?:os|shutil|fs|Path)\b.*?\.?)"
    r"(delete|reset|clean|checkout|restore|stash|revert|rebase|push|rmtree|remove|unlink|rename"
    r"|truncate)\b"
).search
_placeholder = re.compile(r"<\w+>").search
runs = re.compile(
    r"\b(?:run|runs|execut\w+|start|launch|call|try|test|tests|invoke|output|exit code|prints?"
    r"|build)\b",
    re.IGNORECASE,
).search
_orders = re.compile(
    r"(?:^|[.,;:!]|\b(?:and|then|please|pls|just|now|should|must|shall|also|to|it))\s*"
    r"(?:(?:please|pls|also|then|just|now)\s+)*"
    r"(?:add|adjust|append|archive|bump|change|collect|combine|comment|concatenate|convert|copy"
    r"|correct|create|cut|decrease|delete|disable|divide|duplicate|enable|extract|gather|join"
    r"|double|drop|edit|erase|exchange|extend|fill|fix|generate|halve|implement|increase|insert"
    r"|lower|make|merge|modify|move|multiply|put|raise|record|refactor|remove|rename|repair"
    r"|replace|rewrite|save|set|sort|split|store|swap|switch|translate|turn|update|write)\b",
    re.IGNORECASE,
).search
_starts_program = re.compile(
    r"(?:^|[.,;:!?]|\b(?:and|then|please|pls|just|to))\s*(?:please\s+|pls\s+)?"
    r"(?:run|execute|start|launch|invoke)\b"
    r"|\b(?:python3?|node|bash|sh|make|pytest|npm|cargo|ruby|perl)\s+[\w./-]*\.\w+|(?:^|\s)\./\w"
    r"|\bexit (?:code|status)\b|\bgit\b|\b(?:which|what|current) branch\b"
    r"|\b(?:last|latest|recent|newest) commits?\b",
    re.IGNORECASE,
).search
_about_project = re.compile(
    r"\b(?:files?|folders?|director(?:y|ies)|projects?|repo(?:sitory)?|here|code|scripts?|modules?"
    r"|functions?|class(?:es)?|tests?|settings?|config\w*|logs?|pages?|lines?|docs?|readme|licen[cs]e"
    r"|version|we|our|us)\b|[\w-]+\.\w+|/|_",
    re.IGNORECASE,
).search


def starts_program(words: str) -> bool:
    """Whether the request wants a program or git to run, also where it is a question."""
    return _starts_program(words) is not None


def about_project(words: str) -> bool:
    """Whether the request speaks of files or of the project."""
    return _about_project(words) is not None


def is_order(words: str) -> bool:
    """Whether the request orders a change, and is not a question."""
    return not is_question(words) and _orders(words) is not None


def is_question(words: str) -> bool:
    """Whether the request is phrased as a question, and not as a polite order."""
    return _asks(words.strip()) is not None


def is_named(path: str, words: str) -> bool:
    """Whether the request contains the path, its name, or the end of a pattern."""
    bare = path.rstrip("/")
    name = bare.rpartition("/")[2]
    folder = bare.partition("/")[0] if "/" in bare else ""
    stem = name.rpartition(".")[0] or name
    tokens = re.findall(r"[A-Za-z]{3,}|\d+", stem)
    if len(tokens) > 1 and all(re.search(rf"\b{it}s?\b", words, re.IGNORECASE) for it in tokens):
        # "The reports of 2021" are report-2021.txt and the like.
        return True
    options = {bare, name, name.lstrip("*"), name.rpartition(".")[0], f".{name.rpartition('.')[2]}"}
    return any(
        re.search(rf"(?<!\w){re.escape(it)}(?!\w)", words, re.IGNORECASE)
        for it in {*options, folder} - {"", "."}
    )


def forbidden(command: str, words: str, project: KnownFiles) -> str:
    """Why the request does not allow the command; empty if it does.

    A command deletes or overwrites only what the request names. To a question, it runs only what
    certainly changes nothing, or what the request quotes or asks to run.
    """
    if _placeholder(command):
        return "it names a file of an example"
    script = prove(command)
    if isinstance(script, Unproven):
        unclear = re.search(r"\b(rm|rmdir|mv|dd|truncate|shred|unlink)\b|>", command)
        return "it may delete or overwrite files" if unclear else ""
    strict = is_question(words) and not runs(words)
    for one in script.commands():
        found = _harm(one, words, project, strict=strict)
        if found:
            return found
    return ""


def _harm(command: Command, words: str, project: KnownFiles, *, strict: bool) -> str:
    known = {*project.files, *project.folders}
    written = tuple(it.target.text for it in command.redirects if it.operator in (">", ">|", "&>"))
    spelled = tuple(word.text for word in command.words)
    removed: tuple[str, ...] = ()
    if spelled:
        for inner in inner_commands(spelled):
            effects = effects_of(inner)
            harsh = _harsh(" ".join(inner))
            if harsh is not None and not re.search(rf"\b{harsh[1]}", words, re.IGNORECASE):
                return f"the request does not say {harsh[1]}"
            removed += effects.removes
            written += effects.writes
            unclear = not effects.known or effects.opaque or effects.changes or effects.writes
            if strict and unclear and " ".join(spelled) not in words:
                return "the request is a question"
    if removed and not (removes(words) or re.search(r"\b(mov|renam|put|go|call)", words)):
        return "the request does not say that anything shall be deleted"
    for path in removed:
        if not is_named(path, words):
            return f"the request does not name {path}"
    for path in written:
        bare = path.removeprefix("./")
        if bare in known and bare in project.files and not is_named(bare, words):
            return f"it would overwrite {path}, which the request does not name"
    return ""
