import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolwire.embedded.small.edits import MOST_LINES, addition, change, choices, is_sound

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


def test_an_addition_comes_after_everything():
    find, put = addition("a\nb\na\n", "\nc\n")
    assert "a\nb\na\n".replace(find, put) == "a\nb\na\n\nc\n"
    assert addition("", "x\n") == ("", "\nx")


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
        ("a.txt", "def f(:", True),
    ],
)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_read_any_more_is_not_sound(path: str, text: str, sound: bool):
    assert is_sound(path, text) == sound


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


@given(TEXTS, st.text("ab\n ", max_size=8))
def test_an_addition_keeps_what_was_there(text: str, more: str):
    assume(text.strip("\n"))
    find, put = addition(text, more)
    assert text.count(find) == 1
    assert text.replace(find, put).startswith(text.rstrip("\n"))


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
