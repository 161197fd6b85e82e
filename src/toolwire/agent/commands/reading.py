"""Shell text → Script: walks the syntax tree; a node it does not know is a doubt."""

import re
import unicodedata
from functools import cache

import msgspec
from tree_sitter import Language, Node, Parser

from toolwire.agent.commands.findings import Findings
from toolwire.agent.commands.scanner import scan
from toolwire.agent.commands.second_look import disagreements
from toolwire.agent.commands.statements import Statements
from toolwire.agent.commands.unwrapping import unwrap
from toolwire.agent.commands.values import Command, Script

LONGEST = 32_768
"""Bytes of a text that is read at all."""
MOST_OPERATORS = 400
"""The grammar's cost grows with the square of some of these, so their number is bounded."""
DEEPEST = 60
"""Nodes inside nodes."""
MOST_LAYERS = 6
"""Texts inside texts: `bash -c "bash -c …"`."""

_OPERATORS = re.compile(rb"\||&|;|\$\{|<<|=\(|\(\)|\$\(|`|\(\(|\[\[|<\(|>\(")


def read_script(text: str) -> Script:
    """Everything that the text would run; never raises for any text."""
    findings = Findings()
    read_into(text, findings, through=(), layer=0)
    findings.settle()
    return Script(
        commands=tuple(findings.commands),
        redirects=tuple(findings.redirects),
        folders=tuple(findings.folders),
        named=tuple(findings.named),
        doubts=tuple(dict.fromkeys(findings.doubts)),
    )


def read_into(text: str, findings: Findings, *, through: tuple[str, ...], layer: int) -> None:
    """Adds what one text would run; texts inside it (`bash -c`, backticks) are read in turn."""
    complaint = _unreadable(text, layer)
    if complaint:
        findings.doubt(complaint)
        return
    source = text.encode()
    if not source.strip(b" \t\n"):
        return
    marks = scan(source)
    if marks is None:
        findings.doubt("quotes or brackets are not closed, or words go on over lines")
        return
    root = Parser(_language()).parse(source).root_node
    if root.has_error:
        findings.doubt("the shell text does not parse")
        return
    if _too_deep(root):
        findings.doubt("the shell text nests too deep to be read")
        return
    for complaint in disagreements(source, root, marks):
        findings.doubt(complaint)
    statements = Statements(findings, marks)
    statements.statement(root)
    for inner in statements.texts:
        read_into(inner, findings, through=through, layer=layer + 1)
    for found in statements.found:
        _add(found, findings, through, layer)


def _add(found: Command, findings: Findings, through: tuple[str, ...], layer: int) -> None:
    """Adds a command, then what it would start, to any depth."""
    if len(through) > MOST_LAYERS * 2:
        findings.doubt("too many commands inside commands")
        return
    seen = unwrap(found)
    command = msgspec.structs.replace(seen.command, through=through)
    findings.commands.append(command)
    findings.redirects.extend(seen.redirects)
    findings.named.extend(seen.named)
    findings.folders.extend(seen.folders)
    findings.doubts.extend(seen.doubts)
    findings.assign_all(seen.assignments)
    inside = (*through, command.root)
    for inner in seen.commands:
        _add(inner, findings, inside, layer)
    for text in seen.texts:
        read_into(text, findings, through=inside, layer=layer + 1)


def _unreadable(text: str, layer: int) -> str:
    if layer > MOST_LAYERS:
        return "too many shell texts inside shell texts"
    # Lone surrogates have no bytes.
    source = text.encode("utf-8", "replace")
    if len(source) > LONGEST:
        return f"the shell text is longer than {LONGEST} bytes"
    if sum(1 for _ in _OPERATORS.finditer(source)) > MOST_OPERATORS:
        return f"the shell text has more than {MOST_OPERATORS} operators"
    if text.isascii() and text.isprintable():
        return ""
    for character in text:
        if character not in "\n\t" and unicodedata.category(character) in _INVISIBLE:
            return f"the shell text has the invisible character U+{ord(character):04X}"
        if character != " " and unicodedata.category(character) == "Zs":
            return f"the shell text has the look-alike space U+{ord(character):04X}"
    return ""


_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _too_deep(root: Node) -> bool:
    level = [root]
    for _ in range(DEEPEST):
        level = [child for node in level for child in node.children]
        if not level:
            return False
    return True


@cache
def _language() -> Language:
    import tree_sitter_bash  # noqa: PLC0415 - only a shell command needs the grammar

    return Language(tree_sitter_bash.language())
