"""A second, simpler reading of shell text: the syntax tree is believed only where both agree.

The grammar is not the shell's own: it lets backticks in a here-document pass as text, for one. So
the characters with a meaning are found again by a scanner of the quoting rules alone, and each must
be a token of the tree, and each token of the tree one of them.
"""

from collections.abc import Iterator

from tree_sitter import Node

from toolwire.agent.commands.scanner import Marks
from toolwire.agent.commands.values import names

_MAY_SPAN_LINES = names("""
    program list pipeline subshell compound_statement if_statement elif_clause else_clause
    while_statement do_group for_statement c_style_for_statement case_statement case_item
    command_substitution process_substitution array heredoc_redirect function_definition
    test_command negated_command binary_expression parenthesized_expression
    arithmetic_expansion""")
_TOKENS = names(
    "; ;; ;& ;;& & && | |& || ( ) (( )) $( ${ ` << <<- <<< < > >> >| >& <& &> &>> <( >("
)
_WHOLE = frozenset({"string", "heredoc_body", "expansion", "arithmetic_expansion", "test_command"})
"""Nodes whose inner blanks are their own."""
_SPACE = frozenset(b" \t")
_NEWLINE = ord("\n")


def disagreements(source: bytes, root: Node, marks: Marks) -> Iterator[str]:
    """Where the tree and the scanner differ; nothing if they read the same."""
    if not all(_agrees(source, root, position) for position in marks.active):
        yield "the shell text can be read in two ways"
        return
    if not (_tokens_are_marked(root, marks) and _gaps_are_marked(source, root, marks)):
        yield "the shell text can be read in two ways"


def _agrees(source: bytes, root: Node, position: int) -> bool:
    node = root.descendant_for_byte_range(position, position + 1)
    if node is None:
        return False
    if node.child_count:
        # A gap between tokens: only blanks belong there.
        character = source[position]
        return character in _SPACE or (character == _NEWLINE and node.type in _MAY_SPAN_LINES)
    if source[position] in _SPACE:
        return False
    return not node.is_named


def _tokens_are_marked(root: Node, marks: Marks) -> bool:
    comments: set[int] = set()
    open_nodes = [root]
    while open_nodes:
        node = open_nodes.pop()
        if marks.is_skipped(node.start_byte) and node.type != "`":
            continue
        if node.type == "comment":
            comments.add(node.start_byte)
        elif not node.is_named and node.type in _TOKENS and _start(node) not in marks.active:
            return False
        open_nodes.extend(node.children)
    return comments == marks.comments


def _start(token: Node) -> int:
    # The grammar counts the blanks before `${` inside a string to that token.
    text = token.text or b""
    return token.end_byte - len(text.lstrip(b" \t\n"))


def _gaps_are_marked(source: bytes, root: Node, marks: Marks) -> bool:
    """Whether what the tree takes for blanks between tokens are blanks to the scanner too."""
    at = 0
    for start, end in [*_leaves(root), (len(source), len(source))]:
        gap = at
        while gap < start:
            if source[gap : gap + 2] == b"\\\n":
                gap += 2
            elif gap in marks.active or marks.is_skipped(gap):
                gap += 1
            else:
                return False
        at = max(at, end)
    return True


def _leaves(root: Node) -> Iterator[tuple[int, int]]:
    open_nodes = [root]
    while open_nodes:
        node = open_nodes.pop()
        if node.child_count and node.type not in _WHOLE:
            open_nodes.extend(reversed(node.children))
        elif node.end_byte > node.start_byte and node.type != "program":
            yield node.start_byte, node.end_byte
