import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolwire.embedded.small.edits import MOST_LINES, change, choices, span, substitute, units
from toolwire.embedded.small.parsing import damage, problem

CODE = """def first(a):
    return a


def second(a):
    if a:
        return a
    return 0
"""
LINES = st.lists(st.sampled_from(["", "a", "  a", "aa", "b", "  b: c", "}"]), max_size=12)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def changed(text: str, old: str, new: str) -> str:
    find, put = change(text, old, new)
    assert text.count(find) == 1
    return text.replace(find, put)


def test_a_line_is_named_alone_or_with_those_after_it():
    assert choices("a\n\nb\na\nc\n") == ("a\n", "b", "a\nc", "c")
    assert choices("a\nx\na\nx\nb") == ("a\nx\na", "x\na", "a\nx\nb", "x\nb", "b")
    assert choices(CODE) == (
        "def first(a):",
        "    return a",
        "def second(a):",
        "    if a:",
        "        return a",
        "    return 0",
    )


def test_lines_that_cannot_be_distinguished_are_not_offered():
    assert choices("x\nx\nx\nx\nx\nx") == ()


def test_long_files_and_foreign_line_ends_are_written_freely():
    assert choices("\n".join(map(str, range(MOST_LINES + 1)))) == ()
    assert choices("a\r\nb\r\n") == ()
    assert change("a\r\nb\r\n", "a", "c") == ("a", "c")
    assert change("a\nb\n", "nowhere", "c") == ("nowhere", "c")


def test_a_line_keeps_its_place_and_its_indentation():
    assert changed(CODE, "    return 0", "return 1") == CODE.replace("return 0", "return 1")
    assert changed(CODE, "    return 0", "    return 1\n") == CODE.replace("return 0", "return 1")
    assert "        x = 1\n        return x\n" in changed(
        CODE, "        return a", "x = 1\nreturn x"
    )


def test_what_stands_inside_another_line_is_found_with_the_lines_around_it():
    assert changed("port = 80\nport = 8080\n", "port = 80", "port = 90") == (
        "port = 90\nport = 8080\n"
    )


def test_nothing_in_place_of_a_line_takes_the_line_away():
    assert changed("a\nb\nc\n", "b", "") == "a\nc\n"
    assert changed("a\nb", "b", " ") == "a"
    assert changed("a", "a", "") == ""


def test_a_block_written_with_its_body_takes_the_place_of_the_whole_block():
    new = "def second(a):\n    return a or 0"
    assert changed(CODE, "def second(a):", new) == CODE.partition("def second")[0] + new + "\n"
    one = changed(CODE, "def first(a):", "def first(a): return a + 1")
    assert one.startswith("def first(a): return a + 1\n\n\ndef second")
    code = "function f() {\n  go();\n}\n\nfunction g() {\n}\n"
    assert changed(code, "function f() {", "function f() {\n  stop();\n}") == code.replace(
        "go", "stop"
    )


def test_a_new_head_alone_keeps_the_body():
    assert changed(CODE, "def first(a):", "def one(a):") == CODE.replace("first", "one")


@pytest.mark.parametrize(
    ("path", "text", "sound"),
    [
        ("a.py", CODE, True),
        ("a.py", "def f(:", False),
        ("a.py", "x = '\\W'", True),
        ("a.py", "a\0b", False),
        ("a.py", "(" * 5000, False),
        ("a.json", "{}", True),
        ("a.json", "{", False),
        ("a.toml", "a = 1", True),
        ("a.toml", "a = ", False),
        ("a.yaml", "a: [1, 2]", True),
        ("a.yml", "a: b: c", False),
        ("a.ini", "[a]\nb = 1", True),
        ("a.ini", "b = 1", False),
        ("a.sh", "if true; then echo; fi", True),
        ("a.sh", "if true; then echo", False),
        ("a.txt", "def f(:", True),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_read_any_more_is_not_sound(path: str, text: str, sound: bool):
    assert (problem(path, text) == "") == sound


@given(TEXTS)
def test_every_choice_can_be_changed_and_nothing_else_is(text: str):
    for old in choices(text):
        find, put = change(text, old, "NEW = 1")
        assert text.count(find) == 1
        after = text.replace(find, put)
        assert after.count("NEW = 1") == 1
        before, _, rest = after.partition("NEW = 1")
        assert text.startswith(before.rstrip(" "))
        assert text.endswith(rest)


@given(TEXTS, TEXTS)
def test_a_span_turns_one_text_into_the_other(before: str, after: str):
    assume(before != after)
    old, new = span(before, after)
    assert before.count(old) == 1 or not before
    assert before.replace(old, new, 1) == after


def test_a_function_of_another_name_comes_beside_the_old_one():
    new = "def third(a):\n    return a * 3"
    after = changed(CODE, "def first(a):", new)
    assert after == CODE.replace("    return a\n\n\n", f"    return a\n\n{new}\n\n\n", 1)


def test_what_is_put_before_the_rest_of_a_block_keeps_the_rest():
    text = "def mean(v):\n    total = sum(v)\n    return total / len(v)\n"
    new = "def mean(v):\n    if not v:\n        return 0"
    rest = "    total = sum(v)\n    return total / len(v)\n"
    assert changed(text, "def mean(v):", new) == f"{new}\n{rest}"
    whole = f"{new}\n    return sum(v) / len(v)"
    assert changed(text, "def mean(v):", whole) == f"{whole}\n"


def test_a_short_function_is_named_by_its_first_line_only():
    assert units(f"LIMIT = 3\n\n{CODE}") == ("LIMIT = 3", "def first(a):", "def second(a):")
    shell = "greet() {\n  echo $1\n}\ngreet you\n"
    assert units(shell) == ("greet() {", "greet you")
    long = "def f():\n" + "".join(f"    x{n} = {n}\n" for n in range(40))
    assert "    x7 = 7" in units(long)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("a = 1\n", "a = (\n", "'(' was never closed (line 1)"),
        ("a = (\n", "b = (\n", ""),
        ("def f(a):\n    return a\n", "def f(a):\n    return b\n", "b is not defined"),
        (
            "def f(a):\n    return a\n",
            "def f(a):\n    if a: return 0\n",
            "f no longer returns a value at its end; write the whole function",
        ),
        ("def f(a):\n    print(a)\n", "def f(a):\n    if a: return\n    print(a)\n", ""),
        ("def f(a):\n    return a\n", "def f(a):\n    if a:\n        return 1\n    return 2\n", ""),
    ],
)
def test_a_change_that_breaks_python_is_found(before: str, after: str, why: str):
    assert damage("a.py", before, after) == why


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("wait = 3\nwaiting = 3\n", "wait", "pause", "pause = 3\nwaiting = 3\n"),
        ("a.b(c)", "b(", "d(", "a.d(c)"),
        ("unfold", "fold", "bend", "unbend"),
        ("fold1 fold2", "fold", "bend", "fold1 fold2"),
        ("x", "", "y", "x"),
        ("cost 5", "5", "\\1", "cost \\1"),
    ],
)
def test_a_word_is_replaced_everywhere_but_not_inside_others(
    text: str, old: str, new: str, after: str
):
    assert substitute(text, old, new) == after


def test_a_function_is_not_defined_twice():
    before = "def pop():\n    return 1\n"
    assert damage("a.py", before, before + "\n\n" + before) == "pop is defined twice"
    assert damage("a.py", before, before + "\n\ndef push():\n    return 2\n") == ""
