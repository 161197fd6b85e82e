"""Expansions, arithmetic and tests: where a text may turn into a command."""

import re
from collections.abc import Callable

from tree_sitter import Node

from toolwire.agent.commands.findings import Findings
from toolwire.agent.commands.quoting import in_backticks
from toolwire.agent.commands.values import names
from toolwire.agent.commands.words import EXPANSIONS, WORDS, text_of

_INTEGER = re.compile(r"-?[0-9]+\Z|0x[0-9a-fA-F]+\Z")
_PLAIN_EXPANSION = names(
    "${ } variable_name special_variable_name # ## % %% : :- - :+ + :? ? / // /# /% ^ ^^ , ,,"
)
_CALCULATES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_NAME_TEST = re.compile(r"\s-[vR]\s")


class Expressions:
    """Visits words for the commands inside them; `statement` reads what is inside `$(…)`."""

    def __init__(
        self, findings: Findings, statement: Callable[[Node], None], texts: list[str]
    ) -> None:
        self._findings = findings
        self._statement = statement
        self._texts = texts

    def visit(self, node: Node, *, in_string: bool = False) -> None:
        """A word: everything inside that runs or is calculated."""
        match node.type:
            case "command_substitution" | "process_substitution":
                self._substitution(node, in_string)
            case "arithmetic_expansion":
                for child in node.children[1:-1]:
                    self.arithmetic(child)
            case "expansion":
                self._expansion(node)
            case "simple_expansion":
                pass
            case "string" | "translated_string" | "concatenation":
                for child in node.named_children:
                    self.visit(child, in_string=in_string or node.type != "concatenation")
            case "string_content" | "heredoc_content" | "brace_expression":
                pass
            case kind if kind in WORDS:
                for child in node.named_children:
                    self.visit(child, in_string=in_string)
            case _:
                self._findings.doubt(f"a {node.type.replace('_', ' ')} stands inside a word")

    def _substitution(self, node: Node, in_string: bool) -> None:
        if node.children[0].type == "`":
            # Backslashes are taken away before the text is read, so its own tree is not right.
            self._texts.append(in_backticks(text_of(node)[1:-1], within_string=in_string))
            return
        for child in node.children[1:-1]:
            self._statement(child)

    def _expansion(self, node: Node) -> None:
        past_operator = False
        for child in node.children:
            if child.type in (":", "}", "${"):
                past_operator = past_operator or child.type == ":"
            elif past_operator:
                # `${x:offset:length}` is arithmetic.
                self.arithmetic(child)
            elif child.type in _PLAIN_EXPANSION:
                pass
            elif child.type == "subscript":
                self.subscript(child)
            elif child.type in WORDS:
                self.visit(child)
            else:
                self._findings.doubt(f"the expansion {text_of(node)[:40]} may run or set something")

    def subscript(self, node: Node) -> None:
        """`name[index]`: the index is arithmetic."""
        for child in node.children:
            if child.type not in ("variable_name", "[", "]") and text_of(child) not in ("@", "*"):
                self.arithmetic(child)

    def arithmetic(self, node: Node) -> None:
        """An arithmetic expression: the text of its variables is calculated in turn."""
        source = text_of(node)
        match node.type:
            case "number" if _INTEGER.match(source):
                pass
            case "variable_name":
                self._findings.calculate(source)
            case "word" if _INTEGER.match(source):
                pass
            case "word" if re.match(r"[A-Za-z_]\w*\Z", source, re.ASCII):
                self._findings.calculate(source)
            case "simple_expansion":
                self._calculated_expansion(source)
            case "variable_assignment":
                for child in node.named_children:
                    self.arithmetic(child)
            case "arithmetic_expansion":
                for child in node.children[1:-1]:
                    self.arithmetic(child)
            case (
                "binary_expression"
                | "unary_expression"
                | "postfix_expression"
                | "ternary_expression"
                | "parenthesized_expression"
            ):
                for child in node.children:
                    if child.is_named:
                        self.arithmetic(child)
            case _ if not node.is_named and node.type in (",", ";"):
                pass
            case _:
                if node.type in EXPANSIONS | {"string", "concatenation"}:
                    self.visit(node)
                self._findings.doubt("it calculates with a text that might run a command")

    def _calculated_expansion(self, source: str) -> None:
        name = source[1:]
        if name in ("#", "?", "$", "!"):
            return
        if re.match(r"[A-Za-z_]\w*\Z", name, re.ASCII):
            self._findings.calculate(name)
        else:
            self._findings.doubt("it calculates with an argument, whose text might run a command")

    def test(self, node: Node) -> None:
        """`[[ … ]]`, `[ … ]` and `(( … ))`."""
        opening = node.children[0].type
        inner = text_of(node)[len(opening) : -len(opening)]
        if opening != "((" and not (inner[:1].isspace() and inner[-1:].isspace()):
            self._findings.doubt("a bracket touches a word, which makes it another word")
        if opening != "((" and _NAME_TEST.search(inner):
            self._findings.doubt("it tests a variable by name, which may run a command")
        for child in node.children[1:-1]:
            if opening == "((":
                self.arithmetic(child)
            else:
                self._condition(child, double=opening == "[[")

    def _condition(self, node: Node, *, double: bool, calculated: bool = False) -> None:
        if not node.type.endswith("_expression"):
            self._operand(node, calculated=calculated)
            return
        operators = {text_of(child) for child in node.children if _is_operator(child)}
        if not double and operators & {"<", ">", "<<", ">>", "&&", "||", "|", "&"}:
            self._findings.doubt("a redirect or an operator stands inside [ ]")
        for child in node.children:
            if not _is_operator(child):
                calculates = double and bool(operators & _CALCULATES)
                self._condition(child, double=double, calculated=calculates)

    def _operand(self, node: Node, *, calculated: bool) -> None:
        if calculated:
            self.arithmetic(node)
        elif node.type in WORDS:
            self.visit(node)
        else:
            self._findings.doubt(f"a {node.type.replace('_', ' ')} stands inside a test")


def _is_operator(node: Node) -> bool:
    return not node.is_named or node.type == "test_operator"
