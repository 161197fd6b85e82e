"""Statements of the syntax tree: what each node type runs, opens and sets."""

from tree_sitter import Node

from toolwire.agent.commands.expressions import Expressions
from toolwire.agent.commands.findings import Findings
from toolwire.agent.commands.scanner import Marks
from toolwire.agent.commands.values import Access, Command, Redirect, Word, names
from toolwire.agent.commands.words import WORDS, text_of, word

_STRUCTURE = frozenset(
    {
        "program",
        "list",
        "pipeline",
        "subshell",
        "if_statement",
        "elif_clause",
        "else_clause",
        "while_statement",
        "do_group",
        "negated_command",
        "variable_assignments",
    }
)
_PUNCTUATION = names("""
    ; ;; ;& ;;& & && | |& || ( ) { } ! if then elif else fi while until do done for in case esac
    select function""") | {"\n"}
_KEYWORDS = names(
    "if then elif else fi do done case esac while until for in function select coproc { } ! [[ ]]"
)
_READS = frozenset({"<"})
_WRITES = frozenset({">", ">>", ">|", "&>", "&>>", "<>"})
_DUPLICATES = frozenset({">&", "<&", ">&-", "<&-"})
_DECLARES = frozenset({"export", "local", "readonly", "declare", "typeset"})


