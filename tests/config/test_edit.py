import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.config.edit import assign, remove, split_path
from toolwire.config.schema import rendered
from toolwire.errors import BadInput

PERSONS = """\
# My settings.
default_model = "a/b" # the good one

# Not too long.
[limits]
  turns = 5   # enough
  tokens = 7

[tools] # of all kinds
exclude = [ # long
  "glob", # a # in a comment ]
  "todo",
]
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        ("default_model", "c/d", '"a/b" # the', '"c/d" # the'),
        ("limits.turns", 6, "turns = 5   # enough", "turns = 6   # enough"),
        ("limits.cost", 1.5, "  tokens = 7\n", "  tokens = 7\n  cost = 1.5\n"),
        ("tool_style", "xml", "the good one\n", 'the good one\ntool_style = "xml"\n'),
        (
            "tools.exclude",
            ["x"],
            '[ # long\n  "glob", # a # in a comment ]\n  "todo",\n]\n',
            '["x"]\n',
        ),
        ("tools.core", [], '"todo",\n]\n', '"todo",\n]\ncore = []\n'),
        ("sessions.keep_days", 3, '"todo",\n]\n', '"todo",\n]\n\n[sessions]\nkeep_days = 3\n'),
    ],
)
def test_only_the_value_changes(path: str, value: object, old: str, new: str) -> None:
    assert PERSONS.count(old) == 1
    assert assign(PERSONS, split_path(path), value) == PERSONS.replace(old, new)


@pytest.mark.parametrize(
    ("text", "path", "value", "changed"),
    [
        ("", "a", 1, "a = 1\n"),
        ("", "a.b", 1, "[a]\nb = 1\n"),
        ("x = 1", "a", 1, "x = 1\na = 1\n"),
        ("x = 1\r\n", "a.b", 1, "x = 1\r\n\r\n[a]\r\nb = 1\r\n"),
        ("# top\n\n# of a\n[a]\n", "x", 1, "# top\n\nx = 1\n\n# of a\n[a]\n"),
        ("a.b = 1\n", "a.c", 2, "a.b = 1\na.c = 2\n"),
        ("[a]\nb.c = 1\n", "a.b.d", 2, "[a]\nb.c = 1\nb.d = 2\n"),
        ("a = { b = 1 } # x\n", "a.c", 2, "a = { b = 1, c = 2 } # x\n"),
        ("[a.b]\nc = 1\n", "a.d", 2, "[a.b]\nc = 1\n\n[a]\nd = 2\n"),
        ("[[a]]\nb = 1\n[c]\n", "d", 2, "d = 2\n\n[[a]]\nb = 1\n[c]\n"),
        ("[a]\n[b]\nc = 1\n", "a.d", 2, "[a]\nd = 2\n[b]\nc = 1\n"),
        ('"x y".z = 1\n', '"x y".z', 2, '"x y".z = 2\n'),
        ("[ 'a' . \"b\" ]\nc=1\n", "a.b.c", 2, "[ 'a' . \"b\" ]\nc=2\n"),
        ('a = """x\n[b]\n""" # y\n', "b.c", 1, 'a = """x\n[b]\n""" # y\n\n[b]\nc = 1\n'),
        ("a = '''x'''''\nb = 1\n", "b", 2, "a = '''x'''''\nb = 2\n"),
        ("d = 1979-05-27 07:32:00 # day\n", "d", 1, "d = 1 # day\n"),
    ],
)
def test_a_value_is_put_where_a_person_would(
    text: str, path: str, value: object, changed: str
) -> None:
    assert assign(text, split_path(path), value) == changed


@pytest.mark.parametrize(
    ("text", "path"),
    [("[[a]]\nb = 1\n", "a.b"), ("a = 1\n", "a.b"), ("[[a]]\nb = 1\n[a.c]\nd = 1\n", "a.c.d")],
)
def test_what_cannot_be_changed_by_itself_is_an_error(text: str, path: str) -> None:
    with pytest.raises(BadInput, match="by hand"):
        assign(text, split_path(path), 2)


@pytest.mark.parametrize(
    ("text", "path", "changed"),
    [
        (PERSONS, "limits.turns", PERSONS.replace("  turns = 5   # enough\n", "")),
        ("a = { b = 1, c = 2 }\n", "a.b", "a = { c = 2 }\n"),
        ("a = 1", "a", ""),
        ("a.b = 1\nc = 2\n", "a.b", "c = 2\n"),
        ("[a]\nb.c = 1 # x\n", "a.b.c", "[a]\n"),
    ],
)
def test_a_line_is_taken_out(text: str, path: str, changed: str) -> None:
    assert remove(text, split_path(path)) == changed


def test_what_is_not_there_cannot_be_taken_out() -> None:
    with pytest.raises(BadInput, match=r"limits\.cost is not set there"):
        remove(PERSONS, ("limits", "cost"))


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a b", "models.a/b", 'a."b'])
def test_a_path_that_is_none_is_an_error(path: str) -> None:
    with pytest.raises(BadInput, match="not the path of a setting"):
        split_path(path)


names = st.sampled_from(["a", "b", "c-d", "x y", 'q"', "é", ""])
scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=("Cs",))),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=6,
)
paths = st.lists(names, min_size=1, max_size=3).map(tuple)


@given(values)
def test_what_is_written_reads_back_the_same(value: object) -> None:
    assert tomllib.loads(f"value = {rendered(value)}") == {"value": value}


@given(st.lists(st.tuples(paths, values), max_size=6))
def test_any_row_of_changes_comes_to_what_it_says(
    changes: list[tuple[tuple[str, ...], Any]],
) -> None:
    text = "# mine\n"
    expected: dict[str, Any] = {}
    for path, value in changes:
        try:
            text = assign(text, path, value)
        except BadInput:
            assert _is_in_the_way(expected, path)
            continue
        table = expected
        for name in path[:-1]:
            table = table.setdefault(name, {})
        table[path[-1]] = value
        assert tomllib.loads(text) == expected
    assert "# mine\n" in text


def _is_in_the_way(tables: Any, path: tuple[str, ...]) -> bool:
    """A value stands where a table is needed, or a whole table where a value is put."""
    for name in path:
        if not isinstance(tables, dict):
            return True
        if name not in tables:
            return False
        tables = tables[name]
    return isinstance(tables, dict | list)


keys = st.lists(st.sampled_from(["a", "b", '"x y"', "'q'"]), min_size=1, max_size=3).map(".".join)
written = st.sampled_from(
    [
        "1",
        '"s # no"',
        "'l [x]'",
        '[ # c\n  1, # ]\n  "a]", # "\n]',
        '{ b = { c = "}" } }',
        '"""m\n[a]\n# none\nb = 1\n"""',
        "'''\n\"\"\"\n'''",
        '"""q\\""""""',
        "1979-05-27 07:32:00Z",
        "[{ a = 1 }]",
    ]
)
lines = st.one_of(
    st.sampled_from(["", "# comment"]),
    st.builds("[{}] # head".format, keys),
    st.builds("  [[ {} ]]".format, keys),
    st.builds("{} = {}".format, keys, written),
    st.builds("  {}={} # tail".format, keys, written),
)


def _as_toml(found: list[str]) -> str:
    """As many of the lines as make a file together."""
    text = ""
    for line in found:
        try:
            tomllib.loads(f"{text}{line}\n")
        except tomllib.TOMLDecodeError:
            continue
        text += f"{line}\n"
    return text


@given(st.lists(lines, max_size=8).map(_as_toml), st.lists(st.sampled_from("abq"), min_size=1))
def test_whatever_a_person_wrote_stays_beside_the_new_value(text: str, path: list[str]) -> None:
    before = tomllib.loads(text)
    try:
        changed = assign(text, tuple(path), "new")
    except BadInput:
        # tomlkit refuses arrays of tables in several parts; no setting is one.
        assert "[[" in text or _is_in_the_way(before, tuple(path))
        return
    found: Any = tomllib.loads(changed)
    for name in path:
        found = found[name]
    assert found == "new"
    assert changed.count("# comment") == text.count("# comment")
    assert changed.count("# head") == text.count("# head")
    assert changed.count("# tail") == text.count("# tail")
    assert "new" not in remove(changed, tuple(path))
