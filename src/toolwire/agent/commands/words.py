"""Nodes of the syntax tree → words, with quotes resolved where their value is known."""

from tree_sitter import Node

from toolwire.agent.commands.quoting import ansi_c, bare, has_braces, has_glob, in_double_quotes
from toolwire.agent.commands.values import Word

EXPANSIONS = frozenset(
    {
        "simple_expansion",
        "expansion",
        "command_substitution",
        "arithmetic_expansion",
        "process_substitution",
    }
)
WORDS = EXPANSIONS | {
    "word",
    "number",
    "raw_string",
    "string",
    "ansi_c_string",
    "translated_string",
    "concatenation",
    "brace_expression",
    "extglob_pattern",
    "regex",
    "variable_name",
}
"""Node types that stand where a word stands."""


def text_of(node: Node) -> str:
    """The source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def word(node: Node) -> Word:
    """The word that a node spells."""
    source = text_of(node)
    match node.type:
        case "word" | "number" | "variable_name" if not node.named_child_count:
            return _bare_word(source)
        case "raw_string":
            return Word(source[1:-1], quoted=True)
        case "string" if all(child.type == "string_content" for child in node.named_children):
            return Word(in_double_quotes(source[1:-1]), quoted=True)
        case "ansi_c_string":
            value = ansi_c(source[2:-1])
            return _dynamic(source) if value is None else Word(value, quoted=True)
        case "process_substitution":
            return Word(source, static=False, pipe=True)
        case "concatenation":
            return _joined(node, source)
        case _:
            return _dynamic(source)


def _bare_word(source: str) -> Word:
    if has_braces(source):
        return _dynamic(source)
    return Word(
        bare(source),
        glob=has_glob(source),
        tilde=source.startswith("~"),
        quoted="\\" in source,
    )


def _joined(node: Node, source: str) -> Word:
    children = node.children
    unquoted = "".join(text_of(child) for child in children if child.type in ("word", "number"))
    parts = [_part(child) for child in children]
    # The grammar does not see that `a$"b"` is `ab`.
    dollar = any(text_of(child).endswith("$") for child in children[:-1])
    if dollar or has_braces(unquoted) or not all(part.static for part in parts):
        return _dynamic(source)
    return Word(
        "".join(part.text for part in parts),
        glob=any(part.glob for part in parts),
        tilde=source.startswith("~"),
        quoted=any(part.quoted for part in parts),
    )


def _part(node: Node) -> Word:
    if node.is_named:
        return word(node)
    return Word(text_of(node)) if node.type == "$" else _dynamic(text_of(node))


def _dynamic(source: str) -> Word:
    return Word(source, static=False)