class Statements:
    """Walks statements; commands are found here, what is inside them by `unwrap`."""

    def __init__(self, findings: Findings, marks: Marks) -> None:
        self.findings = findings
        self._marks = marks
        self.found: list[Command] = []
        self.texts: list[str] = []
        """Command texts to be read in turn (backticks)."""
        self._expressions = Expressions(findings, self.statement, self.texts)

    def statement(self, node: Node) -> None:
        """Any node that stands where a statement may."""
        match node.type:
            case kind if kind in _STRUCTURE:
                self._each(node)
            case kind if not node.is_named and kind in _PUNCTUATION:
                pass
            case "comment":
                pass
            case "command":
                self._command(node, ())
            case "redirected_statement":
                self._redirected(node)
            case "variable_assignment":
                self._assignment(node)
            case "declaration_command" | "unset_command":
                self._declaration(node)
            case "function_definition":
                self._function(node)
            case "for_statement":
                self._for(node)
            case "case_statement" | "case_item":
                self._case(node)
            case "compound_statement":
                self._compound(node)
            case "c_style_for_statement":
                self._c_style_for(node)
            case "test_command":
                self._expressions.test(node)
            case "file_redirect" | "heredoc_redirect" | "herestring_redirect":
                if self._redirect(node):
                    self._unknown(node)
            case _:
                self._unknown(node)

    def _each(self, node: Node) -> None:
        for child in node.children:
            self.statement(child)

    def _unknown(self, node: Node) -> None:
        self.findings.doubt(f"a {node.type.replace('_', ' ')} stands where none is expected")

    def _word(self, node: Node) -> Word:
        """A whole word: the tree and the scanner must agree on where it starts and ends."""
        if not self._marks.is_word(node.start_byte, node.end_byte):
            self.findings.doubt("words can be told apart in two ways")
        return self._value(node)

    def _value(self, node: Node) -> Word:
        self._expressions.visit(node)
        return word(node)

    def _command(self, node: Node, more: tuple[Node, ...]) -> None:
        words: list[Word] = []
        end = -1
        for child in (*node.children, *more):
            match child.type:
                case "variable_assignment":
                    self._assignment(child)
                case "file_redirect" | "herestring_redirect" | "heredoc_redirect":
                    words += [self._word(extra) for extra in self._redirect(child)]
                case "command_name":
                    if child.child_count != 1:
                        self._unknown(child)
                    words += [self._word(part) for part in child.children]
                case kind if kind in WORDS:
                    words.append(self._word(child))
                case "$" | "==" | "=~" | "=" | "!=":
                    words.append(Word(child.type))
                case _:
                    self._unknown(child)
            if child.start_byte == end:
                self.findings.doubt("two words touch where the shell sees one")
            end = child.end_byte
        self._found(tuple(words), text_of(node))

    def _found(self, words: tuple[Word, ...], source: str) -> None:
        if not words:
            return
        if words[0].text in _KEYWORDS and not words[0].quoted:
            self.findings.doubt(f"the keyword {words[0].text} stands where a command is expected")
        self.found.append(Command(words=words, source=source))

    def _redirected(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        rest = tuple(child for child in node.children if child != body)
        if body is None:
            extra = tuple(part for child in rest for part in self._redirect(child))
            self._found(tuple(self._word(part) for part in extra), text_of(node))
        elif body.type == "command":
            extra = tuple(part for child in rest for part in self._redirect(child))
            self._command(body, extra)
        else:
            self.statement(body)
            for child in rest:
                self.statement(child)

    def _redirect(self, node: Node) -> tuple[Node, ...]:
        """Notes the file it opens; gives the nodes that are the command's own further words."""
        match node.type:
            case "file_redirect":
                return self._file_redirect(node)
            case "herestring_redirect":
                parts = [child for child in node.named_children if child.type in WORDS]
                if len(parts) != 1:
                    self._unknown(node)
                for part in parts:
                    self._expressions.visit(part)
            case "heredoc_redirect":
                self._heredoc(node)
            case _:
                self._unknown(node)
        return ()

    def _file_redirect(self, node: Node) -> tuple[Node, ...]:
        operator = ""
        targets: list[Node] = []
        for child in node.children:
            if child.type in WORDS:
                targets.append(child)
            elif not child.is_named:
                operator += child.type
            elif child.type != "file_descriptor" or not text_of(child).isdigit():
                self._unknown(child)
            elif child.start_byte not in self._marks.starts:
                self.findings.doubt("words can be told apart in two ways")
        if not targets:
            if operator not in (">&-", "<&-"):
                self._unknown(node)
            return ()
        if operator in (">&-", "<&-"):
            return tuple(targets)
        self._open(operator, self._word(targets[0]), text_of(node))
        return tuple(targets[1:])

    def _open(self, operator: str, target: Word, source: str) -> None:
        if operator in _DUPLICATES:
            if target.plain and target.text.rstrip("-").isdigit():
                return
            # `>&name` is `&>name`, but bash takes the quotes of such a name away twice.
            if target.quoted:
                self.findings.doubt("a redirect names its file in an unusual way")
            self.findings.redirects.append(Redirect(Access.WRITE, target, source))
        elif operator in _READS:
            self.findings.redirects.append(Redirect(Access.READ, target, source))
        elif operator in _WRITES:
            self.findings.redirects.append(Redirect(Access.WRITE, target, source))
        else:
            self.findings.doubt(f"the redirect {operator} is not known")

    def _heredoc(self, node: Node) -> None:
        for child in node.children:
            match child.type:
                case "<<" | "<<-" | "heredoc_start" | "heredoc_end" | "file_descriptor":
                    pass
                case "heredoc_body":
                    for part in child.named_children:
                        if part.type != "heredoc_content":
                            self._expressions.visit(part)
                case "file_redirect":
                    if self._redirect(child):
                        self._unknown(child)
                case kind if kind in WORDS:
                    self._unknown(child)
                case _:
                    self.statement(child)

    def _assignment(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if name is None:
            self._unknown(node)
            return
        if not self._marks.is_word(node.start_byte, node.end_byte):
            self.findings.doubt("words can be told apart in two ways")
        if name.type == "subscript":
            self._expressions.subscript(name)
        self.findings.assign(_base_name(name), self._assigned(value))
        if any(child.type == "+=" for child in node.children):
            self.findings.assign(_base_name(name), None)

    def _assigned(self, value: Node | None) -> Word | None:
        if value is None:
            return Word("")
        if value.type == "array":
            for part in value.named_children:
                if part.type == "variable_assignment" or text_of(part).startswith("["):
                    self.findings.doubt("an array is set by index")
                self._value(part)
            return None
        return self._value(value)

    def _declaration(self, node: Node) -> None:
        keyword = node.children[0].type
        if keyword not in _DECLARES | {"unset"}:
            self._unknown(node)
        for child in node.children[1:]:
            match child.type:
                case "variable_assignment":
                    self._assignment(child)
                case "variable_name":
                    self.findings.assign(text_of(child), None if keyword != "unset" else Word("0"))
                case "word" if text_of(child) in ("-r", "-x", "-g", "-p", "-a", "-A", "-l", "-u"):
                    pass
                case _:
                    self.findings.doubt(f"{keyword} is used in a way that is not read")
                    if child.type in WORDS:
                        self._value(child)

    def _function(self, node: Node) -> None:
        for child in node.children:
            if child.type in ("word", "(", ")", "function"):
                continue
            self.statement(child)

    def _for(self, node: Node) -> None:
        variable = node.child_by_field_name("variable")
        values = [
            child for child in node.named_children if child.type in WORDS and child != variable
        ]
        if variable is None:
            self._unknown(node)
            return
        if not values:
            self.findings.assign(text_of(variable), None)
        for value in values:
            self.findings.assign(text_of(variable), self._word(value))
        for child in node.children:
            if child not in values and child != variable:
                self.statement(child)

    def _case(self, node: Node) -> None:
        for child in node.children:
            if child.type in WORDS:
                self._expressions.visit(child)
            else:
                self.statement(child)

    def _compound(self, node: Node) -> None:
        if node.children and node.children[0].type == "((":
            for child in node.children[1:-1]:
                self._expressions.arithmetic(child)
            return
        self._each(node)

    def _c_style_for(self, node: Node) -> None:
        for child in node.children:
            if child.type in ("do_group", "compound_statement"):
                self.statement(child)
            elif child.is_named:
                self._expressions.arithmetic(child)


def _base_name(node: Node) -> str:
    return text_of(node).split("[", 1)[0]
